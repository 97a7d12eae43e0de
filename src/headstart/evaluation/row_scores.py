"""The contribution of each row to a metric, and the metric's confidence interval over rows.

Accuracy, F1, exact match and their macro averages are means of ratios of sums over rows; F1 is
2·correct / (predicted + true). The bootstrap resamples rows: words of a sentence and labels of a
text stay together, because they are not independent.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headstart.evaluation.calibration import Floats
from headstart.evaluation.metrics import LEVEL, Interval, wilson_interval

DRAWS = 1_000
CELLS_AT_ONCE = 4_000_000  # draws × rows in memory


@dataclass(frozen=True)
class RowScores:
    """A metric as sums over rows: the mean over columns of Σ correct / Σ total.

    Columns are the classes of a macro average; any other metric has one. A column without a total
    counts as 0, as in scikit-learn.
    """

    correct: Floats  # (rows, columns)
    total: Floats  # (rows, columns)

    @property
    def value(self) -> float:
        """The metric."""
        return float(_ratio(self.correct.sum(0), self.total.sum(0)))

    def per_row(self) -> Floats:
        """Compute one number per row, (rows,), whose mean is the metric.

        Where all rows have the same total this is the row's score. Otherwise it is the metric's
        linearization (influence function) F + (correct − F·total) / mean total: means over
        resampled rows then vary as the ratio of sums does, to first order.
        """
        totals = self.total.mean(0)
        known = totals > 0
        ratios = np.divide(self.correct.mean(0), totals, out=np.zeros_like(totals), where=known)
        away = np.divide(
            self.correct - ratios * self.total, totals, where=known, out=np.zeros_like(self.correct)
        )
        return np.asarray((ratios + away).mean(1))

    def interval(self, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Interval:
        """Compute the metric's interval: Wilson's for a share of rows, otherwise a bootstrap's.

        Where all resamples agree, Wilson's interval for that many rows is used.
        """
        rows = len(self.correct)
        one_column = self.correct.size == rows
        if one_column and (self.total == 1).all() and np.isin(self.correct, (0, 1)).all():
            return wilson_interval(int(self.correct.sum()), rows, level)
        random = np.random.default_rng(seed)
        found = []
        chunk = max(1, CELLS_AT_ONCE // rows)
        for start in range(0, draws, chunk):
            size = min(chunk, draws - start)
            times = random.multinomial(rows, np.full(rows, 1 / rows), size).astype(np.float64)
            found.append(_ratio(times @ self.correct, times @ self.total))
        low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
        if low == high and 0 <= self.value <= 1:
            wide = wilson_interval(round(self.value * rows), rows, level)
            low, high = min(low, wide.low), max(high, wide.high)
        return Interval(self.value, float(low), float(high))


def ratio_scores(correct: ArrayLike, total: ArrayLike) -> RowScores:
    """Make the scores of Σ correct / Σ total from counts per row: (rows,) or (rows, columns)."""
    counts = [np.asarray(one, dtype=np.float64) for one in (correct, total)]
    return RowScores(*(one.reshape(len(one), -1) for one in counts))


def mean_scores(values: ArrayLike) -> RowScores:
    """Make the scores of a metric that is a mean over rows."""
    return ratio_scores(values, np.ones(len(np.asarray(values))))


def f1_scores(correct: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> RowScores:
    """Make the scores of F1 from counts per row: (rows,), or (rows, classes) for a macro F1."""
    return ratio_scores(2.0 * np.asarray(correct), np.add(predicted, true, dtype=np.float64))


def _ratio(correct: Floats, total: Floats) -> Floats:
    ratios = np.divide(correct, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(ratios.mean(-1))
