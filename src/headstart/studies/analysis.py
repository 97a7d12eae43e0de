"""Every number of a study that a person is shown, computed once, in one place."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from headstart.evaluation.metrics import Interval
from headstart.studies.arms import arms, headline_arm
from headstart.studies.arms.arm import Arm
from headstart.studies.outcomes import FINAL, Measure, RunKey
from headstart.studies.results import Predictions, Study
from headstart.studies.statistics import (
    LabelSavings,
    area_under_curve,
    epochs_to_reach,
    label_savings,
    mcnemar_exact,
    mean_interval,
    named_budgets,
    paired_difference,
    shared_level,
    standing_out,
)

Series = tuple[str, str]  # arm, objective: one line of a picture


@dataclass(frozen=True)
class Score:
    """The test accuracy of one arm at one budget."""

    series: Series
    labels: int
    accuracy: Interval  # over seeds
    seeds: dict[int, float]
    macro_f1: float | None


@dataclass(frozen=True)
class Gap:
    """Accuracy of one arm minus that of another, on the same seeds and test rows."""

    first: Series
    second: Series
    labels: int
    difference: Interval


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

    @property
    def mean(self) -> list[Interval]:
        """Mean and interval over the seeds that reached the epoch."""
        longest = max(map(len, self.seeds.values()))
        return [
            mean_interval([line[epoch] for line in self.seeds.values() if epoch < len(line)])
            for epoch in range(longest)
        ]

    @property
    def epochs_to_95(self) -> float:
        return float(np.mean([epochs_to_reach(line) for line in self.seeds.values()]))

    @property
    def area(self) -> float:
        lines = self.seeds.values()
        return float(np.mean([area_under_curve(range(1, len(y) + 1), y) for y in lines]))


@dataclass(frozen=True)
class Comparison:
    """The arm that the study is about, its control, and the references that stand beside."""

    headline: Arm
    control: Arm
    references: tuple[Arm, ...]

    @staticmethod
    def series(arm: Arm, objective: str) -> Series:
        return (arm.name, objective if arm.uses_objective else "")

    @property
    def others(self) -> tuple[Arm, ...]:
        """Everything that the headline arm is held against."""
        return (self.control, *self.references)


def find_comparison(names: Collection[str] | None = None) -> Comparison | None:
    """The comparison that a study of these arms makes; none if the arm it is about is missing."""
    headline, known = headline_arm(names), arms()
    if headline is None:
        return None
    control = known[headline.compared_with]
    references = [arm for arm in known.values() if arm.is_reference and arm is not control]
    return Comparison(headline, control, tuple(references))


@dataclass(frozen=True)
class Analysis:
    """The numbers behind the verdict and the report."""

    scores: list[Score]
    curves: list[Curve]
    comparison: Comparison | None
    gaps: list[Gap]  # the headline arm − its control and − the references
    overall: dict[str, Interval]  # objective -> headline − control over all budgets
    mcnemar: list[McNemar]
    savings: dict[str, LabelSavings] = field(default_factory=dict)  # by objective
    clear: dict[tuple[Series, Series], list[int]] = field(default_factory=dict)  # budgets

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
    right = {said.run: said for said in predictions}
    comparison = find_comparison({run.arm for run in right})
    about = comparison.headline.name if comparison else None
    objectives = sorted({run.objective for run in right if run.arm == about})
    gaps: list[Gap] = []
    tests: list[McNemar] = []
    overall: dict[str, Interval] = {}
    savings: dict[str, LabelSavings] = {}
    clear: dict[tuple[Series, Series], list[int]] = {}
    level = shared_level(max(1, len(objectives)))
    named = named_budgets(study.budgets)
    for objective in objectives:
        assert comparison is not None
        headline = comparison.series(comparison.headline, objective)
        control = comparison.series(comparison.control, objective)
        for arm in comparison.others:
            other = comparison.series(arm, objective)
            for labels in study.budgets:
                tables = _tables(right, headline, other, [labels])
                if tables:
                    difference = paired_difference(tables[0][0], tables[1][0])
                    gaps.append(Gap(headline, other, labels, difference))
            tables = _tables(right, headline, other, named)
            if tables:
                found = zip(named, standing_out(*tables, level=level), strict=True)
                clear[headline, other] = [labels for labels, stands in found if stands]
        tests += _mcnemar(right, headline, control, study.budgets[-1])
        tables = _tables(right, headline, control, study.budgets)
        if tables:
            overall[objective] = paired_difference(
                tables[0].mean(0), tables[1].mean(0), level=level
            )
            if len(study.budgets) > 1:
                savings[objective] = label_savings(study.budgets, *tables)
    return Analysis(
        scores=_scores(measures, study.metric),
        curves=_curves(measures, study.metric),
        comparison=comparison,
        gaps=gaps,
        overall=overall,
        mcnemar=tests,
        savings=savings,
        clear=clear,
    )


def _tables(
    right: dict[RunKey, Predictions], first: Series, second: Series, budgets: Sequence[int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """(budgets, seeds, rows) of both arms, 1 where right, for the seeds that both have in full."""
    seeds = sorted(
        seed
        for seed in {run.seed for run in right}
        if all(RunKey(*s, labels, seed) in right for s in (first, second) for labels in budgets)
    )
    if not seeds:
        return None

    def table(series: Series) -> np.ndarray:
        return np.array(
            [[_right(right[RunKey(*series, labels, seed)]) for seed in seeds] for labels in budgets]
        )

    return table(first), table(second)


def _right(said: Predictions) -> np.ndarray:
    return said.right


def _mcnemar(
    right: dict[RunKey, Predictions], first: Series, second: Series, labels: int
) -> list[McNemar]:
    tests = []
    for seed in sorted({run.seed for run in right}):
        one, other = (
            right.get(RunKey(*first, labels, seed)),
            right.get(RunKey(*second, labels, seed)),
        )
        if one and other and one.scores is None and other.scores is None:
            only_first = int((_right(one) & ~_right(other)).sum())
            only_second = int((_right(other) & ~_right(one)).sum())
            p = mcnemar_exact(only_first, only_second)
            tests.append(McNemar(first, second, seed, only_first, only_second, p))
    return tests


def _scores(measures: Sequence[Measure], metric: str) -> list[Score]:
    accuracies: dict[tuple[Series, int], dict[int, float]] = {}
    f1: dict[tuple[Series, int], list[float]] = {}
    for m in measures:
        if m.epoch == FINAL and m.split == "test":
            key = ((m.run.arm, m.run.objective), m.run.labels)
            if m.metric == metric:
                accuracies.setdefault(key, {})[m.run.seed] = m.value
            elif m.metric == "macro_f1":
                f1.setdefault(key, []).append(m.value)
    return [
        Score(
            series,
            labels,
            mean_interval(list(seeds.values())),
            seeds,
            float(np.mean(f1[series, labels])) if (series, labels) in f1 else None,
        )
        for (series, labels), seeds in accuracies.items()
    ]


def _curves(measures: Sequence[Measure], metric: str) -> list[Curve]:
    lines: dict[tuple[Series, int], dict[int, list[tuple[int, float]]]] = {}
    for m in measures:
        if m.epoch != FINAL and m.split == "validation" and m.metric == metric:
            key = ((m.run.arm, m.run.objective), m.run.labels)
            lines.setdefault(key, {}).setdefault(m.run.seed, []).append((m.epoch, m.value))
    return [
        Curve(series, labels, {s: [v for _, v in sorted(line)] for s, line in seeds.items()})
        for (series, labels), seeds in lines.items()
    ]
