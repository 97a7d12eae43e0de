"""How fast an arm learns: epochs to its best, and labels to reach another arm's accuracy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.evaluation.metrics import LEVEL
from headstart.studies.statistics import DRAWS, draw_rows


def epochs_to_reach(accuracies: Sequence[float], share: float = 0.95) -> int:
    """The first epoch (from 1) whose accuracy is at least `share` of the curve's best."""
    goal = share * max(accuracies)
    return next(epoch for epoch, value in enumerate(accuracies, 1) if value >= goal)


def area_under_curve(accuracies: Sequence[float]) -> float:
    """The mean height of a curve over its epochs (trapezoids): 1 is a perfect start."""
    if len(accuracies) == 1:
        return float(accuracies[0])
    return float(np.trapezoid(accuracies) / (len(accuracies) - 1))


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
