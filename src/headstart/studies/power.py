"""How many seeds would show the difference that a few of them saw.

A few seeds whose interval is wide have not shown that two arms are level. From the spread seen, a
paired t test over n seeds has a known power to find a difference of the size seen; the smallest n
with 80 % is what a study would need. More seeds do not help against too few test rows, which all
of them share, so the rows' part of the error must be small enough, too.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from headstart.evaluation.metrics import LEVEL, Interval

POWER = 0.8
MOST_SEEDS = 30  # more are not worth advising
LEVEL_POINTS = 0.02  # a difference that is surely smaller is called none


@dataclass(frozen=True)
class Power:
    """What would tell two arms apart, if their difference is as large as it looks."""

    seeds: int  # that there are
    needed: float  # infinite where `MOST_SEEDS` would not do
    rows_needed: float  # test rows without which no number of seeds does; 0 if there are enough


def find_power(first: np.ndarray, second: np.ndarray, *, level: float = LEVEL) -> Power:
    """The seeds and rows that a paired comparison needs.

    Parameters
    ----------
    first, second : arrays of shape (seeds, rows)
        1 where the run is right (or a mean of such values over budgets).
    level : float
        Of the interval that is to exclude zero.
    """
    gaps = first.astype(float) - second.astype(float)
    seeds, rows = gaps.shape
    size = abs(float(gaps.mean()))
    if seeds < 2 or rows < 2 or size == 0:
        return Power(seeds, math.inf, 0.0)
    spread = float(gaps.mean(1).std(ddof=1))
    rest = gaps - gaps.mean(0) - gaps.mean(1, keepdims=True) + gaps.mean()
    noise = float((rest**2).sum()) / ((seeds - 1) * (rows - 1))
    by_row = max(0.0, float(gaps.mean(0).var(ddof=1)) - noise / seeds)  # shared by all seeds
    reach = float(stats.norm.ppf((1 + level) / 2) + stats.norm.ppf(POWER))
    rows_needed = by_row * (reach / size) ** 2
    if rows_needed > rows:
        return Power(seeds, math.inf, rows_needed)
    for count in range(seeds + 1, MOST_SEEDS + 1):
        both = math.sqrt(by_row / rows + spread**2 / count)
        if size >= reach * both and t_power(size, spread, count, level) >= POWER:
            return Power(seeds, count, 0.0)
    return Power(seeds, math.inf, 0.0)


def t_power(size: float, spread: float, count: int, level: float = LEVEL) -> float:
    """The chance that a paired t test over `count` seeds finds a difference of this size.

    Example
    -------
    >>> round(t_power(size=1.0, spread=1.0, count=10), 2)
    0.8
    """
    if spread == 0:
        return 1.0
    bound = stats.t.ppf((1 + level) / 2, count - 1)
    shift = size * math.sqrt(count) / spread
    both = stats.nct.sf(bound, count - 1, shift) + stats.nct.cdf(-bound, count - 1, shift)
    return float(both) if math.isfinite(both) else 1.0  # SciPy's tail of a very large shift


def is_level(difference: Interval) -> bool:
    """Whether the arms are as good as each other: the interval lies near zero, on both sides."""
    return -LEVEL_POINTS <= difference.low <= 0 <= difference.high <= LEVEL_POINTS
