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
    base=type,  # a task is a class: an instance belongs to one set of labels
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
    if not (isinstance(task, type) and issubclass(task, Task) and hasattr(task, "name")):
        raise HeadstartError(
            f"{task!r} is not a task",
            fix="give a subclass of headstart.tasks.task.Task with a name",
        )
    TASKS.register(task.name, task)
    return task


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
