"""Intervals and tests of single quantities: a mean over seeds, two classifiers."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from headstart.evaluation.interval import LEVEL, Interval


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


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided p of McNemar's test from the rows that only one of two classifiers got right.

    Exact: under no difference, each such row is a fair coin.
    """
    disagreements = only_first + only_second
    if disagreements == 0:
        return 1.0
    return float(stats.binomtest(only_first, disagreements).pvalue)
