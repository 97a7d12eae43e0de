"""One name for one class: a search for a name finds one definition."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "headstart"


def defined(statement):
    """The public class or type alias that a statement of a module defines, if it is one."""
    if isinstance(statement, ast.ClassDef):
        return statement.name
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name, value = statement.targets[0].id, ast.unparse(statement.value)
        if name[0].isupper() and not name.isupper() and not value.startswith("TypeVar("):
            return name
    return None


def test_no_two_public_classes_or_type_aliases_have_the_same_name():
    places = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            name = defined(statement)
            if name and not name.startswith("_"):
                places[name].append(str(file.relative_to(SOURCE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}
