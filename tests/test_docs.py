"""The map of the house is complete."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "src" / "headstart").rglob("*.py"))


def test_the_tree_in_the_architecture_is_the_tree_of_the_source():
    spec = importlib.util.spec_from_file_location("tree", ROOT / "docs" / "tree.py")
    tree = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tree)
    page = tree.PAGE.read_text(encoding="utf-8")
    assert page == tree.page_with_tree(page), "run: python docs/tree.py"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_says_what_it_is(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith('"""')


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
