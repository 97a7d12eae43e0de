"""How far an export lies from its run: in outputs, and in the test metric over the same rows."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.config import FinetuneConfig, is_run
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import Interval
from headstart.run import NetworkRun, Run, drop_seen, evaluation_rows
from headstart.tasks.task import Task

MOST_ROWS = 2_000  # of a large test part: what both would take is minutes
DRAWS = 200
QUANTILE = 1.96  # of a normal distribution, for 95 %
# How far the metric may move: rounding turns a tie now and then, 8 bits a few answers.
ALLOWED, ALLOWED_INT8 = 0.01, 0.1


@dataclass(frozen=True)
class OutputDifference:
    """How far the export's outputs lie from the run's, over one kind of input."""

    inputs: str  # in words: "a batch of 3, padded on the right"
    difference: float  # the largest one
    allowed: float

    @property
    def passed(self) -> bool:
        return math.isfinite(self.difference) and self.difference <= self.allowed


@dataclass(frozen=True)
class TestRows:
    """Labelled rows that neither trained the run nor chose its weights."""

    part: Any
    dataset: str  # its name without its folder
    measured_on: str  # in words: "2,000 rows of the test part of reviews.csv"


@dataclass(frozen=True)
class ExportMetric:
    """A metric of the run and of its export on the same rows, each with its interval."""

    metric: str
    dataset: str
    rows: int
    measured_on: str
    run: Interval
    export: Interval
    difference: Interval

    def compare(self, *, int8: bool) -> OutputDifference:
        """As one of the checks that an export has to pass."""
        allowed = max(ALLOWED_INT8 if int8 else ALLOWED, 1.5 / self.rows)
        words = f"{self.metric} on {self.measured_on}"
        return OutputDifference(words, abs(self.difference.value), allowed)

    def document(self) -> dict[str, Any]:
        """In plain values; an end that is not known is None, because JSON has no infinity."""
        found = asdict(self)
        for name in ("run", "export", "difference"):
            for end in ("value", "low", "high"):
                if not math.isfinite(found[name][end]):
                    found[name][end] = None
        return found

    def describe(self) -> str:
        """The metric of both and the difference, as a sentence."""
        low, high = 100 * self.difference.low, 100 * self.difference.high
        return (
            f"{self.metric} on {self.measured_on}: {self.export.value:.2%}, the run's "
            f"{self.run.value:.2%}; difference {100 * self.difference.value:+.2f} points "
            f"(95 %: {low:+.2f} to {high:+.2f})"
        )


def find_test_rows(run: NetworkRun, dataset: str | None) -> TestRows | str:
    """The rows to measure an export on: of `dataset`, or the test part of the run's own.

    Returns
    -------
    The rows, or the reason why there are none. A `dataset` that cannot be read is an error.
    """
    if run.task is None or not is_run(run.folder):
        base = run.task is None
        why = "a base has no test part" if base else "the run keeps no recipe of its dataset"
        if dataset is not None:
            raise HeadstartError(f"nothing can be measured: {why}", fix="leave --test out")
        return why
    recipe = FinetuneConfig.load(run.folder)
    try:
        part, _ = evaluation_rows(recipe, run.task, dataset)
        part, _ = drop_seen(run.task, part, run.folder)
    except HeadstartError as error:
        if dataset is not None:
            raise
        return error.what
    # Where a person keeps a file is not for a model card.
    names = ", ".join(Path(name).name for name in ([dataset] if dataset else recipe.dataset))
    which = names if dataset else f"the test part of {names}"
    if len(part) > MOST_ROWS:
        rows = np.random.default_rng(0).permutation(len(part))[:MOST_ROWS]
        part = run.task.pick(part, sorted(rows.tolist()))
    return TestRows(part, names, f"{len(part):,} rows of {which}")


def measure_export(run: NetworkRun, exported: Run, test: TestRows) -> ExportMetric:
    """The test metric of run and export, and by how much the export's is higher."""
    task, part = run.task, test.part
    assert task is not None
    ours, theirs = run.scores(part).values, exported.scores(part).values
    if task.name in ("classification", "pairs"):
        labels = np.asarray(part.labels)
        right = [np.asarray(answers).argmax(axis=1) == labels for answers in (ours, theirs)]
        difference = paired_share_difference(*right)
    else:
        difference = _bootstrap(task, ours, theirs, part)
    before, after = (_with_interval(task, answers, part) for answers in (ours, theirs))
    return ExportMetric(
        metric=task.metric,
        dataset=test.dataset,
        rows=len(part),
        measured_on=test.measured_on,
        run=before,
        export=after,
        difference=difference,
    )


def _with_interval(task: Task[Any], answers: Any, part: Any) -> Interval:
    found = task.intervals(answers, part).get(task.metric)
    if found is not None:
        return Interval(**found)
    return Interval(float(task.metrics(answers, part)[task.metric]), -math.inf, math.inf)


def paired_share_difference(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Interval:
    """How much larger the second share of the same rows is (Bonett and Price 2012).

    Half a row more in each kind of disagreement: also rows without one say only so much.
    """
    rows = len(first) + 2
    gained = (int((second & ~first).sum()) + 0.5) / rows
    lost = (int((first & ~second).sum()) + 0.5) / rows
    half = QUANTILE * math.sqrt((gained + lost - (gained - lost) ** 2) / rows)
    value = float(second.mean() - first.mean())
    return Interval(value, gained - lost - half, gained - lost + half)


def _bootstrap(task: Task[Any], ours: Any, theirs: Any, part: Any) -> Interval:
    """Rows drawn with replacement; both metrics of the same rows."""
    random = np.random.default_rng(0)
    before, after = (task.metrics(answers, part)[task.metric] for answers in (ours, theirs))
    differences = []
    for _ in range(DRAWS):
        rows = random.integers(len(part), size=len(part)).tolist()
        drawn = task.pick(part, rows)
        values = [
            task.metrics(_picked(answers, rows), drawn)[task.metric] for answers in (ours, theirs)
        ]
        differences.append(values[1] - values[0])
    low, high = np.quantile(differences, [0.025, 0.975])
    return Interval(float(after - before), float(low), float(high))


def _picked(answers: Any, rows: list[int]) -> Any:
    if isinstance(answers, np.ndarray):
        return answers[rows]
    return [answers[row] for row in rows]
