"""Every number that the verdict and the report show, computed once from the results table.

Differences have one sign convention: the arm that is named first minus the other one.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from headstart.evaluation.metrics import Interval
from headstart.study.arms import ARMS, CHAIN, Arm, find_arm
from headstart.study.labels_needed import LabelSavings, LabelsNeeded, label_savings, labels_needed
from headstart.study.results import Results
from headstart.study.statistics import (
    claimed_steps,
    detectable_difference,
    mean_interval,
    named_budgets,
    paired_difference,
    seed_variance,
    shared_level,
    standing_out,
)

Series = tuple[str, str]  # arm, objective ("" for an arm that depends on none)
ALL_BUDGETS = 0
GOAL_STEP = 0.05  # the goal of the labels-needed column is a multiple of it


@dataclass(frozen=True)
class Score:
    """The test score of one arm at one budget, over seeds and test rows."""

    series: Series
    labels: int
    interval: Interval
    seeds: dict[int, float]


@dataclass(frozen=True)
class Difference:
    """The score of `first` minus that of `second`, on the same seeds and test rows.

    `significant` is the decision after the correction for several comparisons; `detectable` is
    the true difference that such a comparison finds with a power of 80 %; `effect` names the
    ingredient that `first` has and `second` lacks, where there is only one.
    """

    first: Series
    second: Series
    labels: int  # ALL_BUDGETS: mean over all budgets
    interval: Interval
    significant: bool
    detectable: float
    effect: str = ""

    def reversed(self) -> "Difference":
        """Return the difference with the other sign: `second` minus `first`."""
        value = self.interval
        interval = replace(value, value=-value.value, low=-value.high, high=-value.low)
        return replace(self, first=self.second, second=self.first, interval=interval)


@dataclass(frozen=True)
class Curve:
    """Validation score by epoch (from 1) of one arm at one budget: each seed, and their mean.

    The mean ends with the shortest seed, so that it and its interval cover the same epochs.
    """

    series: Series
    labels: int
    seeds: dict[int, list[float]]
    mean: list[Interval]


@dataclass(frozen=True)
class Cost:
    """The cost of one arm at one budget, mean over seeds; None where it was not measured."""

    minutes: float | None = None  # to train one, pretraining included
    bytes: float | None = None  # on disk
    milliseconds: float | None = None  # per text
    timed: frozenset[tuple[Any, Any]] = frozenset()  # (workers, threads) while it was timed
    selected: str = ""  # settings that model selection chose

    def times_smaller(self, other: "Cost") -> float:
        """Return how many times smaller than the other it is; 0 where that is unknown."""
        return other.bytes / self.bytes if self.bytes and other.bytes else 0.0

    def times_faster(self, other: "Cost") -> float:
        """Return how many times faster it predicts; 0 unless both were timed in the same way.

        A network that is timed next to other jobs is not compared with an arm timed alone.
        """
        comparable = len(self.timed) == 1 and self.timed == other.timed
        comparable &= (None, None) not in self.timed
        if not (comparable and self.milliseconds and other.milliseconds):
            return 0.0
        return other.milliseconds / self.milliseconds


@dataclass
class Analysis:
    """The numbers of a study.

    `chain` holds the arms of `arms.CHAIN` that were run, and `taken` is the recommended arm, which
    `best/` holds.
    """

    results: Results
    chain: list[Arm]
    scores: list[Score]
    curves: list[Curve]
    costs: dict[tuple[Series, int], Cost]
    taken: Series
    differences: list[Difference] = field(default_factory=list)
    steps: dict[str, list[Difference]] = field(default_factory=dict)  # by objective, over budgets
    savings: dict[str, LabelSavings] = field(default_factory=dict)  # by objective
    alternatives: list[Difference] = field(default_factory=list)  # recommended arm − each other
    winners: dict[int, Series] = field(default_factory=dict)  # significantly best at a budget
    goal: float = 0.0  # a round score that the recommended arm reaches
    needed: dict[Series, LabelsNeeded] = field(default_factory=dict)  # labels for the goal

    def score(self, series: Series, labels: int) -> Score | None:
        """Return the score of an arm at a budget."""
        return next((s for s in self.scores if (s.series, s.labels) == (series, labels)), None)

    def difference(self, first: Series, second: Series, labels: int) -> Difference | None:
        """Return a difference that was computed for the verdict."""
        wanted = (first, second, labels)
        return next((d for d in self.differences if (d.first, d.second, d.labels) == wanted), None)

    @property
    def every(self) -> list[Series]:
        """All arms with a score, in the order of the study."""
        return list(dict.fromkeys(score.series for score in self.scores))

    @property
    def objective(self) -> str:
        """The objective that the verdict is about: the largest gain, claimed ones first."""
        steps = {name: found[-1] for name, found in self.steps.items()}
        claimed = [name for name, step in steps.items() if step.significant]
        return max(claimed or steps, key=lambda name: steps[name].interval.value)

    @property
    def contenders(self) -> list[Series]:
        """The compared arms, headline arm first; the first two arms where none is compared."""
        if not self.steps:
            return self.every[:2]
        return [series_of(arm, self.objective) for arm in reversed(self.chain)]

    @property
    def references(self) -> list[Series]:
        """The arms that the headline arm is compared with besides its control."""
        return [one for one in self.every if find_arm(one[0]).is_reference]


def series_of(arm: Arm, objective: str) -> Series:
    """Return the series of an arm; one that depends on no objective has an empty one."""
    return (arm.name, objective if arm.uses_objective else "")


def analyse(results: Results) -> Analysis:
    """Compute everything that verdict and report show.

    Parameters
    ----------
    results : Results
        Of the finished runs, at least one; arms are compared on the seeds that they share.
    """
    tables = _Tables(results)
    scores = []
    for key, table in tables.every.items():
        seeds = dict(zip(results.runs[key], map(float, table.mean(1)), strict=True))
        scores.append(Score(key[:2], key[2], mean_interval(table, tables.variance), seeds))
    costs = {(score.series, score.labels): find_cost(results, score) for score in scores}
    chain = [ARMS[name] for name in CHAIN if any(arm == name for arm, _, _ in results.runs)]
    curves = make_curves(_epoch_values(results))
    found = Analysis(results, chain, scores, curves, costs, _taken(results, scores))
    objectives = sorted({objective for arm, objective, _ in results.runs if arm == CHAIN[-1]})
    for objective in objectives if len(chain) > 1 else []:
        _compare(found, tables, objective, shared_level(len(objectives)))
    for labels in results.about["budgets"]:
        _find_winner(found, tables, labels)
    _find_alternatives(found, tables)
    best = next(s for s in scores if (s.series, s.labels) == (found.taken, _most(scores)))
    steps = math.floor(best.interval.value / GOAL_STEP + 1e-9)
    found.goal = max(GOAL_STEP, round(steps * GOAL_STEP, 2))
    found.needed = arm_labels(results, found.goal)
    return found


class _Tables:
    """Row scores of every arm and budget, and the variance between seeds pooled over them."""

    def __init__(self, results: Results) -> None:
        self.results, self.runs = results, results.runs
        self.every = {key: results.scores(*key) for key in results.runs}
        keys: list[Hashable] = list(self.every)
        pairs = [(a, b) for a, b in combinations(self.every, 2) if a[2] == b[2]]
        self.variance = seed_variance(dict(zip(keys, self.every.values(), strict=True)), pairs)

    def shared(
        self, every: Sequence[Series], budgets: Sequence[int]
    ) -> tuple[np.ndarray, ...] | None:
        """Return (budgets, seeds, rows) of each arm, of the seeds that all have at all budgets."""
        keys = [(*series, labels) for series in every for labels in budgets]
        seeds = sorted(set.intersection(*(set(self.runs.get(key, [])) for key in keys)))
        if not seeds:
            return None
        tables = np.array([self.results.scores(*key, seeds) for key in keys])
        return tuple(tables.reshape(len(every), len(budgets), *tables.shape[1:]))

    def difference(
        self, first: Series, second: Series, labels: int, level: float
    ) -> Difference | None:
        """Compare two arms at one budget."""
        tables = self.shared((first, second), [labels])
        return self.compare((first, second), labels, tables, level) if tables else None

    def compare(
        self, pair: tuple[Series, Series], labels: int, tables: Sequence[np.ndarray], level: float
    ) -> Difference:
        """Compare two tables (budgets, seeds, rows) by their means over budgets."""
        one, other = (table.mean(0) for table in tables)
        interval = paired_difference(one, other, self.variance, level)
        detectable = detectable_difference(one, other, self.variance, level)
        return Difference(*pair, labels, interval, interval.excludes(0), detectable)


def _compare(found: Analysis, tables: _Tables, objective: str, level: float) -> None:
    """Add the differences, steps, tests and savings of one objective."""
    budgets = found.results.about["budgets"]
    named = named_budgets(budgets)
    chain = [series_of(arm, objective) for arm in found.chain]
    headline = chain[-1]
    pairs = [(after, before) for before, after in pairwise(chain)]
    references = [(headline, reference) for reference in found.references]
    for first, second in dict.fromkeys([*pairs, (headline, chain[0]), *references]):
        for labels in budgets:
            one = tables.difference(first, second, labels, level)
            group = sorted({*named, labels})
            both = tables.shared((first, second), group)
            if one is not None:
                clear = standing_out(both[0], both[1], tables.variance, level) if both else []
                significant = bool(clear) and clear[group.index(labels)]
                found.differences.append(replace(one, significant=significant))
    whole = tables.shared(chain, budgets)  # the same seeds for every step: they add up
    if whole is None:
        return
    claimed = claimed_steps(np.array(whole), tables.variance, level)
    found.steps[objective] = [
        replace(
            tables.compare(pair, ALL_BUDGETS, (whole[k + 1], whole[k]), level),
            significant=claimed[k],
            effect=found.chain[k + 1].effect,
        )
        for k, pair in enumerate(pairs)
    ]
    found.differences += found.steps[objective]
    if len(budgets) > 1:
        found.savings[objective] = label_savings(budgets, whole[-1], whole[-2], tables.variance)


def _find_winner(found: Analysis, tables: _Tables, labels: int) -> None:
    """Find the arm that is significantly better than every other one at a budget, if any is."""
    scores = [score for score in found.scores if score.labels == labels]
    if len(scores) < 2:
        return
    best = max(scores, key=lambda score: score.interval.value)
    level = shared_level(len(scores) - 1)
    gaps = [
        tables.difference(best.series, one.series, labels, level)
        for one in scores
        if one is not best
    ]
    if all(gap is not None and gap.significant for gap in gaps):
        found.winners[labels] = best.series


def _find_alternatives(found: Analysis, tables: _Tables) -> None:
    """Compare the recommended arm with every other one at the largest budget.

    A pair that the verdict compares has the verdict's interval and decision; the others share 5 %.
    """
    labels, taken = _most(found.scores), found.taken
    others = [s.series for s in found.scores if s.labels == labels and s.series != taken]
    known = {one: found.difference(taken, one, labels) for one in others}
    for one in others:
        other_way = found.difference(one, taken, labels)
        if known[one] is None and other_way is not None:
            known[one] = other_way.reversed()
    level = shared_level(max(1, sum(difference is None for difference in known.values())))
    for one, difference in known.items():
        difference = difference or tables.difference(taken, one, labels, level)
        if difference is not None:
            found.alternatives.append(difference)


def _taken(results: Results, scores: Sequence[Score]) -> Series:
    """Return the arm in `best/`; where none is recorded, the one with the highest score."""
    last = {score.series: score for score in scores if score.labels == _most(scores)}
    best = results.about["best"]
    taken = (best.get("arm", ""), best.get("objective", ""))
    if taken in last:
        return taken
    return max(last, key=lambda series: last[series].interval.value)


def _most(scores: Sequence[Score]) -> int:
    return max(score.labels for score in scores)


def _epoch_values(results: Results) -> dict[tuple[Series, int], dict[int, list[float]]]:
    """Return (series, labels) → seed → validation scores by epoch, in the order of the study."""
    found: dict[tuple[Series, int], dict[int, list[float]]] = {}
    for arm, objective, labels in results.runs:
        found[(arm, objective), labels] = {}
    wanted = ("validation", results.about["metric"])
    for row in results.values.to_pylist():  # a run's epochs are in their order
        if row["epoch"] is not None and (row["split"], row["metric"]) == wanted:
            seeds = found[(row["arm"], row["objective"]), row["labels"]]
            seeds.setdefault(row["seed"], []).append(row["value"])
    return {key: seeds for key, seeds in found.items() if seeds}


def make_curves(lines: Mapping[tuple[Series, int], dict[int, list[float]]]) -> list[Curve]:
    """Make curves with means and intervals from the values of each seed by epoch.

    Parameters
    ----------
    lines : mapping
        (series, labels) → seed → values by epoch. The variance between seeds is pooled over the
        arms of a budget, epoch by epoch.
    """
    means: dict[tuple[Series, int], list[Interval]] = {key: [] for key in lines}
    for labels in {labels for _, labels in lines}:
        same = {key: seeds for key, seeds in lines.items() if key[1] == labels}
        shortest = {key: min(map(len, seeds.values())) for key, seeds in same.items()}
        for epoch in range(max(shortest.values())):
            reached = [key for key in same if epoch < shortest[key]]
            columns: dict[Hashable, np.ndarray] = {
                key: np.array([[values[epoch]] for values in same[key].values()]) for key in reached
            }
            variance = seed_variance(columns, [])
            for key in reached:
                means[key].append(mean_interval(columns[key], variance))
    return [Curve(*key, seeds, means[key]) for key, seeds in lines.items()]


def find_cost(results: Results, score: Score) -> Cost:
    """Compute the cost of an arm at a budget from the facts of its runs."""
    wanted = (*score.series, score.labels)
    every = results.about["facts"]
    facts = [one for one in every if (one["arm"], one["objective"], one["labels"]) == wanted]
    seconds, predicting, size = (
        _mean([one[name] for one in facts if name in one])
        for name in ("seconds", "test_seconds", "bytes")
    )
    return Cost(
        minutes=None if seconds is None else seconds / 60,
        bytes=size,
        milliseconds=None if predicting is None else 1000 * predicting / len(results.rows),
        timed=frozenset((one.get("workers"), one.get("threads")) for one in facts),
        selected=_selected(facts),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _selected(facts: Sequence[Mapping[str, Any]]) -> str:
    """Write the selected settings: each one, lowest to highest over seeds."""
    values: dict[str, set[float]] = {}
    for one in facts:
        for name, value in one.get("chosen", {}).items():
            values.setdefault(name, set()).add(value)
    found = []
    for name, chosen in values.items():
        ends = dict.fromkeys(f"{value:g}" for value in (min(chosen), max(chosen)))
        found.append(f"{name.replace('_', ' ')} {'–'.join(ends)}")
    tries = max((one.get("tries", 0) for one in facts), default=0)
    if found and tries:
        found.append(f"{tries} tries")
    return ", ".join(found)


def arm_labels(results: Results, goal: float) -> dict[Series, LabelsNeeded]:
    """Estimate the labels that each arm needs for a goal, a score between 0 and 1."""
    tables, found = _Tables(results), {}
    for series in dict.fromkeys((arm, objective) for arm, objective, _ in results.runs):
        budgets = [labels for arm, objective, labels in results.runs if (arm, objective) == series]
        shared = tables.shared([series], budgets)
        if shared is not None:
            found[series] = labels_needed(budgets, shared[0], goal, tables.variance)
    return found
