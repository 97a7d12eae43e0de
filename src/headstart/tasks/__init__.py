"""Tasks on labelled data. A new one is a class and a line here."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.tasks.task import Task

TASKS = {  # modules and classes, imported when they are used
    "classification": ("classification", "Classification"),
    "multi-label": ("classification", "MultiLabel"),
    "pairs": ("classification", "Pairs"),
    "tagging": ("tagging", "Tagging"),
    "spans": ("spans", "Spans"),
}


def find_task(name: str) -> "type[Task[Any]]":
    """Look a task up by name; an unknown one is an error that lists the known ones."""
    if name not in TASKS:
        raise HeadstartError(f"unknown task {name!r}; the tasks are {', '.join(TASKS)}")
    module, class_name = TASKS[name]
    found: type[Task[Any]] = getattr(import_module(f"{__name__}.{module}"), class_name)
    return found
