"""Tasks for labelled data, one file each, found by name: ours, other packages', and your own.

`register` adds a task for this process; the entry point group `headstart.tasks` adds one with an
installed package:

    [project.entry-points."headstart.tasks"]
    ranking = "my_package.ranking:Ranking"
"""

from typing import Any

from headstart.errors import HeadstartError
from headstart.registry import Registry
from headstart.tasks.task import Task

TASKS: Registry[type[Task[Any]]] = Registry(
    "task",
    group="headstart.tasks",
    base=Task,
    of_classes=True,
    built_in={
        "classification": "headstart.tasks.classification:Classification",
        "multi-label": "headstart.tasks.multi_label:MultiLabel",
        "pairs": "headstart.tasks.pairs:Pairs",
        "spans": "headstart.tasks.spans:Spans",
        "tagging": "headstart.tasks.tagging:Tagging",
    },
)


def register(task: type[Task[Any]]) -> type[Task[Any]]:
    """Let `headstart finetune --task NAME`, `evaluate` and `predict` find a task by its name.

    Parameters
    ----------
    task : a subclass of `headstart.tasks.task.Task` with a `name`.

    Returns
    -------
    The class itself, so that this is also a decorator.
    """
    return TASKS.add(task)


def unregister(name: str) -> None:
    """Remove a task that `register` added."""
    TASKS.unregister(name)


def tasks() -> dict[str, type[Task[Any]]]:
    """Every task by name."""
    return TASKS.entries()


def find_task(name: str) -> type[Task[Any]]:
    """The task of that name; an unknown one is an error that lists the known ones."""
    known = tasks()
    if name not in known:
        raise HeadstartError(f"unknown task {name!r}; the tasks are {', '.join(known)}")
    return known[name]
