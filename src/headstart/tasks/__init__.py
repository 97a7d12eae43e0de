"""Tasks for labelled data, one file each. A new file here is a new task."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from headstart.errors import HeadstartError
from headstart.tasks.task import Task


@cache
def tasks() -> dict[str, type[Task[Any]]]:
    """Every task in this folder, by name."""
    for module in iter_modules(__path__, prefix=f"{__name__}."):
        import_module(module.name)
    return {kind.name: kind for kind in sorted(_all(Task), key=lambda kind: kind.name)}


def find_task(name: str) -> type[Task[Any]]:
    known = tasks()
    if name not in known:
        raise HeadstartError(f"unknown task {name!r}; there are {', '.join(known)}")
    return known[name]


def _all(kind: Any) -> list[type[Task[Any]]]:
    found = [sub for direct in kind.__subclasses__() for sub in [direct, *_all(direct)]]
    return [sub for sub in found if hasattr(sub, "name")]
