"""The map of the house is complete."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "src" / "headstart").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_is_on_the_map_of_the_architecture(file):
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    if file.name != "__init__.py":
        assert f" {file.name}" in text.split(f"{file.parent.name}/", 1)[1]


def test_the_map_names_no_file_that_is_gone():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = text.split("```")[1]
    named = {word for line in tree.splitlines() for word in line.split()[:1] if ".py" in word}
    assert named <= {file.name for file in FILES}
