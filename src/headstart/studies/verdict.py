"""Two or three plain sentences that say what a study found, and no more than it found.

What may be claimed is decided in `statistics.py`. A study whose arms are alike claims a difference
as often as the one question about all budgets does, whatever is said of single budgets: they are
spoken of only after that, and stand out only where they pass further tests.
"""

import math
from dataclasses import dataclass

from headstart.evaluation.metrics import Interval
from headstart.studies.analysis import Analysis, Gap, Series, find_comparison
from headstart.studies.arms import arm_label
from headstart.studies.arms.arm import Arm
from headstart.studies.results import Study
from headstart.studies.statistics import LabelSavings, named_budgets


def points(value: float) -> str:
    """An accuracy difference in points, without its sign."""
    return f"{abs(100 * value):.1f}"


def signed(value: float) -> str:
    """The same with its sign; the minus is a real one."""
    text = f"{100 * value:+.1f}"
    return text.replace("+", "").replace("-", "−") if float(text) != 0 else "0.0"


def within(interval: Interval) -> str:
    """The interval in words, in points."""
    return f"{signed(interval.low)} to {signed(interval.high)}"


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f} %"


def exact(interval: Interval) -> str:
    """A mean and its interval, in percent."""
    mean = f"{100 * interval.value:.1f} %"
    return f"{mean} ({within(interval)})" if interval.bounded else mean


def labelled(count: int) -> str:
    """A number of labels in words."""
    return f"{count:,} labels"


def capital(sentence: str) -> str:
    """The same with a capital first letter; `str.capitalize` would change the others."""
    return sentence[:1].upper() + sentence[1:]


def series_name(series: Series, study: Study) -> str:
    """The arm, with its objective where the study has several."""
    arm, objective = series
    several = len(study.pretraining) > 1 and objective
    return f"{arm_label(arm)} · {objective}" if several else arm_label(arm)


@dataclass(frozen=True)
class Verdict:
    """The sentences, and whether they claim that what the study is about changes the accuracy."""

    sentences: list[str]
    claims_difference: bool


def verdict(study: Study, analysis: Analysis) -> Verdict:
    """Sum up a study; a difference is claimed only where it stands out over all budgets."""
    comparison = analysis.comparison
    if comparison is None or not analysis.overall:
        return Verdict([_best(study, analysis)], False)
    objective = speaking_objective(analysis)
    overall = analysis.overall[objective]
    effect = comparison.headline.effect
    name = f"{objective} {effect}" if len(analysis.overall) > 1 else effect
    claims = overall.excludes(0)
    gaps = _named_gaps(study, analysis, objective, comparison.control)
    sentences = [_difference(study, overall, gaps, name, analysis)]
    if claims and overall.value > 0 and objective in analysis.savings:
        sentences.append(_savings(analysis.savings[objective], comparison.control.phrase))
    for reference in comparison.references:
        gaps = _named_gaps(study, analysis, objective, reference)
        if gaps:
            said = [_beside(gap, analysis.stands_out(gap)) for gap in gaps]
            sentences.append(f"Beside it, {reference.phrase} is {' and '.join(said)}.")
    return Verdict(sentences, claims)


def speaking_objective(analysis: Analysis) -> str:
    """The one that gains most; if it cannot be told from noise, the most of those that can."""
    overall = analysis.overall
    clear = [name for name in overall if overall[name].excludes(0)]
    return max(clear or overall, key=lambda name: overall[name].value)


def _difference(
    study: Study, shown: Interval, gaps: list[Gap], name: str, analysis: Analysis
) -> str:
    if not shown.bounded:
        return (
            f"{capital(name)} {_verb(shown)} {points(shown.value)} points here, but one seed "
            "cannot tell that from noise: run the study with --seeds 3 or more."
        )
    if not shown.excludes(0):
        where = "on average over all label budgets " if len(study.budgets) > 1 else ""
        said = (
            f"{capital(name)} makes no difference that can be told from noise: {where}it changes "
            f"the accuracy by {signed(shown.value)} points ({within(shown)})."
        )
        return said + _opposite(gaps)
    if not any(map(analysis.stands_out, gaps)):
        return _only_together(shown, gaps, name)
    parts = [
        _gap(gap, name if i == 0 else "it", analysis.stands_out(gap)) for i, gap in enumerate(gaps)
    ]
    return capital("; ".join(parts)) + "."


def _named_gaps(study: Study, analysis: Analysis, objective: str, other: Arm) -> list[Gap]:
    comparison = analysis.comparison
    assert comparison is not None
    first, second = (comparison.series(arm, objective) for arm in (comparison.headline, other))
    found = [analysis.gap(first, second, labels) for labels in named_budgets(study.budgets)]
    return [gap for gap in found if gap is not None]


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
        f"({_size(overall)}); what it does at a single budget is not clear: {each} "
        "labels."
    )


def _gap(gap: Gap, subject: str, stands_out: bool) -> str:
    difference, labels = gap.difference, labelled(gap.labels)
    verb, size = _verb(difference), f"{points(difference.value)} points"
    if stands_out:
        return f"with {labels} {subject} {verb} {size} ({_size(difference)})"
    chance = "may be chance" if difference.excludes(0) else "are within noise"
    return f"with {labels} the {size} {subject} {verb} ({within(difference)}) {chance}"


def _verb(difference: Interval) -> str:
    return "adds" if difference.value >= 0 else "costs"


def _savings(savings: LabelSavings, control: str) -> str:
    goal = f"what {control} needs all {savings.all_labels:,} for"
    if savings.labels == 0:
        often = (
            "" if savings.high == 0 else f" (95 % interval: up to {_bound(savings.high, savings)})"
        )
        return f"It reaches with {labelled(savings.fewest)}, the fewest tried, {goal}{often}."
    if math.isinf(savings.labels):
        return f"It does not reach {goal} within this range of labels."
    low, high = _bound(savings.low, savings), _bound(savings.high, savings)
    about = f"about {_rounded(savings.labels):,} labels ({low} to {high})"
    return f"It reaches with {about} {goal}."


def _bound(labels: float, savings: LabelSavings) -> str:
    if labels == 0:
        return f"fewer than {savings.fewest:,}"
    return f"more than {savings.all_labels:,}" if math.isinf(labels) else f"{_rounded(labels):,}"


def _rounded(labels: float) -> int:
    """Two digits that count: an interpolation knows no more."""
    return int(float(f"{labels:.2g}"))


def _beside(gap: Gap, stands_out: bool) -> str:
    ahead = Interval(-gap.difference.value, -gap.difference.high, -gap.difference.low)
    size = f"{points(ahead.value)} points {'ahead' if ahead.value > 0 else 'behind'}"
    if not ahead.bounded:
        return f"{size} with {labelled(gap.labels)} (one seed)"
    if stands_out:
        return f"{size} with {labelled(gap.labels)} ({_size(ahead)})"
    reach = f"{signed(ahead.value)} points, {within(ahead)}"
    level = "not clearly apart" if ahead.excludes(0) else "level within noise"
    return f"{level} with {labelled(gap.labels)} ({reach})"


def _size(interval: Interval) -> str:
    """An interval that excludes zero, in points without their sign."""
    low, high = sorted((abs(interval.low), abs(interval.high)))
    return f"{points(low)} to {points(high)}"


def _best(study: Study, analysis: Analysis) -> str:
    scores = [score for score in analysis.scores if score.labels == study.budgets[-1]]
    if not scores:
        return "The study has no finished run."
    best = max(scores, key=lambda score: score.accuracy.value)
    arm = " · ".join(filter(None, best.series))
    said = (
        f"With {labelled(best.labels)} {arm} is the best of the arms tried, with "
        f"{100 * best.accuracy.value:.1f} % of the test rows right"
    )
    missing = find_comparison()
    if missing is None:
        return f"{said}."
    return (
        f"{said}; {missing.control.label} and {missing.headline.label} were not both run, so "
        f"nothing is said about {missing.headline.effect}."
    )
