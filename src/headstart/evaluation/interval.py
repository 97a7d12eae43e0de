"""A number and where it may lie: every share and every mean here comes with one."""

import math
from dataclasses import dataclass

from scipy.stats import binomtest

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A value and the bounds that hold the true one in 95 of 100 such measurements.

    An infinite bound means that the data cannot say.
    """

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def excludes(self, number: float) -> bool:
        return self.low > number or self.high < number


def wilson_interval(successes: int, total: int, level: float = LEVEL) -> Interval:
    """A share and its interval over rows (Wilson, 1927).

    Unlike the usual ±, it stays within 0 and 1 and holds near them, and for few rows.
    """
    bounds = binomtest(successes, total).proportion_ci(confidence_level=level, method="wilson")
    return Interval(successes / total, float(bounds.low), float(bounds.high))
