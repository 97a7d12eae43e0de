"""How many labels a score needs, and how many labels one arm saves compared with another.

The error falls with the labels n as error = a · n^(−b) + c (Hestness et al., 2017). Three or four
budgets hardly determine the floor c: nearly every c below the lowest error has a curve that fits.
So the three numbers are not estimated but averaged over: `fit_power_laws` computes the posterior
on a grid of b and c (a is integrated out), with the covariance that the budgets' errors have
because they share the test rows, and draws from it. A floor below zero is allowed: curves that
have not bent yet fall faster than any power law with a floor.

`bench/extrapolation.py` hides the larger budgets of studies and counts how often the intervals hold
them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from headstart.evaluation.metrics import LEVEL, Interval
from headstart.study.statistics import SeedVariance, mean_covariance

DRAWS = 2000
FEWEST_BUDGETS = 3
FARTHEST = 10.0  # times the most labels tried: no number is given beyond
FLOORS = np.concatenate([np.linspace(-2, -0.1, 16), np.linspace(0, 0.95, 16)])  # c / lowest error
SLOPES = np.linspace(0.025, 1.0, 40)  # b: the error falls no faster than 1/n
LEAST_ERROR = 1e-3
RISING = 0.9  # probability that labels help, below which no number is given


@dataclass(frozen=True)
class PowerLaws:
    """Draws of the three numbers of error = a · n^(−b) + c.

    Attributes
    ----------
    a, b, c : arrays of shape (draws,)
    rising : float
        Probability that more labels help at all.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    rising: float

    def score(self, labels: float) -> Interval:
        """Predict the score with so many labels."""
        found = np.clip(1 - self.c - self.a * labels**-self.b, 0, 1)
        return _quantiles(found)

    def labels(self, goal: float) -> Interval:
        """Predict the labels that a score needs; infinite where it is never reached."""
        room = (1 - goal) - self.c
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.where(room > 0, (self.a / room) ** (1 / self.b), np.inf)
        return _quantiles(found)


def _quantiles(found: np.ndarray) -> Interval:
    """Median and interval. No interpolation: between a number and infinity lies nothing."""
    ends = np.quantile(found, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], method="nearest")
    low, middle, high = map(float, ends)
    return Interval(middle, low, high, "posterior of a power law")


def fit_power_laws(
    budgets: Sequence[int],
    scores: np.ndarray,
    variance: SeedVariance | None = None,
) -> PowerLaws:
    """Draw power laws from their posterior, given one arm's scores.

    Parameters
    ----------
    budgets : sequence of int
        Numbers of labels, ascending.
    scores : array of shape (budgets, seeds, rows)
        At least two seeds.
    variance : SeedVariance, optional
        Pooled over the study.
    """
    errors = np.maximum(1 - scores.mean((1, 2)), LEAST_ERROR)
    precision = np.linalg.inv(mean_covariance(scores, variance))
    x = np.log(np.asarray(budgets, dtype=float))
    centre = x.mean()
    # The error above the floor is amount · shape; the shape is 1 in the middle of the budgets.
    shapes = np.exp(-SLOPES[:, None] * (x - centre))  # (slopes, budgets)
    floors = errors.min() * FLOORS
    above = errors - floors[:, None]  # (floors, budgets)
    information = np.einsum("sb,bc,sc->s", shapes, precision, shapes)
    amount = np.einsum("sb,bc,fc->sf", shapes, precision, above) / information[:, None]
    misfit = np.einsum("fb,bc,fc->f", above, precision, above) - amount**2 * information[:, None]
    spread = 1 / np.sqrt(information)[:, None]
    positive = stats.norm.logcdf(amount / spread)
    weight = np.log(spread) + positive - 0.5 * misfit
    chance = np.exp(weight - weight.max()).ravel()
    random = np.random.default_rng(0)
    picked = random.choice(chance.size, DRAWS, p=chance / chance.sum())
    slope, floor = np.unravel_index(picked, weight.shape)
    lowest = stats.norm.cdf(-amount[slope, floor] / spread[slope, 0])  # amounts are positive
    normal = stats.norm.ppf(lowest + (1 - lowest) * random.random(DRAWS))
    b, drawn = SLOPES[slope], amount[slope, floor] + spread[slope, 0] * normal
    off = precision @ (x - (precision @ x).sum() / precision.sum())
    rising = float(stats.norm.cdf(-(off @ errors) / math.sqrt(off @ x)))
    return PowerLaws(drawn * np.exp(b * centre), b, floors[floor], rising)


def labels_needed(
    budgets: Sequence[int],
    scores: np.ndarray,
    goal: float,
    variance: SeedVariance | None = None,
) -> Interval | str:
    """Predict the labels that an arm needs to reach the score `goal`.

    Parameters
    ----------
    budgets, scores, variance
        As of `fit_power_laws`.
    goal : float
        Between 0 and 1.

    Returns
    -------
    Interval or str
        The labels with their interval, or the reason why there is no number.
    """
    if len(budgets) < FEWEST_BUDGETS:
        few = "one label budget" if len(budgets) == 1 else f"{len(budgets)} label budgets"
        return f"{few}: at least {FEWEST_BUDGETS} make a curve"
    if scores.shape[1] < 2:
        return "one seed: the variance between seeds is unknown"
    laws = fit_power_laws(budgets, scores, variance)
    if laws.rising < RISING:
        return "the score does not clearly rise with labels"
    found, farthest = laws.labels(goal), FARTHEST * budgets[-1]
    if found.high <= budgets[0]:
        return f"fewer than {budgets[0]:,}, the fewest tried"
    if found.value > farthest:
        least = min(found.low, farthest)
        return f"more than {float(f'{least:.2g}'):,.0f}, perhaps never"
    return found


def labels_to_reach(budgets: Sequence[int], scores: np.ndarray, goal: float) -> float:
    """Find the number of labels at which a measured curve first reaches `goal`.

    Between two budgets the score is taken to grow evenly with the logarithm of the labels.
    0 where the fewest labels already reach it, infinity where all of them do not.
    """
    reached = np.flatnonzero(np.asarray(scores) >= goal)
    if len(reached) == 0:
        return math.inf
    k = int(reached[0])
    if k == 0:
        return 0.0
    share = (goal - scores[k - 1]) / (scores[k] - scores[k - 1])
    return float(budgets[k - 1] * (budgets[k] / budgets[k - 1]) ** share)


def label_savings(
    budgets: Sequence[int],
    first: np.ndarray,
    second: np.ndarray,
    variance: SeedVariance | None = None,
    *,
    draws: int = DRAWS,
) -> Interval:
    """Find at how many labels `first` reaches what `second` reaches with the most of them.

    Parameters
    ----------
    budgets : sequence of int
        Numbers of labels, ascending.
    first, second : arrays of shape (budgets, seeds, rows)
    variance : SeedVariance, optional
        Pooled over the study.
    draws : int
        Of the posterior, for the interval.

    Returns
    -------
    Interval
        0 stands for fewer labels than the fewest tried, infinity for more than the most; the value
        lies between the ends.
    """
    curves = np.concatenate([first, second[-1:]])
    means = curves.mean((1, 2))
    labels, low, high = labels_to_reach(budgets, means[:-1], means[-1]), 0.0, math.inf
    if curves.shape[1] > 1:
        random = np.random.default_rng(0)
        drawn = random.multivariate_normal(means, mean_covariance(curves, variance), draws)
        found = [labels_to_reach(budgets, curve[:-1], curve[-1]) for curve in drawn]
        ends = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        low, high = map(float, ends)
    return Interval(min(max(labels, low), high), low, high, "draws of the measured curves")
