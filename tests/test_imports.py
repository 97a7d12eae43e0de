"""Imports point one way: the order that docs/architecture.md states."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "headstart"
PAGE = ROOT / "docs" / "architecture.md"


def parts():
    """The packages and files directly under headstart/, which are the nodes of the graph."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py")}


def stated_order():
    """From the table of the page: the row of each part."""
    rows = re.findall(r"^\| (\d+) \| (`.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(row) for row, names in rows for name in re.findall(r"`(\w+)`", names)}


def imported(node, known):
    """The parts of headstart that an import statement names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module == "headstart":
        return {alias.name if alias.name in known else "__init__" for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide where they point"
        names = [node.module or ""]
    else:
        return set()
    return {name.split(".")[1] for name in names if name.startswith("headstart.")}


def edges():
    """Every import between two parts, also inside functions: (from, to) and where it is."""
    known, found = parts(), {}
    for path in sorted(SOURCE.rglob("*.py")):
        origin = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in imported(node, known) - {origin}:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                found.setdefault((origin, target), []).append(place)
    return found


def test_every_part_has_its_place_in_the_order():
    assert set(stated_order()) == parts()


def test_no_import_points_against_the_order():
    order = stated_order()
    wrong = {
        f"{origin} imports {target}": places
        for (origin, target), places in edges().items()
        if order[origin] <= order[target]
    }
    assert not wrong


@pytest.mark.parametrize(
    ("statement", "target"),
    [
        ("import headstart.text.reading", {"text"}),
        ("from headstart.model.config import BaseConfig", {"model"}),
        ("from headstart import text", {"text"}),
        ("from headstart import load", {"__init__"}),
        ("import torch", set()),
    ],
)
def test_an_import_is_seen_however_it_is_written(statement, target):
    assert imported(ast.parse(statement).body[0], {"text", "model"}) == target
