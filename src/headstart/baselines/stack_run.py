"""A stack as a run: its weights, and a folder for each member, which is a run itself."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.baselines.stack import arm_logs, mixed_logs
from headstart.progress import ProgressCallback
from headstart.run import Run, TextClassifier
from headstart.tasks.classification import Classification

MEMBERS = "members"


class StackScorer(TextClassifier):
    """The weighted product of its members' probabilities.

    Parameters
    ----------
    members : mapping of str to Run
        By the name of the arm; all with the same labels.
    weights : sequence of float
        One per member. A member with weight 0 is not run, and not kept.
    """

    kind = "stack"

    def __init__(self, members: dict[str, Run], weights: Sequence[float]) -> None:
        if len(members) != len(weights) or not all(0 < float(one) < np.inf for one in weights):
            raise ValueError(f"{len(members)} members have the weights {list(weights)}")
        if not members or len({run.labels for run in members.values()}) > 1:
            raise ValueError("the members of a stack must have the same labels")
        self.members = members
        self.weights = np.asarray(weights, dtype=np.float64)
        self.classes_ = np.arange(len(next(iter(members.values())).labels))

    def scores(
        self, texts: Sequence[str], *, progress: ProgressCallback | None = None
    ) -> NDArray[np.float64]:
        logs = []
        for run in self.members.values():
            assert isinstance(run.task, Classification)
            found = run.scores(run.task.unlabelled(texts), progress).values
            # As precise as a study keeps its arms' probabilities, which the weights were fitted to.
            logs.append(run.task.probabilities(found, run.temperature).astype(np.float32))
        return mixed_logs(arm_logs(logs), self.weights)

    def write(self, folder: Path) -> tuple[dict[str, Any], list[Path]]:
        for name, run in self.members.items():
            place = folder / MEMBERS / name
            if not place.exists():
                run.save(place)
        return {"weights": dict(zip(self.members, self.weights.tolist(), strict=True))}, []

    @classmethod
    def read(cls, folder: Path, settings: dict[str, Any]) -> Self:
        weights: dict[str, float] = settings["weights"]
        for name in weights:
            if Path(name).name != name:
                raise ValueError(f"the member {name!r} is not in the folder")
        members = {name: Run.open(folder / MEMBERS / name) for name in weights}
        return cls(members, list(weights.values()))

    def facts(self) -> dict[str, Any]:
        return {
            "weights": dict(zip(self.members, self.weights.tolist(), strict=True)),
            "members": {name: run.facts() for name, run in self.members.items()},
        }


def link_member(source: Path, folder: Path, name: str) -> Path:
    """Take a finished run into a stack's folder; its files exist once where the disk can do so."""
    place = folder / MEMBERS / name
    shutil.copytree(source, place, copy_function=_link)
    return place


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a system without links
        shutil.copy2(source, target)
