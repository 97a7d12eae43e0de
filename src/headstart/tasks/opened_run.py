"""What every opened run can do, whatever its kind: a network, a linear classifier, a stack."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from headstart.progress import ProgressCallback
from headstart.tasks.task import Task


@dataclass(frozen=True)
class RunAnswers:
    """A run's answers for rows of its task; classes as scores that no temperature has changed."""

    scores: Any
    cut: dict[str, int] = field(default_factory=dict)  # what of the texts was not read


class Contribution(NamedTuple):
    """Characters `start` up to `end` of a text, and how much they spoke for a class."""

    start: int
    end: int
    effect: float


class OpenedRun(Protocol):
    """A run folder as an object: `predict`, `evaluate`, `explain` and `load` need no more of it."""

    @property
    def folder(self) -> Path: ...

    @property
    def task(self) -> Task[Any] | None:
        """What it predicts; a pretrained base has none."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the task's answers."""

    @property
    def temperature(self) -> float:
        """What scores are divided by before they become probabilities."""

    def answers(self, part: Any, *, progress: ProgressCallback | None = None) -> RunAnswers:
        """One answer per row of the task's labelled (or `unlabelled`) rows."""

    def contributions(self, text: str, column: int) -> list[Contribution] | None:
        """What each word adds to the score of a class, exactly; `None` where no sum says it."""

    def facts(self) -> dict[str, Any]:
        """Its kind and its sizes in plain values."""

    def save(self, folder: Path) -> None:
        """Write what `headstart.load` reads."""
