"""What is counted row by row: calibration, confusion, and where two arms differ."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.evaluation.calibration import calibration_error, reliability_bins
from headstart.studies.comparison import Series
from headstart.studies.results import Predictions, TestRow


@dataclass(frozen=True)
class Calibration:
    """How often runs are right at each stated confidence; seeds together."""

    series: Series
    bins: list[tuple[float, float, int]]  # mean confidence, share right, rows; empty ones left out
    error: float  # expected calibration error: the mean distance of the two, weighted by rows


@dataclass(frozen=True)
class ExampleRow:
    """A test row that one arm gets right and the other wrong, with their mean certainty."""

    row: TestRow
    first_probability: float  # given to the right label, mean over seeds
    second_probability: float


def of_series(said: Sequence[Predictions], series: Series, labels: int) -> list[Predictions]:
    """The runs of one arm at one budget, one run per seed."""
    wanted = (*series, labels)
    return [p for p in said if (p.run.arm, p.run.objective, p.run.labels) == wanted]


def calibration(series: Series, runs: Sequence[Predictions]) -> Calibration:
    """The bins and the error of `evaluation.calibration`, which `evaluate` shows as well."""
    probabilities = np.concatenate([run.probabilities for run in runs]).astype(np.float64)
    gold = np.concatenate([run.gold for run in runs])
    found = reliability_bins(probabilities, gold)
    bins = [(one.confidence, one.accuracy, one.rows) for one in found]
    return Calibration(series, bins, calibration_error(probabilities, gold))


def confusion(runs: Sequence[Predictions], classes: int) -> np.ndarray:
    """(gold, predicted) counts, seeds together."""
    counts = np.zeros((classes, classes), dtype=int)
    for run in runs:
        np.add.at(counts, (run.gold, run.predicted), 1)
    return counts


def examples(
    first: Sequence[Predictions],
    second: Sequence[Predictions],
    rows: Sequence[TestRow],
    count: int = 2,
) -> list[ExampleRow]:
    """Rows that most seeds of `first` get right and most of `second` wrong, clearest first."""
    if not first or not second:
        return []
    right = [np.mean([p.predicted == p.gold for p in runs], axis=0) for runs in (first, second)]
    sure = [np.mean([_gold_probability(p) for p in runs], axis=0) for runs in (first, second)]
    wanted = np.flatnonzero((right[0] > 0.5) & (right[1] < 0.5))
    clearest = wanted[np.argsort(-(sure[0] - sure[1])[wanted], kind="stable")]
    by_number = {row.row: row for row in rows}
    found: list[ExampleRow] = []
    seen: set[str] = set()
    for i in clearest:
        row = by_number[int(first[0].rows[i])]
        if row.text not in seen and len(found) < count:
            seen.add(row.text)
            found.append(ExampleRow(row, float(sure[0][i]), float(sure[1][i])))
    return found


def _gold_probability(said: Predictions) -> np.ndarray:
    return said.probabilities[np.arange(len(said.gold)), said.gold]
