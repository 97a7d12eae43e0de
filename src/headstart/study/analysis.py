"""Every number that the verdict and the report show, computed once from the results table.

Differences have one sign convention: the arm that is named first minus the other one. The steps of
`arms.CHAIN` are what a study is about; `statistics.py` describes the corrections.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import fmean

import numpy as np

from headstart.arms import ARMS, CHAIN, Arm, find_arm
from headstart.evaluation.metrics import LEVEL, Interval
from headstart.study import statistics
from headstart.study.results import Results

Series = tuple[str, str]  # arm, objective ("" for an arm that depends on none)
Pair = tuple[Series, Series]
ALL_BUDGETS = 0
GOAL_STEP = 0.05  # the goal of the labels-needed column is a multiple of it


@dataclass(frozen=True)
class Difference:
    """The score of `first` minus that of `second`, on the same seeds and test rows."""

    first: Series
    second: Series
    labels: int  # ALL_BUDGETS: mean over all budgets
    interval: Interval
    significant: bool  # after the correction for several comparisons
    detectable: float  # the true difference that is found with a power of 80 %

    @property
    def effect(self) -> str:
        """What `first` adds to `second`, if they are a step of the chain."""
        return find_arm(self.first[0]).effect

    def reversed(self) -> "Difference":
        """Return the difference with the other sign: `second` minus `first`."""
        value = self.interval
        interval = replace(value, value=-value.value, low=-value.high, high=-value.low)
        return replace(self, first=self.second, second=self.first, interval=interval)


@dataclass(frozen=True)
class Curve:
    """Validation score by epoch (from 1) of one arm at one budget: each seed, and their mean."""

    series: Series
    labels: int
    seeds: dict[int, list[float]]
    mean: list[Interval]  # as long as the shortest seed: all of it covers the same epochs


@dataclass(frozen=True)
class Cost:
    """The cost of one arm at one budget, mean over seeds."""

    minutes: float  # to train one, pretraining included
    milliseconds: float  # per text
    bytes: float | None  # on disk; None where nothing was saved


class Analysis:
    """The numbers of a study."""

    def __init__(self, results: Results) -> None:
        self.results, about = results, results.about
        self.budgets: list[int] = about["budgets"]
        self.most = self.budgets[-1]
        # Row scores (seeds, rows) by arm and budget, and their means with intervals.
        self.tables = {(run[:2], run[2]): results.scores(*run) for run in results.runs}
        same_budget = [(a, b) for a, b in combinations(self.tables, 2) if a[1] == b[1]]
        self.variance = statistics.seed_variance(self.tables, same_budget, folds=about["folds"])
        self.scores = {
            key: statistics.mean_interval(one, self.variance) for key, one in self.tables.items()
        }
        self.every: list[Series] = list(dict.fromkeys(series for series, _ in self.tables))
        self.costs = {key: find_cost(results, *key) for key in self.scores}
        self.curves = make_curves(_epoch_values(results))
        self.references = [one for one in self.every if find_arm(one[0]).is_reference]
        self.chain = [ARMS[name] for name in CHAIN if any(arm == name for arm, _ in self.every)]
        # Model selection chose it without the test part; it is recommended.
        self.selected: Series = (about["best"]["arm"], about["best"]["objective"])
        self.differences: dict[tuple[Series, Series, int], Difference] = {}
        self.steps: dict[str, list[Difference]] = {}  # of the chain, by objective
        self._compare()
        # A round score that the recommended arm reaches, and the labels for it by arm.
        steps = math.floor(self.scores[self.selected, self.most].value / GOAL_STEP + 1e-9)
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

    def labels_needed(self, goal: float) -> dict[Series, Interval | str]:
        """Estimate the labels that each arm needs for a goal, or say why there is no number."""
        return {
            series: statistics.labels_needed(self.budgets, table, goal, self.variance)
            for series, table in zip(
                self.every, self._tables(self.every, self.budgets), strict=True
            )
        }

    def label_savings(self) -> Interval:
        """Estimate at how many labels the headline arm reaches its control with all labels."""
        first, second = self._tables(self.contenders[:2], self.budgets)
        return statistics.label_savings(self.budgets, first, second, self.variance)

    def _tables(self, every: Sequence[Series], budgets: Sequence[int]) -> np.ndarray:
        """Return the row scores of arms, (arms, budgets, seeds, rows)."""
        return np.array([[self.tables[one, labels] for labels in budgets] for one in every])

    def _add_difference(
        self, pair: Pair, labels: int, level: float, *, significant: bool
    ) -> Difference:
        """Compare two arms at a budget, or by their means over all budgets."""
        budgets = self.budgets if labels == ALL_BUDGETS else [labels]
        one, other = self._tables(pair, budgets).mean(1)
        interval = statistics.paired_difference(one, other, self.variance, level)
        detectable = statistics.detectable_difference(one, other, self.variance, level)
        found = Difference(*pair, labels, interval, significant, detectable)
        self.differences[(*pair, labels)] = found
        return found

    def _compare(self) -> None:
        """Compare the arms of the chain step by step, and other pairs of arms."""
        objectives = sorted({objective for arm, objective in self.every if arm == CHAIN[-1]})
        level = 1 - (1 - LEVEL) / max(1, len(objectives))  # each is a question that may err
        others: list[Pair] = []
        for objective in objectives if len(self.chain) > 1 else []:
            chain = [_series_of(arm, objective) for arm in self.chain]
            claimed = statistics.claimed_steps(
                self._tables(chain, self.budgets), self.variance, level
            )
            self.steps[objective] = []
            for (before, after), allowed in zip(pairwise(chain), claimed, strict=True):
                pair = (after, before)
                step = self._add_difference(pair, ALL_BUDGETS, level, significant=allowed)
                self.steps[objective].append(step)
                for labels in self.budgets:
                    self._compare_pairs([pair], labels, level, allowed=allowed)
            others += [(chain[-1], other) for other in (chain[0], *self.references)]
        for labels in self.budgets:
            selected = [(self.selected, other) for other in self.every if labels == self.most]
            self._compare_pairs([*others, *selected], labels, level)

    def _compare_pairs(
        self, pairs: Sequence[Pair], labels: int, level: float, *, allowed: bool = True
    ) -> None:
        """Compare pairs of arms at a budget that were not compared yet, as one family."""
        group = sorted({*statistics.named_budgets(self.budgets), labels})
        p_values: dict[Pair, float] = {}
        for pair in pairs:
            if pair[0] != pair[1] and not self.difference(*pair, labels):
                first, second = self._tables(pair, group)
                found = statistics.closed_p_values(first, second, self.variance)
                p_values[pair] = found[group.index(labels)]
        for pair, p in zip(p_values, statistics.holm_p_values([*p_values.values()]), strict=True):
            self._add_difference(pair, labels, level, significant=allowed and p < 1 - level)


def _series_of(arm: Arm, objective: str) -> Series:
    return (arm.name, objective if arm.uses_objective else "")


def _epoch_values(results: Results) -> dict[tuple[Series, int], dict[int, list[float]]]:
    """Return (series, labels) → seed → validation scores by epoch."""
    found: dict[tuple[Series, int], dict[int, list[float]]] = {}
    wanted = ("validation", results.about["metric"])
    for row in results.values.to_pylist():  # a run's epochs are in their order
        if row["epoch"] is not None and (row["split"], row["metric"]) == wanted:
            seeds = found.setdefault(((row["arm"], row["objective"]), row["labels"]), {})
            seeds.setdefault(row["seed"], []).append(row["value"])
    return found


def make_curves(lines: Mapping[tuple[Series, int], dict[int, list[float]]]) -> list[Curve]:
    """Make curves from (series, labels) → seed → values; their variances are pooled by epoch."""
    curves = [Curve(*key, seeds, []) for key, seeds in lines.items()]
    columns = {
        (place, curve.labels, epoch): np.array(values)[:, None]
        for place, curve in enumerate(curves)
        for epoch, values in enumerate(zip(*curve.seeds.values(), strict=False))
    }
    for (place, *same), column in columns.items():
        alike = {key: one for key, one in columns.items() if [*key[1:]] == same}
        curves[place].mean.append(
            statistics.mean_interval(column, statistics.seed_variance(alike, []))
        )
    return curves


def find_cost(results: Results, series: Series, labels: int) -> Cost:
    """Compute the cost of an arm at a budget from the facts of its runs."""
    every, wanted = results.about["facts"], (*series, labels)
    facts = [one for one in every if (one["arm"], one["objective"], one["labels"]) == wanted]
    sizes = [one["bytes"] for one in facts if "bytes" in one]
    return Cost(
        minutes=fmean(one["seconds"] for one in facts) / 60,
        milliseconds=1000 * fmean(one["test_seconds"] for one in facts) / len(results.rows),
        bytes=fmean(sizes) if sizes else None,
    )
