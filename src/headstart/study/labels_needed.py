"""How many labels an accuracy needs: a power law fitted to the label budgets that were tried.

The error falls as error = a · n^(−b) + c (Hestness et al., 2017). With three or four budgets the
floor c is hardly determined: any c below the lowest error has a line through the logarithms that
fits nearly as well. So c is not estimated but averaged over: each of many draws shakes the
measured errors as seeds and test rows would (as `label_savings` does), weighs every c of a grid by
how well its line fits the shaken errors, takes one of them by chance, and answers with it. The
interval is that of the answers, and holds what the floor's being unknown adds. A c below zero is
allowed, too: curves that have not bent yet fall faster than any power law with a floor, and without
it their larger budgets were inside the interval in 72 to 87 % of simulated studies, with it in 97.

No answer is given where the budgets are too few, where the accuracy does not rise with labels, or
where the goal lies farther outside than `FARTHEST` times the most labels tried.
`bench/extrapolation.py` hides the larger budgets of studies and counts how often they fall into
their intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.evaluation.metrics import LEVEL, Interval
from headstart.study.statistics import SeedVariance

DRAWS = 2000
FEWEST_BUDGETS = 3
FARTHEST = 10.0  # times the most labels tried
RANGE = (-0.6, 0.95)  # of c, in units of the lowest error
FLOORS = 24  # values of c that are tried
STEEPEST = 1.0  # error falls no faster than 1/n
LEAST_ERROR = 1e-3
RISING = 0.9  # of the draws must rise with labels


@dataclass(frozen=True)
class PowerLaws:
    """Draws of the three numbers of error = a · n^(−b) + c, and the range that they come from."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    budgets: tuple[int, ...]
    rising: float  # share of the draws in which labels helped at all

    def accuracy(self, labels: float, level: float = LEVEL) -> Interval:
        """The accuracy to be expected with so many labels."""
        found = 1 - self.c - self.a * labels**-self.b
        low, middle, high = np.quantile(found, [(1 - level) / 2, 0.5, (1 + level) / 2])
        return Interval(float(middle), max(0.0, float(low)), min(1.0, float(high)))

    def labels(self, goal: float, level: float = LEVEL) -> Interval:
        """The labels that the accuracy `goal` needs; infinite where it is never reached."""
        room = (1 - goal) - self.c
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.where(room > 0, (self.a / room) ** (1 / self.b), np.inf)
        # Order statistics, not interpolation: between a number and "never" lies nothing.
        ends = np.quantile(found, [(1 - level) / 2, 0.5, (1 + level) / 2], method="nearest")
        low, middle, high = map(float, ends)
        return Interval(middle, low, high)


@dataclass(frozen=True)
class LabelsNeeded:
    """The answer for one arm: labels with their interval, or why there is none."""

    labels: Interval | None
    refusal: str = ""


def fit_power_laws(
    budgets: Sequence[int],
    scores: np.ndarray,
    variance: SeedVariance | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> PowerLaws:
    """Fit power laws to one arm's errors, once for each draw of the bootstrap.

    Parameters
    ----------
    budgets : sequence of int
        Numbers of labels, ascending.
    scores : array of shape (budgets, seeds, rows)
        1 where the run is scores.
    draws, seed
        Of the bootstrap.
    """
    random = np.random.default_rng(seed)
    table = scores.astype(float)
    by_row, by_seed = table.mean(1), table.mean(2)
    drawn = draw_rows(by_row, draws, random) + seed_noise(by_seed, draws, random)
    errors = np.clip(1 - drawn, LEAST_ERROR, 1)  # (draws, budgets)
    spread = np.maximum((1 - drawn).std(0), LEAST_ERROR)
    x = np.log(np.asarray(budgets, dtype=float))
    floors = errors.min(1)[:, None] * np.linspace(*RANGE, FLOORS)  # (draws, floors)
    above = errors[:, None, :] - floors[:, :, None]  # (draws, floors, budgets)
    weights = (above / spread) ** 2  # of a logarithm: its error is spread / above
    mean_x = (weights * x).sum(-1) / weights.sum(-1)
    y = np.log(above)
    mean_y = (weights * y).sum(-1) / weights.sum(-1)
    off = x - mean_x[..., None]
    slope = (weights * off * (y - mean_y[..., None])).sum(-1) / (weights * off**2).sum(-1)
    b = np.clip(-slope, 1e-6, STEEPEST)
    a = np.exp(mean_y + b * mean_x)
    fitted = floors[..., None] + a[..., None] * np.exp(-b[..., None] * x)
    misfit = (((fitted - errors[:, None, :]) / spread) ** 2).sum(-1)
    chance = np.exp(-0.5 * (misfit - misfit.min(1, keepdims=True)))
    reached = chance.cumsum(1) / chance.sum(1, keepdims=True)
    pick = (random.random((draws, 1)) > reached).sum(1)
    every = np.arange(draws)
    rising = float((slope[:, 0] < 0).mean())
    return PowerLaws(a[every, pick], b[every, pick], floors[every, pick], tuple(budgets), rising)


def labels_needed(
    budgets: Sequence[int],
    scores: np.ndarray,
    goal: float,
    variance: SeedVariance | None = None,
    *,
    draws: int = DRAWS,
) -> LabelsNeeded:
    """The labels that an arm needs for an accuracy, or why that cannot be said."""
    if len(budgets) < FEWEST_BUDGETS:
        few = "one label budget" if len(budgets) == 1 else f"{len(budgets)} label budgets"
        return LabelsNeeded(None, f"{few}: at least {FEWEST_BUDGETS} make a curve")
    if scores.shape[1] < 2:
        return LabelsNeeded(None, "one seed: the spread between seeds is unknown")
    laws = fit_power_laws(budgets, scores, variance, draws=draws)
    if laws.rising < RISING:
        return LabelsNeeded(None, "accuracy does not clearly rise with labels")
    found = laws.labels(goal)
    if found.high <= budgets[0]:
        return LabelsNeeded(None, f"fewer than {budgets[0]:,}, the fewest tried")
    if found.low > FARTHEST * budgets[-1]:
        return LabelsNeeded(None, f"more than {FARTHEST * budgets[-1]:,.0f}, if ever")
    if found.value > FARTHEST * budgets[-1]:
        least = float(f"{found.low:.2g}")
        return LabelsNeeded(None, f"more than {least:,.0f}, perhaps never")
    return LabelsNeeded(found)


def labels_to_reach(budgets: Sequence[int], accuracies: np.ndarray, goal: float) -> float:
    """The number of labels at which the curve first reaches `goal`.

    Between two budgets the accuracy is taken to grow evenly with the logarithm of the labels.
    0 where the fewest labels already reach it, infinity where all of them do not.
    """
    reached = np.flatnonzero(np.asarray(accuracies) >= goal)
    if len(reached) == 0:
        return math.inf
    k = int(reached[0])
    if k == 0:
        return 0.0
    below, above = accuracies[k - 1], accuracies[k]
    share = (goal - below) / (above - below)
    return float(math.exp(np.interp(share, [0, 1], np.log(budgets[k - 1 : k + 1]))))


@dataclass(frozen=True)
class LabelSavings:
    """At how many labels one arm reaches what another does with the most that were tried.

    `labels`, `low` and `high` are 0 for "fewer than the fewest tried" and infinite for "not within
    this range".
    """

    goal: float  # the accuracy that the other arm reaches with the most labels
    most: int
    fewest: int
    labels: float
    low: float
    high: float


def label_savings(
    budgets: Sequence[int],
    first: np.ndarray,
    second: np.ndarray,
    variance: SeedVariance | None = None,
    *,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = 0,
) -> LabelSavings:
    """At how many labels `first` reaches what `second` reaches with the most of them.

    Both are (budgets, seeds, rows), 1 where the run is right. Rows are drawn with replacement.
    The seeds' share is drawn from the multivariate t of their observed spread, because so few
    of them, drawn with replacement, would show too little of it.
    """
    both = np.concatenate([first, second]).astype(float)  # (2·budgets, seeds, rows)
    curves, count = len(both), len(budgets)
    by_row, by_seed = both.mean(1), both.mean(2)  # (curves, rows), (curves, seeds)
    goal = float(by_seed[-1].mean())
    labels = labels_to_reach(budgets, by_seed[:count].mean(1), goal)
    random = np.random.default_rng(seed)
    drawn = draw_rows(by_row, draws, random) + seed_noise(by_seed, draws, random)
    found = [labels_to_reach(budgets, curve[:count], curve[curves - 1]) for curve in drawn]
    # Order statistics, not interpolation: between "beyond the range" and a number lies nothing.
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], method="nearest")
    if both.shape[1] < 2:
        low, high = 0.0, math.inf
    return LabelSavings(goal, budgets[-1], budgets[0], labels, float(low), float(high))


def seed_noise(by_seed: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    """Draws (draws, curves) of the error of a mean over seeds, correlated as the curves are."""
    seeds = by_seed.shape[1]
    if seeds < 2:
        return np.zeros((draws, len(by_seed)))
    deviations = (by_seed - by_seed.mean(1, keepdims=True)) / math.sqrt(seeds * (seeds - 1))
    normal = random.normal(size=(draws, seeds)) @ deviations.T
    return normal / np.sqrt(random.chisquare(seeds - 1, size=(draws, 1)) / (seeds - 1))


def draw_rows(table: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    """Draw rows with replacement and return the mean of every line of `table`: (draws, lines)."""
    kinds, counts = np.unique(table, axis=1, return_counts=True)
    rows = table.shape[1]
    return random.multinomial(rows, counts / rows, draws) @ kinds.T / rows
