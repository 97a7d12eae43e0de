"""Intervals, the paired difference of two arms, McNemar's test, and which differences are claimed.

The paired difference: two things vary, the seeds (which labelled rows were drawn, how the network
started) and the test rows. A bootstrap over both sees both, but three seeds drawn with replacement
show too little of their spread: in simulations with no true difference (three seeds, 200 and 1,000
rows, five mixes of seed and row noise, 600 studies each) it claimed one in up to 20 % of studies.
Student's t over seeds allows for few seeds, but does not see that all seeds share their test
rows: up to 55 %. The interval that covers both claimed one in 0 to 6 %. So that is the one used.

Which differences a study may claim: looking several times must not be several chances to err.
Four rules, from the outside in:
- Each objective gets its share of the 5 % (Bonferroni), because the one that gains most speaks.
- The difference between the headline arm and its control is the sum of steps: counting, then
  pretraining. A step is claimed only where the whole difference excludes zero as well as its own
  does (closed testing: Marcus, Peritz and Gabriel 1976). So where neither does anything, one is
  claimed in at most 5 % of studies; where only one does, the other is claimed in at most 5 %.
- Both are means over all label budgets. So a study of arms that are alike claims a difference no
  more often than that one question allows, however many budgets it has and whatever is said of
  them.
- Of the budgets that are named, one stands out only if the mean over every group of them that it
  belongs to excludes zero (closed testing again). So where some budgets differ and others do not,
  one of the others is named with at most the same 5 %. Unlike dividing the 5 %, this leaves the
  intervals of three seeds as narrow as they are: a budget's own interval is the last test that it
  has to pass.

A study may hence claim a difference over all budgets and none at a single one, and that is what is
to be said then. The opposite cannot happen. What is said of the reference arm beside is a question
of its own, with 5 % of its own and the last rule.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy import stats

from headstart.evaluation.metrics import LEVEL, Interval, wilson_interval

DRAWS = 2000
CELLS_AT_ONCE = 4_000_000  # draws × kinds of rows held in memory


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


def share_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """The same for shares, such as accuracies: no bound is below 0 or above 1."""
    return _as_share(mean_interval(values))


def accuracy_interval(right: np.ndarray, *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The accuracy of an arm and its interval over seeds and test rows.

    Parameters
    ----------
    right : array of shape (seeds, rows)
        1 where the run is right.
    draws, seed
        Of the bootstrap.

    Returns
    -------
    Interval
        The wider of a bootstrap over both and Student's t over seeds, within 0 and 1. Of one seed,
        or of seeds that do not vary, Wilson's interval over test rows.
    """
    accuracies = right.mean(1)
    rows = right.shape[1]
    value = float(accuracies.mean())
    if (accuracies == accuracies[0]).all():
        over_rows = wilson_interval(round(value * rows), rows)
        return Interval(value, over_rows.low, over_rows.high)
    drawn = bootstrap_means(right.astype(float), draws=draws, seed=seed)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    student = mean_interval(accuracies)
    return _as_share(Interval(value, min(float(low), student.low), max(float(high), student.high)))


def _as_share(interval: Interval) -> Interval:
    if not interval.bounded:
        return interval
    return Interval(interval.value, max(0.0, interval.low), min(1.0, interval.high))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided p of McNemar's test from the rows that only one of two classifiers got right.

    Exact: under no difference, each such row is a fair coin.
    """
    disagreements = only_first + only_second
    if disagreements == 0:
        return 1.0
    return float(stats.binomtest(only_first, disagreements).pvalue)


def paired_difference(
    first: np.ndarray,
    second: np.ndarray,
    *,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Accuracy of `first` minus accuracy of `second`, with an interval over seeds and test rows.

    Parameters
    ----------
    first, second : arrays of shape (seeds, rows)
        1 where the run is right, the same seeds and rows in the same order.
    level, draws, seed
        Of the interval, and of the bootstrap.

    Returns
    -------
    Interval
        Unbounded with one seed, because the spread between seeds is unknown then.
    """
    gaps = first.astype(float) - second.astype(float)  # (seeds, rows)
    value = float(gaps.mean())
    if len(gaps) < 2:
        return Interval(value, -math.inf, math.inf)
    resampled = bootstrap_means(gaps, draws=draws, seed=seed)
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    student = mean_interval(gaps.mean(1), level)
    low, high = min(float(low), student.low), max(float(high), student.high)
    return Interval(value, max(low, -1.0), min(high, 1.0))  # an accuracy changes by no more


def bootstrap_means(table: np.ndarray, *, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """Means of `table` (seeds, rows) with seeds and rows both drawn with replacement: (draws,)."""
    random = np.random.default_rng(seed)
    seeds = len(table)
    rows_drawn = draw_rows(table, draws, random)  # (draws, seeds)
    seeds_drawn = random.multinomial(seeds, np.full(seeds, 1 / seeds), draws) / seeds
    return np.einsum("ds,ds->d", seeds_drawn, rows_drawn)


def draw_rows(table: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    """The mean of every line of `table` (lines, rows), its rows drawn with replacement.

    Columns that are equal are counted together, which is the same draw and many times faster:
    three seeds that are right or wrong make 27 kinds of rows, however many there are.
    """
    kinds, counts = np.unique(table, axis=1, return_counts=True)
    rows = table.shape[1]
    chunk = max(1, CELLS_AT_ONCE // len(counts))
    drawn = [
        random.multinomial(rows, counts / rows, min(chunk, draws - start)) @ kinds.T / rows
        for start in range(0, draws, chunk)
    ]
    return np.concatenate(drawn)


def shared_level(questions: int) -> float:
    """The level of each of several questions, so that all of them together err in 5 %."""
    return 1 - (1 - LEVEL) / questions


def named_budgets(budgets: Sequence[int]) -> list[int]:
    """Those that are spoken of: the fewest labels and the most."""
    return sorted({budgets[0], budgets[-1]})


def standing_out(first: np.ndarray, second: np.ndarray, *, level: float = LEVEL) -> list[bool]:
    """Which of the named budgets stand out, by the last rule.

    Both are (budgets, seeds, rows), 1 where the run is right: the named budgets and no others.
    """
    found = [True] * len(first)
    for size in range(len(first), 0, -1):
        for group in map(list, combinations(range(len(first)), size)):
            mean = paired_difference(first[group].mean(0), second[group].mean(0), level=level)
            if not mean.excludes(0):
                found = [stands and k not in group for k, stands in enumerate(found)]
    return found
