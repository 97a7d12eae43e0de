"""Every number that the verdict and the report show, computed once from the results table.

Differences have one sign convention: the arm that is named first minus the other one. The steps of
`arms.CHAIN` are what a study is about; their decisions come from closed testing. All other pairs
of arms at a budget are one family, corrected by Holm's method.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from headstart.arms import ARMS, CHAIN, Arm, find_arm
from headstart.evaluation.metrics import Interval
from headstart.study.labels_needed import LabelSavings, LabelsNeeded, label_savings, labels_needed
from headstart.study.results import Results
from headstart.study.statistics import (
    claimed_steps,
    closed_p_values,
    detectable_difference,
    holm_p_values,
    mean_interval,
    named_budgets,
    paired_difference,
    seed_variance,
    shared_level,
)

Series = tuple[str, str]  # arm, objective ("" for an arm that depends on none)
Pair = tuple[Series, Series]
ALL_BUDGETS = 0
GOAL_STEP = 0.05  # the goal of the labels-needed column is a multiple of it
CHEAPER = 2.0  # times smaller or faster, to matter


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
    the true difference that such a comparison finds with a power of 80 %.
    """

    first: Series
    second: Series
    labels: int  # ALL_BUDGETS: mean over all budgets
    interval: Interval
    significant: bool
    detectable: float

    @property
    def effect(self) -> str:
        """What `first` has and `second` lacks, where they are a step of the chain."""
        return find_arm(self.first[0]).effect

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

    def times_cheaper(self, other: "Cost") -> dict[str, float]:
        """Return how many times "smaller" and "faster" than the other it is, where it is known.

        A network that is timed next to other jobs is not compared with an arm timed alone.
        """
        found = {}
        if self.bytes and other.bytes:
            found["smaller"] = other.bytes / self.bytes
        comparable = self.timed == other.timed and len(self.timed) == 1
        comparable &= (None, None) not in self.timed
        if comparable and self.milliseconds and other.milliseconds:
            found["faster"] = other.milliseconds / self.milliseconds
        return found


def analyse(results: Results) -> "Analysis":
    """Compute everything that verdict and report show."""
    return Analysis(results)


class Analysis:
    """The numbers of a study.

    Parameters
    ----------
    results : Results
        Of the finished runs, at least one; arms are compared on the seeds that they share.

    Attributes
    ----------
    every : all arms with a score, in the order of the study.
    most : the largest budget with a score.
    scores, costs : by arm and budget.
    chain : the arms of `arms.CHAIN` that were run.
    selected : the arm that model selection chose, without the test part; it is recommended.
    differences : by first arm, second arm and budget.
    steps, savings : of the chain, by objective.
    winners : by budget, the arm that is significantly better than all others.
    goal, needed : a round score that the recommended arm reaches, and the labels for it by arm.
    """

    def __init__(self, results: Results) -> None:
        self.results, self.runs = results, results.runs
        self.budgets: list[int] = results.about["budgets"]
        tables = {key: results.scores(*key) for key in self.runs}
        same_budget = [(a, b) for a, b in combinations(tables, 2) if a[2] == b[2]]
        self.variance = seed_variance(tables, same_budget, folds=results.about["folds"])
        self.scores: dict[tuple[Series, int], Score] = {}
        for (arm, objective, labels), table in tables.items():
            seeds = self.runs[arm, objective, labels]
            means = dict(zip(seeds, map(float, table.mean(1)), strict=True))
            interval = mean_interval(table, self.variance)
            self.scores[(arm, objective), labels] = Score((arm, objective), labels, interval, means)
        self.every = list(dict.fromkeys(series for series, _ in self.scores))
        self.most = max(labels for _, labels in self.scores)
        self.costs = {key: find_cost(results, *key) for key in self.scores}
        self.curves = make_curves(_epoch_values(results))
        self.references = [one for one in self.every if find_arm(one[0]).is_reference]
        self.selected = self._selected()
        self._compare()
        self.winners = {labels: self._winner(labels) for labels in self.budgets}
        best = self.scores[self.selected, self.most].interval.value
        steps = math.floor(best / GOAL_STEP + 1e-9)
        self.goal = max(GOAL_STEP, round(steps * GOAL_STEP, 2))
        self.needed = self.labels_needed(self.goal)

    def difference(self, first: Series, second: Series, labels: int) -> Difference | None:
        """Return the difference of two arms at a budget, where they were compared."""
        found = self.differences.get((first, second, labels))
        other_way = self.differences.get((second, first, labels))
        return other_way.reversed() if found is None and other_way else found

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
        return [_series_of(arm, self.objective) for arm in reversed(self.chain)]

    def labels_needed(self, goal: float) -> dict[Series, LabelsNeeded]:
        """Estimate the labels that each arm needs for a goal, a score between 0 and 1."""
        found = {}
        for series in self.every:
            budgets = [labels for one, labels in self.scores if one == series]
            shared = self._shared([series], budgets)
            if shared is not None:
                found[series] = labels_needed(budgets, shared[0], goal, self.variance)
        return found

    def _shared(self, every: Sequence[Series], budgets: Sequence[int]) -> np.ndarray | None:
        """Return (arms, budgets, seeds, rows) of the seeds that all arms have at all budgets."""
        keys = [(*series, labels) for series in every for labels in budgets]
        seeds = sorted(set.intersection(*(set(self.runs.get(key, [])) for key in keys)))
        if not seeds:
            return None
        tables = np.array([self.results.scores(*key, seeds) for key in keys])
        return tables.reshape(len(every), len(budgets), *tables.shape[1:])

    def _difference(
        self, pair: Pair, labels: int, tables: np.ndarray, level: float, *, significant: bool
    ) -> Difference:
        """Compare two arms by the means of their tables over budgets."""
        one, other = tables.mean(1)
        interval = paired_difference(one, other, self.variance, level)
        detectable = detectable_difference(one, other, self.variance, level)
        return Difference(*pair, labels, interval, significant, detectable)

    def _compare(self) -> None:
        """Compare the arms of the chain step by step, and other pairs of arms."""
        self.differences: dict[tuple[Series, Series, int], Difference] = {}
        self.steps: dict[str, list[Difference]] = {}
        self.savings: dict[str, LabelSavings] = {}
        self.chain = [ARMS[name] for name in CHAIN if any(arm == name for arm, _ in self.every)]
        objectives = sorted({objective for arm, objective in self.every if arm == CHAIN[-1]})
        level = shared_level(max(1, len(objectives)))
        others: list[Pair] = []
        for objective in objectives if len(self.chain) > 1 else []:
            chain = [_series_of(arm, objective) for arm in self.chain]
            claimed = self._compare_steps(objective, chain, level)
            for pair, is_claimed in claimed.items():
                for labels in self.budgets:
                    self._compare_pairs([pair], labels, level, allowed=is_claimed)
            others += [(chain[-1], other) for other in (chain[0], *self.references)]
        for labels in self.budgets:
            pairs = list(others)
            if labels == self.most:
                pairs += [(self.selected, other) for other in self.every]
            self._compare_pairs(pairs, labels, level)

    def _compare_steps(
        self, objective: str, chain: Sequence[Series], level: float
    ) -> dict[Pair, bool]:
        """Compare the steps by their means over all budgets; return which ones are claimed."""
        pairs = [(after, before) for before, after in pairwise(chain)]
        whole = self._shared(chain, self.budgets)  # the same seeds for every step: they add up
        if whole is None:
            return dict.fromkeys(pairs, False)
        claimed = claimed_steps(whole, self.variance, level)
        self.steps[objective] = [
            self._difference(pair, ALL_BUDGETS, whole[[k + 1, k]], level, significant=claimed[k])
            for k, pair in enumerate(pairs)
        ]
        for step in self.steps[objective]:
            self.differences[step.first, step.second, ALL_BUDGETS] = step
        if len(self.budgets) > 1:
            self.savings[objective] = label_savings(
                self.budgets, whole[-1], whole[-2], self.variance
            )
        return dict(zip(pairs, claimed, strict=True))

    def _compare_pairs(
        self, pairs: Sequence[Pair], labels: int, level: float, *, allowed: bool = True
    ) -> None:
        """Compare pairs of arms at a budget that were not compared yet, as one family."""
        tables: dict[Pair, np.ndarray] = {}
        p_values = []
        for first, second in pairs:
            shared = self._shared((first, second), [labels])
            known = first == second or self.difference(first, second, labels)
            if known or shared is None or (first, second) in tables:
                continue
            tables[first, second] = shared
            group = sorted({*named_budgets(self.budgets), labels})
            whole = self._shared((first, second), group)
            closed = [1.0] * len(group)
            if whole is not None:
                closed = closed_p_values(whole[0], whole[1], self.variance)
            p_values.append(closed[group.index(labels)])
        for (pair, table), p in zip(tables.items(), holm_p_values(p_values), strict=True):
            found = self._difference(
                pair, labels, table, level, significant=allowed and p < 1 - level
            )
            self.differences[(*pair, labels)] = found

    def _winner(self, labels: int) -> Series | None:
        """Find the arm that is significantly better than every other one at a budget."""
        scores = {one: s.interval.value for (one, n), s in self.scores.items() if n == labels}
        if len(scores) < 2:
            return None
        best = max(scores, key=lambda one: scores[one])
        level = shared_level(len(scores) - 1)
        for other in scores:
            shared = self._shared((best, other), [labels])
            if other != best and (
                shared is None
                or not paired_difference(shared[0, 0], shared[1, 0], self.variance, level).excludes(
                    0
                )
            ):
                return None
        return best

    def _selected(self) -> Series:
        """Return the arm that model selection chose; where none is recorded, the best score."""
        last = [series for series, labels in self.scores if labels == self.most]
        best = self.results.about["best"]
        chosen = (best.get("arm", ""), best.get("objective", ""))
        if chosen in last:
            return chosen
        return max(last, key=lambda one: self.scores[one, self.most].interval.value)


def _series_of(arm: Arm, objective: str) -> Series:
    return (arm.name, objective if arm.uses_objective else "")


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
    curves = [Curve(*key, seeds, []) for key, seeds in lines.items()]
    for epoch in range(max((len(v) for c in curves for v in c.seeds.values()), default=0)):
        for labels in {curve.labels for curve in curves}:
            columns = {}
            for place, curve in enumerate(curves):
                values = [line[epoch : epoch + 1] for line in curve.seeds.values()]
                if curve.labels == labels and all(values):
                    columns[place] = np.array(values)
            variance = seed_variance(columns, [])
            for place, column in columns.items():
                curves[place].mean.append(mean_interval(column, variance))
    return curves


def find_cost(results: Results, series: Series, labels: int) -> Cost:
    """Compute the cost of an arm at a budget from the facts of its runs."""
    every, wanted = results.about["facts"], (*series, labels)
    facts = [one for one in every if (one["arm"], one["objective"], one["labels"]) == wanted]

    def mean(name: str, unit: float) -> float | None:
        values = [one[name] for one in facts if name in one]
        return float(np.mean(values)) / unit if values else None

    return Cost(
        minutes=mean("seconds", 60),
        bytes=mean("bytes", 1),
        milliseconds=mean("test_seconds", len(results.rows) / 1000),
        timed=frozenset((one.get("workers"), one.get("threads")) for one in facts),
        selected=_selected_settings(facts),
    )


def _selected_settings(facts: Sequence[Mapping[str, Any]]) -> str:
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
