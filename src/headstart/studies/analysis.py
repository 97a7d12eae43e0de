"""Every number of a study that a person is shown, computed once, in one place."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from headstart.evaluation.metrics import Interval
from headstart.studies.comparison import Comparison, Series, find_comparison, series_of
from headstart.studies.outcomes import FINAL, Measure, RunKey
from headstart.studies.results import Predictions, Study
from headstart.study.labels_needed import LabelSavings, label_savings
from headstart.study.statistics import (
    SeedVariance,
    claimed_steps,
    detectable_difference,
    mcnemar_exact,
    mean_interval,
    named_budgets,
    paired_difference,
    seed_variance,
    shared_level,
    standing_out,
)

Right = dict[RunKey, np.ndarray]  # of each training: what test rows add to the metric


@dataclass(frozen=True)
class Score:
    """The test accuracy of one arm at one budget."""

    series: Series
    labels: int
    accuracy: Interval  # over seeds and test rows
    seeds: dict[int, float]


@dataclass(frozen=True)
class Gap:
    """Accuracy of one arm minus that of another, on the same seeds and test rows."""

    first: Series
    second: Series
    labels: int
    difference: Interval
    seeds: int
    detectable: float  # the difference that this comparison finds with 80 % power


@dataclass(frozen=True)
class Step:
    """What one thing gave, as a mean over all budgets: counting, or pretraining."""

    effect: str
    first: Series  # has it
    second: Series  # lacks it and nothing else, as far as that was run
    difference: Interval
    detectable: float  # the difference that this comparison finds with 80 % power
    claimed: bool


@dataclass(frozen=True)
class McNemar:
    """Rows that only one of two runs got right, at the last budget, for one seed."""

    first: Series
    second: Series
    seed: int
    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True)
class Curve:
    """Validation accuracy by epoch of one arm at one budget, one line per seed."""

    series: Series
    labels: int
    seeds: dict[int, list[float]]  # epochs count from 1
    variance: SeedVariance | None = None  # pooled over the last epochs of all curves

    @property
    def mean(self) -> list[Interval]:
        """Mean and interval over the seeds that reached the epoch."""
        longest = max(map(len, self.seeds.values()))
        lines = self.seeds.values()
        return [
            mean_interval(
                np.array([[line[epoch]] for line in lines if epoch < len(line)]), self.variance
            )
            for epoch in range(longest)
        ]


@dataclass(frozen=True)
class Analysis:
    """The numbers behind the verdict and the report."""

    scores: list[Score]
    curves: list[Curve]
    comparison: Comparison | None
    gaps: list[Gap]  # of each step, of all steps together, and of the headline arm − the references
    steps: dict[str, list[Step]]  # by objective, from the control to the headline arm
    mcnemar: list[McNemar]
    savings: dict[str, LabelSavings] = field(default_factory=dict)  # by objective
    clear: dict[tuple[Series, Series], list[int]] = field(default_factory=dict)  # budgets

    @property
    def overall(self) -> dict[str, Interval]:
        """By objective, what the headline arm's own effect gave over all budgets."""
        return {objective: steps[-1].difference for objective, steps in self.steps.items()}

    def score(self, series: Series, labels: int) -> Score | None:
        return next((s for s in self.scores if (s.series, s.labels) == (series, labels)), None)

    def gap(self, first: Series, second: Series, labels: int) -> Gap | None:
        wanted = (first, second, labels)
        return next((g for g in self.gaps if (g.first, g.second, g.labels) == wanted), None)

    def stands_out(self, gap: Gap) -> bool:
        """Whether the difference at this budget may be claimed, being one of several."""
        return gap.difference.excludes(0) and gap.labels in self.clear.get(
            (gap.first, gap.second), []
        )


def analyse(
    study: Study, measures: Sequence[Measure], predictions: Sequence[Predictions]
) -> Analysis:
    """Compute everything from the plain data of a study.

    Parameters
    ----------
    study : Study
        Its budgets decide what is compared.
    measures, predictions : sequences
        Of all finished trainings; pairs are formed of the seeds that both arms have.

    Returns
    -------
    Analysis
    """
    right = {said.run: said.right for said in predictions}
    comparison = find_comparison({run.arm for run in right})
    variance = pooled_variance(right)
    scores = _scores(measures, right, study.metric, variance)
    curves = _curves(measures, study.metric)
    found = Analysis(scores, curves, comparison, [], {}, [])
    if comparison is None:
        return found
    headline = comparison.headline.name
    objectives = sorted({run.objective for run in right if run.arm == headline})
    level = shared_level(max(1, len(objectives)))
    for objective in objectives:
        _compare(study, right, objective, level, variance, found)
    return found


def pooled_variance(right: Right) -> SeedVariance:
    """Pool the variance between seeds over all arms and budgets."""
    runs: dict[tuple[Series, int], dict[int, np.ndarray]] = {}
    for run, scores in right.items():
        runs.setdefault(((run.arm, run.objective), run.labels), {})[run.seed] = scores
    tables = {key: np.array([by[seed] for seed in sorted(by)]) for key, by in runs.items()}
    pairs = [
        (one, other)
        for one, other in combinations(tables, 2)
        if one[1] == other[1] and runs[one].keys() == runs[other].keys()
    ]
    return seed_variance(tables, pairs)


def _compare(
    study: Study,
    right: Right,
    objective: str,
    level: float,
    variance: SeedVariance,
    found: Analysis,
) -> None:
    """Add one objective's differences to what was found."""
    comparison = found.comparison
    assert comparison is not None
    headline, control, nearest = (
        series_of(arm, objective)
        for arm in (comparison.headline, comparison.control, comparison.nearest)
    )
    steps = comparison.steps(objective)
    beside = [(headline, series_of(arm, objective)) for arm in comparison.references]
    pairs = [(first, second) for _, first, second in steps]
    named = named_budgets(study.budgets)
    for first, second in dict.fromkeys([*pairs, (headline, control), *beside]):
        for labels in study.budgets:
            tables = _tables(right, (first, second), [labels])
            if tables:
                one, other = tables[0][0], tables[1][0]
                difference = paired_difference(one, other, variance)
                detectable = detectable_difference(one, other, variance)
                found.gaps.append(Gap(first, second, labels, difference, len(one), detectable))
        tables = _tables(right, (first, second), named)
        if tables:
            stands = zip(named, standing_out(tables[0], tables[1], variance, level), strict=True)
            found.clear[first, second] = [labels for labels, out in stands if out]
    found.mcnemar.extend(_mcnemar(right, headline, nearest, study.budgets[-1]))
    chain = [series_of(arm, objective) for arm in comparison.chain]
    tables = _tables(right, chain, study.budgets)  # the same seeds for every step: they add up
    if not tables:
        return
    means = [table.mean(0) for table in tables]  # over budgets: (seeds, rows)
    claims = claimed_steps(np.array(tables), variance, level)
    found.steps[objective] = []
    for k, (effect, first, second) in enumerate(steps):
        difference = paired_difference(means[k + 1], means[k], variance, level)
        detectable = detectable_difference(means[k + 1], means[k], variance, level)
        found.steps[objective].append(
            Step(effect, first, second, difference, detectable, claims[k])
        )
    if len(study.budgets) > 1:
        found.savings[objective] = label_savings(study.budgets, tables[-1], tables[-2], variance)


def _tables(
    right: Right, every: Sequence[Series], budgets: Sequence[int]
) -> list[np.ndarray] | None:
    """(budgets, seeds, rows) of each arm, 1 where right, for the seeds that all have in full."""
    seeds = sorted(
        seed
        for seed in {run.seed for run in right}
        if all(RunKey(*series, labels, seed) in right for series in every for labels in budgets)
    )
    if not seeds:
        return None
    return [
        np.array([[right[RunKey(*series, labels, seed)] for seed in seeds] for labels in budgets])
        for series in every
    ]


def _mcnemar(right: Right, first: Series, second: Series, labels: int) -> list[McNemar]:
    tests = []
    for seed in sorted({run.seed for run in right}):
        keys = (RunKey(*first, labels, seed), RunKey(*second, labels, seed))
        if all(key in right and right[key].dtype == bool for key in keys):
            one, other = (right[key] for key in keys)
            only_first, only_second = int((one & ~other).sum()), int((other & ~one).sum())
            p = mcnemar_exact(only_first, only_second)
            tests.append(McNemar(first, second, seed, only_first, only_second, p))
    return tests


def _scores(
    measures: Sequence[Measure], right: Right, metric: str, variance: SeedVariance
) -> list[Score]:
    accuracies: dict[tuple[Series, int], dict[int, float]] = {}
    for m in measures:
        if (m.epoch, m.split, m.metric) == (FINAL, "test", metric):
            key = ((m.run.arm, m.run.objective), m.run.labels)
            accuracies.setdefault(key, {})[m.run.seed] = m.value
    found = []
    for (series, labels), seeds in accuracies.items():
        runs = [RunKey(*series, labels, seed) for seed in sorted(seeds)]
        if all(run in right for run in runs):
            accuracy = mean_interval(np.array([right[run] for run in runs]), variance)
        else:
            accuracy = mean_interval(np.array([[value] for value in seeds.values()]))
        found.append(Score(series, labels, accuracy, seeds))
    return found


def _curves(measures: Sequence[Measure], metric: str) -> list[Curve]:
    lines: dict[tuple[Series, int], dict[int, list[tuple[int, float]]]] = {}
    for m in measures:
        if m.epoch != FINAL and m.split == "validation" and m.metric == metric:
            key = ((m.run.arm, m.run.objective), m.run.labels)
            lines.setdefault(key, {}).setdefault(m.run.seed, []).append((m.epoch, m.value))
    curves = {
        key: {s: [v for _, v in sorted(line)] for s, line in seeds.items()}
        for key, seeds in lines.items()
    }
    last = {key: np.array([[line[-1]] for line in seeds.values()]) for key, seeds in curves.items()}
    variance = seed_variance(last)
    return [Curve(*key, seeds, variance) for key, seeds in curves.items()]
