"""Two or three plain sentences that say what a study found, and no more than it found.

What may be claimed is decided in `claims.py`. A study whose arms are alike claims a difference as
often as the one question about all budgets does, whatever is said of single budgets: they are
spoken of only after that, and stand out only where they pass further tests.
"""

import math
from dataclasses import dataclass

from headstart.evaluation.interval import Interval
from headstart.studies.analysis import Analysis, Gap, Series
from headstart.studies.claims import named_budgets
from headstart.studies.learning import LabelSavings
from headstart.studies.results import Study


@dataclass(frozen=True)
class Verdict:
    """The sentences, and whether they claim that pretraining changes the accuracy."""

    sentences: list[str]
    claims_difference: bool


def verdict(study: Study, analysis: Analysis) -> Verdict:
    """Sum up a study; a difference is claimed only where it stands out over all budgets."""
    if not analysis.overall:
        return Verdict([_best(study, analysis)], False)
    objective = speaking_objective(analysis)
    overall = analysis.overall[objective]
    name = f"{objective} pretraining" if len(analysis.overall) > 1 else "pretraining"
    claims = overall.excludes(0)
    sentences = [_difference(study, analysis, objective, name)]
    if claims and overall.value > 0 and objective in analysis.savings:
        sentences.append(_savings(analysis.savings[objective]))
    beside = _tfidf(study, analysis, objective)
    if beside:
        sentences.append(beside)
    return Verdict(sentences, claims)


def speaking_objective(analysis: Analysis) -> str:
    """The one that gains most; if it cannot be told from noise, the most of those that can."""
    overall = analysis.overall
    clear = [name for name in overall if overall[name].excludes(0)]
    return max(clear or overall, key=lambda name: overall[name].value)


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


def labelled(count: int) -> str:
    """A number of labels in words."""
    return f"{count:,} labels"


def _difference(study: Study, analysis: Analysis, objective: str, name: str) -> str:
    shown = analysis.overall[objective]
    if not shown.bounded:
        return (
            f"{_capital(name)} {_verb(shown)} {points(shown.value)} points here, but one seed "
            "cannot tell that from noise: run the study with --seeds 3 or more."
        )
    if not shown.excludes(0):
        where = "on average over all label budgets " if len(study.budgets) > 1 else ""
        said = (
            f"{_capital(name)} makes no difference that can be told from noise: {where}it changes "
            f"the accuracy by {signed(shown.value)} points ({within(shown)})."
        )
        return said + _opposite(_named_gaps(study, analysis, objective, ("scratch", objective)))
    gaps = _named_gaps(study, analysis, objective, ("scratch", objective))
    if not any(map(analysis.stands_out, gaps)):
        return _only_together(shown, gaps, name)
    parts = [
        _gap(gap, name if i == 0 else "it", analysis.stands_out(gap)) for i, gap in enumerate(gaps)
    ]
    return _capital("; ".join(parts)) + "."


def _named_gaps(study: Study, analysis: Analysis, objective: str, other: Series) -> list[Gap]:
    found = [
        analysis.gap(("pretrained", objective), other, labels)
        for labels in named_budgets(study.budgets)
    ]
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


def _savings(savings: LabelSavings) -> str:
    goal = f"what training from scratch needs all {savings.all_labels:,} for"
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


def _tfidf(study: Study, analysis: Analysis, objective: str) -> str | None:
    gaps = _named_gaps(study, analysis, objective, ("tfidf", ""))
    if not gaps:
        return None
    said = [_beside(gap, analysis.stands_out(gap)) for gap in gaps]
    return f"Beside it, TF-IDF is {' and '.join(said)}."


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
    return (
        f"With {labelled(best.labels)} {arm} is the best of the arms tried, with "
        f"{100 * best.accuracy.value:.1f} % of the test rows right; scratch and pretrained were "
        "not both run, so nothing is said about pretraining."
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
