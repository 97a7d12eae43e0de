"""The outcome of one training: its measures, and its predictions for validation and test.

A finished training is one file, written whole or not at all, so what is there after a kill can be
trusted, and a study that is started again does only what is missing.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart.checksums import load_arrays, save_arrays
from headstart.data.dataset import Splits
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import classification_metrics
from headstart.files import replacing
from headstart.studies.study_task import has_classes, row_scores
from headstart.tasks.task import Task

FINAL = -1  # the epoch of a value measured once, at the best epoch; empty in results.csv
Probabilities = NDArray[np.float32]
ARRAYS = ("validation", "test", "own", "own_rows", "scores")
NOTHING = np.zeros((0, 0), dtype=np.float32)


@dataclass(frozen=True, order=True)
class RunKey:
    """Which training of the study: arm × objective × labelled rows used × seed."""

    arm: str
    objective: str  # "" for an arm that depends on none
    labels: int
    seed: int


@dataclass(frozen=True)
class Measure:
    """One line of results.csv.

    `split` is train, validation or test; `metric` is accuracy, macro_f1 or loss, accuracies as
    fractions. Epochs count from 1. Test values are `FINAL`: validation selects, test is
    measured once. `seconds` counts from the start of the run, pretraining not included.
    """

    run: RunKey
    epoch: int
    split: str
    metric: str
    value: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What one training came to. Probabilities are rows × classes, of the chosen epoch.

    `own` are those of rows of the budget by models that were not trained on them; `own_rows` are
    the numbers of these rows in the budget. Both are empty for arms that have none. A task without
    classes has no probabilities, but `scores`: what each test row adds to its metric.
    """

    run: RunKey
    measures: list[Measure]
    validation: Probabilities
    test: Probabilities
    facts: dict[str, Any]  # whatever else is worth keeping: what was chosen, steps, weights
    own: Probabilities = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    own_rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def measure(self, split: str, metric: str) -> float:
        """A value that was measured at the best epoch."""
        wanted = (FINAL, split, metric)
        return next(m.value for m in self.measures if (m.epoch, m.split, m.metric) == wanted)

    def for_run(self, run: RunKey, rows: Sequence[int]) -> "Outcome":
        """The same outcome under another key, for a training that cannot end otherwise.

        `rows` are the numbers that this one's rows have in the other training.
        """
        moved = np.asarray(rows, dtype=np.int64)[self.own_rows]
        order = np.argsort(moved)
        return replace(
            self,
            run=run,
            measures=[replace(m, run=run) for m in self.measures],
            own=self.own[order],
            own_rows=moved[order],
        )


def make_outcome(
    run: RunKey,
    splits: Splits[Any],
    validation: ArrayLike,
    test: ArrayLike,
    *,
    measures: Sequence[Measure] = (),
    seconds: float,
    facts: dict[str, Any],
    own: ArrayLike | None = None,
    own_rows: ArrayLike | None = None,
    task: Task[Any] | None = None,
) -> Outcome:
    """An outcome from probabilities; accuracy, macro F1 and loss of both parts are measured.

    With a `task` without classes `validation` and `test` are its answers, and its metrics are
    measured.
    """
    assert splits.test is not None
    if task is not None and not has_classes(task):
        both = {"validation": (validation, splits.validation), "test": (test, splits.test)}
        values = [
            Measure(run, FINAL, name, metric, float(value), seconds)
            for name, (answers, part) in both.items()
            for metric, value in task.metrics(answers, part).items()
        ]
        scores = row_scores(task, test, splits.test)
        return Outcome(run, [*measures, *values], NOTHING, NOTHING, facts, scores=scores)
    said = [np.asarray(answers, dtype=np.float32) for answers in (validation, test)]
    final = []
    for name, answers, part in zip(
        ("validation", "test"), said, (splits.validation, splits.test), strict=True
    ):
        found = classification_metrics(answers, part.labels)
        for metric in ("accuracy", "macro_f1", "loss"):
            final.append(Measure(run, FINAL, name, metric, found[metric], seconds))
    outcome = Outcome(run, [*measures, *final], said[0], said[1], facts)
    if own is None or own_rows is None:
        return outcome
    return replace(
        outcome,
        own=np.asarray(own, dtype=np.float32),
        own_rows=np.asarray(own_rows, dtype=np.int64),
    )


def safe_name(arm: str) -> str:
    """An arm's name in the names of files: `hf:PATH` has characters that those cannot have."""
    plain = re.sub(r"[^\w.-]+", "-", arm)
    if plain == arm:
        return arm
    return f"{plain[-60:].strip('-')}-{hashlib.sha256(arm.encode()).hexdigest()[:8]}"


def training_name(run: RunKey) -> str:
    """A name for files and folders that sorts by what it says."""
    parts = [safe_name(run.arm), run.objective, f"{run.labels:06d}", f"seed-{run.seed}"]
    return "-".join(part for part in parts if part)


def training_file(study: Path, run: RunKey) -> Path:
    """Where the outcome of a training is kept."""
    return study / "trainings" / f"{training_name(run)}.safetensors"


def write_training(study: Path, outcome: Outcome) -> None:
    """Write an outcome; the file is whole or absent."""
    about = {
        "run": asdict(outcome.run),
        "measures": [[m.epoch, m.split, m.metric, m.value, m.seconds] for m in outcome.measures],
        "facts": outcome.facts,
    }
    arrays = {name: np.ascontiguousarray(getattr(outcome, name)) for name in ARRAYS}
    with replacing(training_file(study, outcome.run)) as temporary:
        save_arrays(arrays, temporary, json.dumps(about))


def read_training(study: Path, run: RunKey) -> Outcome:
    """Read an outcome back; a damaged file is an error that names it."""
    path = training_file(study, run)
    fix = "delete the file and start the study again: it is trained anew"
    try:
        arrays, text = load_arrays(path, fix=fix)
        about = json.loads(text)
        measures = [Measure(run, *line) for line in about["measures"]]
        return Outcome(run, measures, facts=about["facts"], **arrays)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise HeadstartError(
            f"this finished training cannot be read: {error}", where=path, fix=fix
        ) from None


def is_finished(study: Path, run: RunKey) -> bool:
    """Whether the outcome of this training is there."""
    return training_file(study, run).is_file()
