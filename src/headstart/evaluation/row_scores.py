"""What each row adds to a metric, and the metric's interval over rows.

Accuracy, F1, exact match and their macro averages are all means of ratios of sums: the sum over
rows of what was right, over the sum of what there was. F1 is 2·right / (predicted + true), so a
sentence without entities adds nothing to it. The bootstrap draws rows with replacement; words of
one sentence, or labels of one text, stay together: they are not independent of each other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headstart.evaluation.calibration import Floats
from headstart.evaluation.metrics import LEVEL, Interval, wilson_interval

DRAWS = 1_000
CELLS_AT_ONCE = 4_000_000  # draws × rows held in memory


@dataclass(frozen=True)
class RowScores:
    """A metric as sums over rows: the mean over columns of Σ right / Σ total.

    Columns are classes where the metric is a macro average; else there is one. A column without a
    total counts as 0, as in scikit-learn.
    """

    right: Floats  # (rows, columns)
    total: Floats  # (rows, columns)

    @property
    def value(self) -> float:
        """The metric itself."""
        return float(_ratio(self.right.sum(0), self.total.sum(0)))

    def per_row(self) -> Floats:
        """One number per row, (rows,), whose mean is the metric.

        Where every row has the same total this is simply the row's own score. Where totals differ
        it is the metric's linearization (its influence function): F + (right − F·total) / mean
        total. Means over drawn rows then vary as the ratio of sums does, to first order, so that
        whatever compares accuracies row by row can compare F1 as well.
        """
        totals = self.total.mean(0)
        known = totals > 0
        ratios = np.divide(self.right.mean(0), totals, out=np.zeros_like(totals), where=known)
        away = np.divide(
            self.right - ratios * self.total, totals, where=known, out=np.zeros_like(self.right)
        )
        return np.asarray((ratios + away).mean(1))

    def interval(self, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Interval:
        """The metric with its interval over rows: Wilson's for a share of them, else a bootstrap's.

        Rows that are all alike have nothing to draw: there Wilson's interval for as many rows says
        how little they prove.
        """
        rows = len(self.right)
        if (
            (self.total == 1).all()
            and np.isin(self.right, (0, 1)).all()
            and self.right.size == rows
        ):
            return wilson_interval(int(self.right.sum()), rows, level)
        random = np.random.default_rng(seed)
        found = []
        chunk = max(1, CELLS_AT_ONCE // rows)
        for start in range(0, draws, chunk):
            size = min(chunk, draws - start)
            times = random.multinomial(rows, np.full(rows, 1 / rows), size).astype(np.float64)
            found.append(_ratio(times @ self.right, times @ self.total))
        low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
        if low == high and 0 <= self.value <= 1:
            wide = wilson_interval(round(self.value * rows), rows, level)
            low, high = min(low, wide.low), max(high, wide.high)
        return Interval(self.value, float(low), float(high))


def mean_scores(values: ArrayLike) -> RowScores:
    """The scores of a metric that is a mean over rows: right or wrong, or a row's own F1."""
    right = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    return RowScores(right, np.ones_like(right))


def f1_scores(right: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> RowScores:
    """The scores of F1 from counts of each row: (rows,), or (rows, classes) for a macro average."""
    counts = [np.asarray(one, dtype=np.float64) for one in (right, predicted, true)]
    hits, given, wanted = (one.reshape(len(one), -1) for one in counts)
    return RowScores(2 * hits, given + wanted)


def _ratio(right: Floats, total: Floats) -> Floats:
    ratios = np.divide(right, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(ratios.mean(-1))
