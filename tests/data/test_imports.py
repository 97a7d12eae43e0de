"""The modules of the data room import downwards only."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import headstart.data


def test_no_module_imports_one_that_imports_it():
    folder = Path(headstart.data.__file__).parent
    graph: dict[str, set[str]] = {}
    for path in folder.glob("*.py"):
        nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
        modules = [(n.module or "").split(".") for n in nodes]
        graph[path.stem] = {name[2] for name in modules if name[:2] == ["headstart", "data"]}
    list(TopologicalSorter(graph).static_order())  # raises CycleError
