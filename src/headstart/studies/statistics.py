"""Intervals and tests of single quantities: a mean over seeds, an accuracy, two classifiers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A value and where it may lie; an infinite end means that the data cannot say."""

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def excludes(self, number: float) -> bool:
        return self.low > number or self.high < number


def mean_interval(values: Sequence[float] | np.ndarray, level: float = LEVEL) -> Interval:
    """The mean and Student's t interval: a few seeds show little of their spread.

    With one value nothing is known of the spread, so the interval is unbounded.
    """
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    if len(array) < 2:
        return Interval(mean, -math.inf, math.inf)
    standard_error = float(array.std(ddof=1)) / math.sqrt(len(array))
    reach = float(stats.t.ppf((1 + level) / 2, len(array) - 1)) * standard_error
    return Interval(mean, mean - reach, mean + reach)


def wilson_interval(correct: int, count: int, level: float = LEVEL) -> Interval:
    """The accuracy of one run and its interval over test rows (Wilson, 1927).

    Unlike the usual ±, it stays within 0 and 1 and holds near them.
    """
    share = correct / count
    z = float(stats.norm.ppf((1 + level) / 2))
    scale = 1 + z * z / count
    centre = (share + z * z / (2 * count)) / scale
    reach = z / scale * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return Interval(share, max(0.0, centre - reach), min(1.0, centre + reach))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided p of McNemar's test from the rows that only one of two classifiers got right.

    Exact: under no difference, each such row is a fair coin.
    """
    disagreements = only_first + only_second
    if disagreements == 0:
        return 1.0
    return float(stats.binomtest(only_first, disagreements).pvalue)
