"""Intervals over seeds and test rows, a pooled variance between seeds, and tests of differences.

Every function takes row scores of shape (seeds, rows): 1 where a run is correct, or numbers whose
mean is the metric. All seeds share the test rows, so seeds and rows are crossed::

    score = mean + seed + row + residual

and the variance of the mean is that of the seeds' means / seeds + that of the rows / rows.

**Few seeds.** With two seeds there is one degree of freedom, and Student's interval extends 12.7
standard errors. So the variance between seeds is pooled over the arms and budgets of a study, and
that of one table is shrunk towards it (the moderated variance of limma: Smyth, 2004, Statistical
Applications in Genetics and Molecular Biology 3). Variances are pooled as ratios to the variance
that the residuals alone cause, which many rows estimate well and which explains most of why small
budgets vary more. The degrees of freedom of seeds and rows are combined by Satterthwaite's
approximation.

**Few rows.** Where two arms agree on every row the observed variance is zero. So half a row is
added to each cell of the table of two classifiers (Agresti and Min, 2005, Statistics in Medicine
24), and two successes and two failures to a mean (Agresti and Coull, 1998, The American
Statistician 52). No interval has zero width, and none leaves the possible range.

**Folds.** In a study in folds, every seed assigns the rows to other folds, so the variance between
seeds includes that of trainings, which the rows of a fold share. All trainings use the same
labelled rows, which the variance between seeds does not include. So variances are multiplied by
1 + 1 / (folds − 1), where the last term is test rows / training rows, as Nadeau and Bengio (2003,
Machine Learning 52) propose.

**Several comparisons.** More comparisons must not cause more wrong claims. The main comparisons of
a study, one over all budgets for each objective, share the 5 % (Bonferroni). A step from control to
headline arm is claimed only if the intervals of its mean over all budgets and of the mean of the
whole difference exclude zero; at a single budget, only if this also holds for the mean over every
group of named budgets that contains it (`closed_p_values`). This is closed testing (Marcus, Peritz
and Gabriel, 1976, Biometrika 63); it does not widen the intervals. All other pairs of arms at a
budget are corrected together (`holm_p_values`).

**Labels.** The error falls with the labels n as error = a · n^(−b) + c (Hestness et al., 2017).
Three or four budgets hardly determine the floor c, so `fit_power_laws` averages over all curves: it
computes the posterior on a grid of b and c (a is integrated out), with the covariance that the
budgets' errors have because they share the test rows, and draws from it. Negative floors are
allowed, because measured curves can fall faster than any power law with a floor of 0 or more.

`research/statistics.md` and `bench/extrapolation.py` measure the coverage of these intervals.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeVar

import numpy as np
from scipy import stats

from headstart.evaluation.metrics import LEVEL, Interval

Key = TypeVar("Key", bound=Hashable)
Array = np.ndarray

POWER = 0.8
EQUIVALENT = 0.02  # a difference whose interval is within ± this counts as no difference
PRIOR_WEIGHT = 4.0  # degrees of freedom, for ratios that differ up to fourfold between arms
DRAWS = 2000
FEWEST_BUDGETS = 3
FARTHEST = 10.0  # times the largest budget: beyond it, no number is estimated
FLOORS = np.concatenate([np.linspace(-2, -0.1, 16), np.linspace(0, 0.95, 16)])  # c / lowest error
SLOPES = np.linspace(0.025, 1.0, 40)  # b: the error falls no faster than 1/n
RISING = 0.9  # minimum probability that labels help, for a number to be estimated


@dataclass(frozen=True)
class Prior:
    """The pooled variance of the seeds' means."""

    ratio: float = 1.0  # as a multiple of the variance that residuals alone cause
    weight: float = 0.0  # its degrees of freedom, in addition to those of the table itself
    total: float = math.inf  # those of all tables together: no interval uses more
    widening: float = 1.0  # what every variance of a mean is multiplied by


@dataclass(frozen=True)
class SeedVariance:
    """The pooled variance between seeds: of mean scores and of differences of two arms."""

    scores: Prior = Prior()
    differences: Prior = Prior()


OWN_SEEDS = SeedVariance()  # a table's own seeds are all that is known


def seed_variance(
    tables: Mapping[Key, Array], pairs: Iterable[tuple[Key, Key]] | None = None, *, folds: int = 1
) -> SeedVariance:
    """Pool the variance between seeds over the tables of a study.

    `tables` has the row scores (seeds, rows) of every arm at every budget; one column for values
    that are means already. `pairs` are the tables that are compared, for example arms at the same
    budget; by default all. Pairs of different shapes are skipped. `folds` is 1 where no test row
    trains any run.
    """
    parts = {key: _Parts(table) for key, table in tables.items() if len(table) > 1}
    compared = [
        (first, second)
        for first, second in (combinations(parts, 2) if pairs is None else pairs)
        if first in parts and second in parts and tables[first].shape == tables[second].shape
    ]
    widening = 1 + 1 / (folds - 1) if folds > 1 else 1.0
    if not compared:
        return SeedVariance(
            _pool(list(parts.values()), len(parts), widening), Prior(widening=widening)
        )
    gaps = [_Parts(np.subtract(tables[a], tables[b], dtype=float)) for a, b in compared]
    # Arms share the labelled rows of a seed: the variance that differences lack is correlated.
    # (`fsum` does not depend on the order of the tables.)
    separate = math.fsum(parts[a].between + parts[b].between for a, b in compared)
    shared = max(0.0, 1 - math.fsum(gap.between for gap in gaps) / separate) if separate else 0.0
    # The differences of k arms are k − 1 independent ones, as each arm has k − 1 partners.
    partners = 2 * len(compared) / len(parts)
    return SeedVariance(
        _pool(list(parts.values()), len(parts) / (1 + partners * shared**2), widening),
        _pool(gaps, len(parts) * partners / (1 + partners), widening),
    )


def _pool(parts: Sequence["_Parts"], independent: float, widening: float) -> Prior:
    """Average the ratios of tables, of which `independent` are independent."""
    known = [part for part in parts if part.residual > 0]
    if not known:
        return Prior(widening=widening)
    freedom = sum(part.seeds - 1 for part in known)
    ratio = math.fsum((part.seeds - 1) * part.between / part.residual for part in known) / freedom
    total = max(1.0, freedom * min(1.0, independent / len(parts)))
    ratio *= 1 + 1 / total  # it is an estimate, too
    return Prior(ratio, PRIOR_WEIGHT, total, widening)


class _Parts:
    """The parts of the variance of a table (seeds, rows) in a two-way analysis of variance.

    `between` is the variance of the seeds' means, `residual` the part of it that residuals cause
    (1 in a table of one column, which does not show it), and `by_rows` the variance of the mean
    that the choice of the test rows adds. So many rows are `added`, with a mean and a sum of
    squares of 1; `centre` is the mean with them.
    """

    def __init__(self, table: Array, added: int = 0, added_mean: float = 0.0) -> None:
        table = np.asarray(table, dtype=float)
        self.seeds, self.rows = table.shape
        by_seed, by_row = table.mean(1), table.mean(0)
        self.mean = self.centre = float(table.mean())
        self.between = float(by_seed.var(ddof=1)) if self.seeds > 1 else math.inf
        self.residual, self.by_rows = 1.0, 0.0
        if self.rows == 1:
            return
        rest = table - by_row - by_seed[:, None] + self.mean
        freedom = max(1, self.seeds - 1) * (self.rows - 1)
        self.residual = float((rest**2).sum()) / freedom / self.rows
        rows = self.rows + added
        self.centre += added / rows * (added_mean - self.mean)
        squares = 1 + float(((by_row - self.mean) ** 2).sum())
        squares += self.rows * added / rows * (self.mean - added_mean) ** 2
        self.by_rows = max(squares / rows**2 - self.residual / self.seeds, 1 / rows**2)

    def by_seeds(self, prior: Prior) -> tuple[float, float]:
        """Compute the variance of the mean that seeds add, and its degrees of freedom."""
        own = self.seeds - 1
        between = own * self.between + prior.weight * prior.ratio * self.residual
        between /= own + prior.weight
        if self.rows > 1:
            between = max(between, 0.5 * self.residual)  # the true ratio is at least 1
        return between / self.seeds, min(own + prior.weight, prior.total)

    def error(self, prior: Prior) -> tuple[float, float]:
        """Compute the standard error of the mean and its degrees of freedom."""
        if self.seeds == 1:
            return math.inf, 1.0
        by_seeds, freedom = self.by_seeds(prior)
        variance = by_seeds + self.by_rows
        if variance == 0:
            return 0.0, freedom
        share = by_seeds / variance
        spread = share**2 / freedom + (1 - share) ** 2 / max(1, self.rows - 1)
        return math.sqrt(prior.widening * variance), 1 / spread


def mean_interval(scores: Array, variance: SeedVariance = OWN_SEEDS) -> Interval:
    """Compute the mean score (seeds, rows) of one arm and its interval over seeds and test rows.

    Scores are between 0 and 1, or numbers whose mean is, and so is the interval. With one seed, it
    covers only the variance between test rows.
    """
    parts, prior = _Parts(scores, 4, 0.5), variance.scores
    error, freedom = parts.error(prior)
    if parts.seeds == 1 < parts.rows:
        error, freedom = math.sqrt(prior.widening * parts.by_rows), parts.rows - 1
    return _interval(parts, error, freedom, LEVEL, (0.0, 1.0))


def paired_difference(
    first: Array, second: Array, variance: SeedVariance = OWN_SEEDS, level: float = LEVEL
) -> Interval:
    """Compute the mean of `first` minus that of `second`, with an interval over seeds and rows.

    Both are scores (seeds, rows) of the same seeds and rows in the same order. The interval is
    within −1 and 1; it is unbounded with one seed, or with two that do not bound the difference.
    """
    return _interval(*_gaps(first, second, variance), level, (-1.0, 1.0))


def detectable_difference(
    first: Array, second: Array, variance: SeedVariance = OWN_SEEDS, level: float = LEVEL
) -> float:
    """Compute the true difference found with a power of `POWER`; infinite with one seed."""
    _, error, freedom = _gaps(first, second, variance)
    return float(stats.t.ppf((1 + level) / 2, freedom) + stats.t.ppf(POWER, freedom)) * error


def _gaps(first: Array, second: Array, variance: SeedVariance) -> tuple[_Parts, float, float]:
    """Return the parts of a difference, its standard error and its degrees of freedom."""
    parts = _Parts(np.subtract(first, second, dtype=float), 2)
    return parts, *parts.error(variance.differences)


def _interval(
    parts: _Parts, error: float, freedom: float, level: float, limits: tuple[float, float]
) -> Interval:
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    if reach >= (limits[1] - limits[0]) / 2:
        return Interval(parts.mean, -math.inf, math.inf, level)
    low, high = max(limits[0], parts.centre - reach), min(limits[1], parts.centre + reach)
    low, high = min(low, parts.mean), max(high, parts.mean)
    return Interval(parts.mean, low, high, level)


def mean_covariance(scores: Array, variance: SeedVariance = OWN_SEEDS) -> Array:
    """Compute the covariance of the means of tables that share their test rows.

    `scores` are (tables, seeds, rows), with at least two seeds. The part of the seeds is inflated
    as Student's t is wider than a normal distribution.
    """
    prior, rows = variance.scores, scores.shape[2]
    covariance = np.atleast_2d(np.cov(scores.mean(1))) / rows
    for place, table in enumerate(scores):
        parts = _Parts(table)
        by_seeds, freedom = parts.by_seeds(prior)
        wider = float(stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975))
        covariance[place, place] += 1 / (rows + 4) ** 2
        covariance[place, place] += wider**2 * max(0.0, by_seeds - parts.residual / parts.seeds)
    return prior.widening * covariance


def is_equivalent(difference: Interval) -> bool:
    """Check that a difference is certainly small: its interval holds 0 and nothing far from it."""
    return -EQUIVALENT <= difference.low <= 0 <= difference.high <= EQUIVALENT


def named_budgets(budgets: Sequence[int]) -> list[int]:
    """Choose the budgets that sentences name: the fewest labels and the most."""
    return sorted({budgets[0], budgets[-1]})


def closed_p_values(first: Array, second: Array, variance: SeedVariance = OWN_SEEDS) -> list[float]:
    """Compute p-values of named budgets by closed testing; scores are (budgets, seeds, rows)."""
    found = [0.0] * len(first)
    for size in range(1, len(first) + 1):
        for group in map(list, combinations(range(len(first)), size)):
            parts, error, freedom = _gaps(first[group].mean(0), second[group].mean(0), variance)
            p = 2 * float(stats.t.sf(abs(parts.centre) / error, freedom)) if error else 1.0
            for budget in group:
                found[budget] = max(found[budget], p)
    return found


def holm_p_values(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of several questions (Holm, 1979, Scandinavian J. Statistics 6)."""
    found, largest = [0.0] * len(p_values), 0.0
    for place, k in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[k]))
        found[k] = largest
    return found


def claimed_steps(
    chain: Array, variance: SeedVariance = OWN_SEEDS, level: float = LEVEL
) -> list[bool]:
    """Decide which steps from the control to the headline arm may be claimed.

    The `chain` (arms, budgets, seeds, rows) begins with the control; each arm has one thing more
    than the one before. A step is claimed where its mean over all budgets and that of all steps
    together both exclude zero.
    """
    means = chain.mean(1)
    whole = paired_difference(means[-1], means[0], variance, level).excludes(0)
    return [
        whole and paired_difference(after, before, variance, level).excludes(0)
        for before, after in pairwise(means)
    ]


@dataclass(frozen=True)
class PowerLaws:
    """Draws of the three numbers of error = a · n^(−b) + c."""

    a: Array  # (draws,)
    b: Array
    c: Array
    rising: float  # probability that more labels help at all

    def score(self, labels: float) -> Interval:
        """Predict the score with this number of labels."""
        return _quantiles(np.clip(1 - self.c - self.a * labels**-self.b, 0, 1))

    def labels(self, goal: float) -> Interval:
        """Predict the labels that a score needs; infinite where it is never reached."""
        room = (1 - goal) - self.c
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.where(room > 0, (self.a / room) ** (1 / self.b), np.inf)
        return _quantiles(found)


def _quantiles(found: Array) -> Interval:
    """Median and interval. No interpolation: between a number and infinity lies nothing."""
    shares = [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2]
    low, middle, high = np.quantile(found, shares, method="nearest").tolist()
    return Interval(middle, low, high)


def fit_power_laws(
    budgets: Sequence[int], scores: Array, variance: SeedVariance = OWN_SEEDS
) -> PowerLaws:
    """Draw power laws from their posterior, given scores (ascending budgets, seeds ≥ 2, rows)."""
    errors = np.maximum(1 - scores.mean((1, 2)), 1e-3)
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
    budgets: Sequence[int], scores: Array, goal: float, variance: SeedVariance = OWN_SEEDS
) -> Interval | str:
    """Predict the labels that an arm needs for the score `goal`, or say why that is impossible."""
    if len(budgets) < FEWEST_BUDGETS:
        return f"a curve needs at least {FEWEST_BUDGETS} label budgets"
    if scores.shape[1] < 2:
        return "one seed: the variance between seeds is unknown"
    laws = fit_power_laws(budgets, scores, variance)
    if laws.rising < RISING:
        return "the score does not clearly rise with labels"
    found, farthest = laws.labels(goal), FARTHEST * budgets[-1]
    if found.high <= budgets[0]:
        return f"fewer than {budgets[0]:,}, the smallest budget"
    if found.value > farthest:
        least = min(found.low, farthest)
        return f"more than {float(f'{least:.2g}'):,.0f}, perhaps never"
    return found


def labels_to_reach(budgets: Sequence[int], scores: Array, goal: float) -> float:
    """Find where a curve's running maximum reaches `goal`, by log(labels); else 0 or infinity."""
    reached = np.maximum.accumulate(scores)
    return float(np.exp(np.interp(goal, reached, np.log(budgets), left=-np.inf, right=np.inf)))


def label_savings(
    budgets: Sequence[int], first: Array, second: Array, variance: SeedVariance = OWN_SEEDS
) -> Interval:
    """Find at how many labels `first` reaches `second` with the most; 0, infinity: out of range."""
    curves = np.concatenate([first, second[-1:]])
    means = curves.mean((1, 2))
    labels, low, high = labels_to_reach(budgets, means[:-1], means[-1]), 0.0, math.inf
    if curves.shape[1] > 1:
        random = np.random.default_rng(0)
        drawn = random.multivariate_normal(means, mean_covariance(curves, variance), DRAWS)
        found = [labels_to_reach(budgets, curve[:-1], curve[-1]) for curve in drawn]
        shares = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        low, high = np.quantile(found, shares, method="nearest").tolist()
    return Interval(min(max(labels, low), high), low, high)
