"""Fixtures for every test: the command line as a user runs it."""

import contextlib
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings

from headstart.data.tokenizers import Tokenizer, train_tokenizer
from headstart.machine import make_bf16_safe

# Tests run side by side, and networks this small only lose by sharing their work out.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Before the first bf16 product; the processes that tests start inherit what this finds.
make_bf16_safe()

# A busy machine is not a bug: no test depends on how long it takes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

Result = subprocess.CompletedProcess[str]

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@pytest.fixture
def reviews(write: Callable[[str, bytes | str], Path]) -> Path:
    """A tidy CSV with forty different texts, half good and half bad."""
    lines = ["text,label"]
    lines += [f"review number {n} says {'yes' if n % 2 else 'no'},{n % 2}" for n in range(40)]
    return write("reviews.csv", "\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def headstart() -> Callable[..., Result]:
    """Run `headstart ARGUMENTS…` as a user would; returns its exit code and its output.

    In this process, which has loaded everything already; with options of `subprocess.run` (`cwd`,
    `env`, `input`, or none but `timeout`) in one of its own.
    """

    def run(*arguments: object, **options: Any) -> Result:
        words = list(map(str, arguments))
        if options:
            command = [sys.executable, "-m", "headstart", *words]
            settings = {"capture_output": True, "text": True, "timeout": 600, **options}
            return subprocess.run(command, **settings)
        return run_here(words)

    return run


def run_here(words: list[str]) -> Result:
    """The command line's `main` with its own arguments and its own standard streams."""
    from headstart.cli.app import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in "oe"]
    code: Any = 0
    with (
        mock.patch.object(sys, "argv", ["headstart", *words]),
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    printed = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in streams]
    return Result(words, code, *printed)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Write a file; a name that ends in .gz is gzipped."""

    def write_file(name: str, content: bytes | str) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests do not use the user's cache."""
    before = os.environ.get("HEADSTART_CACHE")
    os.environ["HEADSTART_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["HEADSTART_CACHE"]
    else:
        os.environ["HEADSTART_CACHE"] = before


@pytest.fixture(scope="session")
def headstart_json(headstart: Callable[..., Result]) -> Callable[..., Any]:
    """Run a command with `--json`; its standard output must be one JSON document."""

    def run(*arguments: object) -> Any:
        result = headstart(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that tags people and places, next to its `train.conll`."""
    from headstart.training.finetune import finetune
    from tests.labelled import config, write_conll

    folder = tmp_path_factory.mktemp("tagger")
    path = write_conll(folder / "train.conll")
    finetune(config(dataset=[str(path)], task="tagging", epochs=6), folder / "run")
    return folder / "run"


@pytest.fixture(scope="session")
def answerer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run for spans, with and without answers, next to its `train.json`."""
    from headstart.training.finetune import finetune
    from tests.labelled import config, write_squad

    folder = tmp_path_factory.mktemp("answerer")
    path = write_squad(folder / "train.json", none=0.3, texts=250)
    sizes = {"objective": "masked", "width": 32, "batch_size": 8, "learning_rate": 3e-3}
    finetune(config(dataset=[str(path)], task="spans", epochs=20, **sizes), folder / "run")
    return folder / "run"


SENTENCES = [
    "The film was a delight, and the children didn't want to leave.",
    "Le film était très bon; les enfants n'ont pas voulu partir !",
    "Фильм был очень хорош, и дети не хотели уходить.",
    "映画はとても良かったので、子供たちは帰りたがりませんでした。",
    "It cost 12.50 (about 3rd of what we'd paid in 1999).\nWorth it.",
] * 4


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """A few sentences in four scripts."""
    return SENTENCES


@pytest.fixture(scope="session")
def bpe() -> Tokenizer:
    """A tokenizer that was trained on a few sentences."""
    return train_tokenizer(SENTENCES, vocab_size=500)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, which logs what it prints and asks for."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        options.add_experimental_option("prefs", {"download.default_directory": folder})
        service = webdriver.ChromeService(executable_path=DRIVER)  # never look for another
        driver = webdriver.Chrome(options=options, service=service)
        driver.downloads = folder
        yield driver
        driver.quit()
