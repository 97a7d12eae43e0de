"""A few plain sentences that say what a study found, and no more than it found.

What may be claimed is decided in `statistics.py`. A study whose arms are alike claims a difference
as often as the one question about all budgets does, whatever is said of single budgets: they are
spoken of only after that, and stand out only where they pass further tests.

An arm's effect is credited to what that arm alone has: pretraining is held against counting where
that was run, and the second sentence says how the two make the whole. A difference that a few seeds
could not show is not called none: the sentence says which difference they would have shown.
"""

import math
from dataclasses import dataclass

from headstart.evaluation.metrics import Interval
from headstart.studies.analysis import Analysis, Gap, Step
from headstart.studies.comparison import Series, find_comparison, series_of
from headstart.studies.results import Study
from headstart.studies.words import (
    capital,
    exact,
    labelled,
    most_labels,
    points,
    series_name,
    signed,
    size,
    within,
)
from headstart.study.labels_needed import LabelSavings
from headstart.study.statistics import is_equivalent, named_budgets


@dataclass(frozen=True)
class Verdict:
    """The sentences, and the effects that they claim: pretraining, counting, or none."""

    sentences: list[str]
    claims: tuple[str, ...] = ()

    @property
    def claims_difference(self) -> bool:
        return bool(self.claims)


def verdict(study: Study, analysis: Analysis) -> Verdict:
    """Sum up a study; a difference is claimed only where it stands out over all budgets."""
    comparison = analysis.comparison
    if comparison is None or not analysis.steps:
        return Verdict([_best(study, analysis), *_cuts(study)])
    objective = speaking_objective(analysis)
    steps = analysis.steps[objective]
    name = f"{objective} {steps[-1].effect}" if len(analysis.steps) > 1 else steps[-1].effect
    sentences = [_difference(study, analysis, steps[-1], name)]
    if len(steps) > 1 and steps[-1].difference.bounded:
        sentences.append(_sum(study, analysis, steps))
    if comparison.missing:
        effects = " and ".join(arm.effect for arm in comparison.missing)
        arms = " and ".join(arm.label for arm in comparison.missing)
        sentences.append(
            f"What {effects} gave, if anything, is inside: the study has no arm {arms}."
        )
    if steps[-1].claimed and steps[-1].difference.value > 0 and objective in analysis.savings:
        sentences += _savings(study, analysis.savings[objective], comparison.nearest.phrase)
    headline = series_of(comparison.headline, objective)
    for reference in comparison.references:
        gaps = _named_gaps(study, analysis, headline, series_of(reference, objective))
        if gaps:
            said = [_beside(gap, analysis.stands_out(gap)) for gap in gaps]
            sentences.append(f"Beside it, {reference.phrase} is {' and '.join(said)}.")
    claims = tuple(step.effect for step in steps if step.claimed)
    return Verdict([*sentences, *_cuts(study)], claims)


def speaking_objective(analysis: Analysis) -> str:
    """The one that gains most; if it cannot be told from noise, the most of those that can."""
    overall = analysis.overall
    clear = [name for name, steps in analysis.steps.items() if steps[-1].claimed]
    return max(clear or overall, key=lambda name: overall[name].value)


def _difference(study: Study, analysis: Analysis, step: Step, name: str) -> str:
    """What the headline arm's own effect gave."""
    shown = step.difference
    gaps = _named_gaps(study, analysis, step.first, step.second)
    if not shown.bounded:  # a difference without its interval is not shown
        return f"One seed cannot tell whether {name} helps: run the study with --seeds 3 or more."
    if not step.claimed:
        return _unclaimed(study, step, name) + _opposite(gaps)
    if not any(map(analysis.stands_out, gaps)):
        return _only_together(shown, gaps, name)
    parts = [
        _gap(gap, name if i == 0 else "it", analysis.stands_out(gap)) for i, gap in enumerate(gaps)
    ]
    return capital("; ".join(parts)) + "."


def _unclaimed(study: Study, step: Step, name: str) -> str:
    """No difference, or one that these seeds and rows cannot show: what could."""
    shown, where = step.difference, ""
    if len(study.budgets) > 1:
        where = "on average over all label budgets "
    change = f"{where}it changes the accuracy by {signed(shown.value)} points ({within(shown)})"
    if is_equivalent(shown):
        return f"{capital(name)} makes no difference here: {change}."
    if shown.excludes(0):  # but counting and pretraining together do not
        return f"Whether {name} helps is not clear: {change}, which may be chance."
    found = f"a difference of {points(step.detectable)} points would have been found"
    return f"Whether {name} helps is not clear: {change}; {found} with a chance of 80 %."


def _sum(study: Study, analysis: Analysis, steps: list[Step]) -> str:
    """The whole difference as the sum of its steps, at the named budgets."""
    first, last = steps[-1].first, steps[0].second
    said = []
    for labels in named_budgets(study.budgets):
        whole = analysis.gap(first, last, labels)
        parts = [analysis.gap(step.first, step.second, labels) for step in steps]
        if whole is None or None in parts:
            continue
        terms = ""
        for step, gap in zip(steps, parts, strict=True):
            assert gap is not None
            value = gap.difference.value
            sign, size = (" − ", -value) if value < 0 else (" + ", value)
            shown = f"{sign}{signed(size)}" if terms else signed(value)
            terms += f"{shown} from {step.effect} ({within(gap.difference)})"
        said.append(f"with {labelled(labels)} {signed(whole.difference.value)} = {terms}")
    names = f"{series_name(first, study)} − {series_name(last, study)}"
    return capital(f"{names}, in points: {'; '.join(said)}.")


def _named_gaps(study: Study, analysis: Analysis, first: Series, second: Series) -> list[Gap]:
    found = [analysis.gap(first, second, labels) for labels in named_budgets(study.budgets)]
    return [gap for gap in found if gap is not None and gap.difference.bounded]


def _opposite(gaps: list[Gap]) -> str:
    """Budgets that outweigh each other are no proof of anything, and not nothing either."""
    clear = [gap for gap in gaps if gap.difference.excludes(0)]
    if len({gap.difference.value > 0 for gap in clear}) < 2:
        return ""
    each = " and ".join(f"{within(gap.difference)} with {labelled(gap.labels)}" for gap in clear)
    return f" Single budgets may differ in opposite directions: {each}."


def _only_together(overall: Interval, gaps: list[Gap], name: str) -> str:
    """A difference that all budgets show together, and none that is named by itself."""
    each = " or ".join(f"{gap.labels:,} ({within(gap.difference)})" for gap in gaps)
    return (
        f"Over all label budgets {name} {_verb(overall)} {points(overall.value)} points "
        f"({size(overall)}); what it does at a single budget is not clear: {each} "
        "labels."
    )


def _gap(gap: Gap, subject: str, stands_out: bool) -> str:
    difference, labels = gap.difference, labelled(gap.labels)
    verb, amount = _verb(difference), f"{points(difference.value)} points"
    if stands_out:
        return f"with {labels} {subject} {verb} {amount} ({size(difference)})"
    chance = "may be chance" if difference.excludes(0) else "may be noise"
    return f"with {labels} the {amount} {subject} {verb} ({within(difference)}) {chance}"


def _verb(difference: Interval) -> str:
    return "adds" if difference.value >= 0 else "costs"


def _savings(study: Study, savings: LabelSavings, other: str) -> list[str]:
    """Only where the interval ends within the labels that were tried."""
    if math.isinf(savings.high):
        return []
    goal = f"what {other} needs {most_labels(study)} for"
    if savings.labels == 0:
        often = f" (95 % interval: up to {_rounded(savings.high):,})" if savings.high else ""
        return [f"It reaches with {labelled(savings.fewest)}, the fewest tried, {goal}{often}."]
    low = f"fewer than {savings.fewest:,}" if savings.low == 0 else f"{_rounded(savings.low):,}"
    reach = f"{low} to {_rounded(savings.high):,}"
    return [f"It reaches with about {_rounded(savings.labels):,} labels ({reach}) {goal}."]


def _rounded(labels: float) -> int:
    """Two digits that count: an interpolation knows no more."""
    return int(float(f"{labels:.2g}"))


def _beside(gap: Gap, stands_out: bool) -> str:
    ahead = Interval(-gap.difference.value, -gap.difference.high, -gap.difference.low)
    amount = f"{points(ahead.value)} points {'ahead' if ahead.value > 0 else 'behind'}"
    labels = f"with {labelled(gap.labels)}"
    if stands_out:
        return f"{amount} {labels} ({size(ahead)})"
    reach = f"{signed(ahead.value)} points, {within(ahead)}"
    if is_equivalent(ahead):
        return f"as good {labels} ({reach})"
    return f"not clearly apart {labels} ({reach})"


def _cuts(study: Study) -> list[str]:
    """What was left out to fit into the minutes; it may be why an arm looks bad."""
    return [f"Cut to fit into the minutes: {'; '.join(study.cuts)}."] if study.cuts else []


def _best(study: Study, analysis: Analysis) -> str:
    scores = [score for score in analysis.scores if score.labels == study.budgets[-1]]
    if not scores:
        return "The study has no finished run."
    best = max(scores, key=lambda score: score.accuracy.value)
    said = (
        f"With {labelled(best.labels)} {series_name(best.series, study)} is the best of the arms "
        f"tried, with {exact(best.accuracy)} of the test rows right"
    )
    if len(scores) == 1:
        said = (
            f"With {labelled(best.labels)} {series_name(best.series, study)} gets "
            f"{exact(best.accuracy)} of the test rows right"
        )
    missing = find_comparison()
    if missing is None:
        return f"{said}."
    return (
        f"{said}; {missing.control.label} and {missing.headline.label} were not both run, so "
        f"nothing is said about {missing.headline.effect}."
    )
