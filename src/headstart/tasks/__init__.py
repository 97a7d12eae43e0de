"""Tasks on labelled data. A new one is a class, a line here and a choice of `--task`."""

from typing import Any

from headstart.errors import HeadstartError
from headstart.tasks.classification import Classification, MultiLabel, Pairs
from headstart.tasks.spans import Spans
from headstart.tasks.tagging import Tagging
from headstart.tasks.task import Task

TASKS: dict[str, type[Task[Any]]] = {
    task.name: task for task in (Classification, MultiLabel, Pairs, Tagging, Spans)
}


def find_task(name: str) -> type[Task[Any]]:
    """Look a task up by name; an unknown one is an error that lists the known ones."""
    if name not in TASKS:
        raise HeadstartError(f"unknown task {name!r}", fix=f"the tasks are {', '.join(TASKS)}")
    return TASKS[name]
