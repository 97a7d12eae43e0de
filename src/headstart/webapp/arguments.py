"""What was chosen on the page, as arguments of Headstart's commands."""

from collections.abc import Sequence
from typing import Any

from headstart.arms import ARMS
from headstart.webapp.workspace import AppStudy

TASKS = ("classification", "pairs", "multi-label")  # those whose rows are rows of a table
COLUMNS = ("text_column", "second_column", "label_column")


def reading_arguments(study: AppStudy) -> list[str]:
    """The files and how they are read. Values follow an equals sign: none can be an option."""
    found = [str(study.path("data"))]
    if "corpus" in study.files:
        found.append(f"--corpus={study.path('corpus')}")
    if task := study.reading.get("task"):
        found.append(f"--task={task}")
    for name in COLUMNS:
        if column := study.reading.get(name):
            found.append(f"--{name.replace('_', '-')}={column}")
    return found


def inspect_arguments(study: AppStudy) -> list[str]:
    """`headstart inspect`; corpus texts that a study leaves out are left out here, too."""
    return ["inspect", *reading_arguments(study), "--drop-overlap"]


def compare_arguments(study: AppStudy, extra: Sequence[str]) -> list[str]:
    """`headstart compare` into the study's own folder.

    Parameters
    ----------
    study : with the choices of its plan.
    extra : options for every study of this app.
    """
    chosen = study.choices
    found = ["compare", *reading_arguments(study), f"--out={study.study_folder}"]
    found.append(f"--name={study.name}")
    for name in ("minutes", "seeds", "labels", "objective"):
        if chosen.get(name):
            found.append(f"--{name}={chosen[name]}")
    if names := chosen.get("arms"):
        found.append(f"--arms={','.join(names)}")
    return [*found, *extra]


def arm_choices(task: str) -> list[dict[str, Any]]:
    """The arms that a study of this task can have, for the page."""
    return [
        {
            "name": arm.name,
            "label": arm.label,
            "description": arm.description,
            "usual": task in arm.usual,
        }
        for arm in ARMS.values()
        if task in arm.tasks
    ]
