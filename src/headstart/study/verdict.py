"""What a study says, in a few sentences: which arm to take, and whether pretraining helped.

What may be claimed is decided in `statistics.py`: over all label budgets first, then for single
budgets. The metric's name is written as it is given; no sentence assumes accuracy. Differences are
those of the arm named first minus the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.evaluation.metrics import Interval
from headstart.study.analysis import (
    Analysis,
    Cost,
    Difference,
    Series,
)
from headstart.study.arms import CHAIN, Arm, arm_label, find_arm
from headstart.study.labels_needed import LabelSavings
from headstart.study.results import Results
from headstart.study.statistics import is_equivalent, named_budgets

CHEAPER = 2.0  # times smaller or faster, to be mentioned
MOST_SENTENCES = 3
MOST_ALTERNATIVES = 2


# Numbers in words.


def signed(value: float) -> str:
    """Write a difference in points, with a real minus sign."""
    text = f"{100 * value:.1f}"
    return text.replace("-", "−") if float(text) else "0.0"


def points(value: float) -> str:
    """Write the size of a difference in points."""
    return f"{signed(abs(value))} points"


def within(interval: Interval) -> str:
    """Write the ends of an interval in points or percent."""
    return f"{signed(interval.low)} to {signed(interval.high)}"


def percent(interval: Interval) -> str:
    """Write a score in percent with its interval, where it has one."""
    value = f"{100 * interval.value:.1f} %"
    return f"{value} ({within(interval)})" if interval.bounded else value


def rounded(labels: float) -> str:
    """Write an estimated number with two significant digits."""
    return f"{float(f'{labels:.2g}'):,.0f}"


def metric_name(metric: str) -> str:
    """Write a metric's name for people.

    Example
    -------
    >>> metric_name("micro_f1"), metric_name("exact_match")
    ('micro-F1', 'exact match')
    """
    return metric.replace("_f1", "-F1").replace("f1", "F1").replace("_", " ")


def series_name(series: Series, results: Results) -> str:
    """Write an arm's label, with its objective where the study has several."""
    several = len(results.about["pretraining"]) > 1 and series[1]
    return f"{arm_label(series[0])} · {series[1]}" if several else arm_label(series[0])


def labels_name(labels: int, results: Results | None = None) -> str:
    """Write a number of labels; "all" where these are all labelled rows of the training part."""
    if results is None:
        return f"{labels:,} labels"
    about = results.about
    every = about["all_labels"] or about["splits"].get("train", 0)
    return f"all {labels:,} labels" if labels >= every > 0 else f"{labels:,} labels"


def size_words(count: float) -> str:
    """Write a size on disk."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.0f} kB"


def minutes_words(minutes: float) -> str:
    """Write a time to train: seconds below a minute."""
    return f"{minutes:,.1f} min" if minutes >= 1 else f"{60 * minutes:,.1f} s"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


# Whether pretraining helped.


@dataclass(frozen=True)
class Verdict:
    """At most three sentences, further ones, and the claimed effects."""

    sentences: list[str]
    details: list[str]
    claims: tuple[str, ...] = ()


def verdict(analysis: Analysis) -> Verdict:
    """Say whether pretraining helped, by how much, and what else the gain comes from."""
    results = analysis.results
    cuts = results.about["cuts"]
    reduced = [f"Reduced to fit into the time limit: {'; '.join(cuts)}."] if cuts else []
    if not analysis.steps:
        return Verdict(_without_comparison(analysis), reduced)
    objective, headline = analysis.objective, analysis.contenders[0]
    steps = analysis.steps[objective]
    found = _effect(analysis, steps[-1], _subject(analysis, objective))
    if len(steps) > 1 and steps[0].interval.bounded:
        found.append(_first_step(analysis, steps))
    if steps[-1].significant and find_arm(CHAIN[1]) not in analysis.chain:
        missing = find_arm(CHAIN[1])
        found.append(
            f"The study has no arm “{missing.label}”, so this includes whatever {missing.effect} "
            "adds."
        )
    for reference in analysis.references:
        compared = [
            _compared(gap, f" with {labels_name(gap.labels, results)}")
            for gap in _named(analysis, headline, reference)
        ]
        if compared:
            names = [series_name(one, results) for one in (reference, headline)]
            found.append(f"Compared with {names[0]}, {names[1]} is {' and '.join(compared)}.")
    if steps[-1].significant and objective in analysis.savings:
        name = series_name(headline, results)
        other = _control(analysis.chain[-2])
        found += _savings(results, analysis.savings[objective], name, other)
    claims = tuple(step.effect for step in steps if step.significant)
    return Verdict(found[:MOST_SENTENCES], found[MOST_SENTENCES:] + reduced, claims)


def _subject(analysis: Analysis, objective: str) -> str:
    about, effect = analysis.results.about, analysis.steps[objective][-1].effect
    name = f"{objective} {effect}" if len(analysis.steps) > 1 else effect
    return name if about["corpus"].startswith("the base ") else f"{name} on your text"


def _control(arm: Arm) -> str:
    return arm.phrase or arm.label


def _effect(analysis: Analysis, step: Difference, subject: str) -> list[str]:
    """Say what the headline arm's own ingredient adds, at the named budgets."""
    results, overall = analysis.results, step.interval
    metric = f"test {metric_name(results.about['metric'])}"
    gaps = _named(analysis, step.first, step.second)
    if not overall.bounded:
        seeds = len(results.about["seeds"])
        few = "One seed" if seeds == 1 else f"{seeds} seeds"
        return [f"{few} cannot show whether {subject} helps: run with --seeds {max(3, seeds + 1)}."]
    several = len(results.about["budgets"]) > 1
    average = " on average over all label budgets" if several else ""
    if not step.significant:
        change = f"{metric}{average}, compared with {series_name(step.second, results)}"
        return _unclaimed(step, gaps, subject, change)
    claims = [
        (gap.interval, f" with {labels_name(gap.labels, results)}")
        for gap in gaps
        if gap.significant
    ]
    found = []
    for interval, where in claims or [(overall, average)]:
        verb = "raises" if interval.value >= 0 else "lowers"
        change = f"{verb} {metric} by {points(interval.value)}{where} {_ci(interval)}"
        found.append(_capital(f"{subject} {change}."))
    for gap in gaps:
        if not gap.significant:
            word = "gain" if gap.interval.value >= 0 else "loss"
            corrected = " after correction for several budgets" * gap.interval.excludes(0)
            found.append(
                f"With {labels_name(gap.labels, results)} the {word} of "
                f"{points(gap.interval.value)} is not significant{corrected} "
                f"({within(gap.interval)})."
            )
    return found


def _unclaimed(
    difference: Difference, gaps: Sequence[Difference], subject: str, changed: str
) -> list[str]:
    """Say that there is no difference, or that this study cannot show one."""
    overall = difference.interval
    level = f"{100 * overall.level:.3g} % CI"
    size = f"{signed(overall.value)} points ({level} {within(overall)})"
    change = f"it changes {changed}, by {size}"
    if overall.excludes(0):
        change += ", which is not significant after correction for several comparisons"
    directions = {gap.interval.value > 0 for gap in gaps if gap.interval.excludes(0)}
    if is_equivalent(overall):
        found = [f"{_capital(subject)} makes no difference here: {change}."]
    else:
        found = [f"This study does not show whether {subject} helps: {change}."]
    if len(directions) > 1:
        each = [f"{within(gap.interval)} with {labels_name(gap.labels)}" for gap in gaps]
        found.append(f"Label budgets point in opposite directions: {' and '.join(each)}.")
    elif difference.detectable >= 1:
        found.append("The test rows are too few to find any difference.")
    elif not is_equivalent(overall):
        found.append(
            f"With these seeds and test rows it would find differences of about "
            f"{points(difference.detectable)} or more (power 80 %)."
        )
    return found


def _named(analysis: Analysis, first: Series, second: Series) -> list[Difference]:
    budgets = named_budgets(analysis.results.about["budgets"])
    found = [analysis.difference(first, second, labels) for labels in budgets]
    return [gap for gap in found if gap is not None and gap.interval.bounded]


def _ci(difference: Interval) -> str:
    """Write the interval of a change by its size: both ends without sign where both are losses."""
    level = f"{100 * difference.level:.3g} % CI"
    if difference.high < 0:
        return f"({level} {signed(-difference.high)} to {signed(-difference.low)})"
    return f"({level} {within(difference)})"


def _change(interval: Interval) -> str:
    """Write a signed difference with its interval."""
    return f"{signed(interval.value)} points, {within(interval)}"


def _compared(gap: Difference, where: str = "") -> str:
    """Say how the first arm of a difference compares with the second."""
    if gap.significant:
        judged = "better" if gap.interval.value > 0 else "worse"
        return f"{points(gap.interval.value)} {judged}{where} {_ci(gap.interval)}"
    judged = "as good" if is_equivalent(gap.interval) else "not significantly different"
    return f"{judged}{where} ({_change(gap.interval)})"


def _first_step(analysis: Analysis, steps: Sequence[Difference]) -> str:
    """Say what the ingredient before the headline arm's own adds over the control."""
    first, control = steps[0], _control(analysis.chain[0])
    total = sum(step.interval.value for step in steps)
    average = " on average" if len(analysis.results.about["budgets"]) > 1 else ""
    if first.significant and first.interval.value > max(0.0, total / 2):
        change = f"{signed(first.interval.value)} points{average}, {within(first.interval)}"
        return f"Most of the gain over {control} comes from {first.effect} ({change})."
    return f"Compared with {control}, {first.effect} alone is {_compared(first, average)}."


def _savings(results: Results, savings: LabelSavings, name: str, other: str) -> list[str]:
    """Say how many labels replace all labels of the other arm, where the interval is bounded."""
    if not (math.isfinite(savings.high) and math.isfinite(savings.labels)):
        return []
    fewest = f"fewer than {savings.fewest:,}"
    low = rounded(savings.low) if savings.low else fewest
    reach = f"{low} to {rounded(savings.high)}" if savings.high else fewest
    needs = f"about {rounded(savings.labels)}" if savings.labels else fewest
    goal = f"what {other} needs {labels_name(savings.most, results)} for"
    return [_capital(f"{name} reaches with {needs} labels (95 % CI {reach}) {goal}.")]


def _without_comparison(analysis: Analysis) -> list[str]:
    results = analysis.results
    scores = [s for s in analysis.scores if s.labels == results.about["budgets"][-1]]
    best = max(scores, key=lambda score: score.interval.value)
    labels, name = labels_name(best.labels, results), series_name(best.series, results)
    metric = f"test {metric_name(results.about['metric'])}"
    highest = "has the highest" if len(scores) > 1 else "has a"
    return [
        f"With {labels} {name} {highest} {metric}: {percent(best.interval)}.",
        f"The study does not have both {CHAIN[0]} and {CHAIN[-1]}, so it says nothing about "
        "pretraining.",
    ]


# Which arm to take.


@dataclass(frozen=True)
class Recommendation:
    """The arm to take, sentences with its expected score and cost, and the command to use it."""

    series: Series
    sentences: list[str]
    command: str


def recommend(analysis: Analysis, folder: Path) -> Recommendation:
    """Recommend the arm that model selection chose.

    Parameters
    ----------
    analysis : Analysis
        Its alternatives carry the verdict's corrected decisions.
    folder : Path
        The study's folder, for the command.
    """
    results, taken = analysis.results, analysis.taken
    labels = max(score.labels for score in analysis.scores)
    score, cost = analysis.score(taken, labels), analysis.costs[taken, labels]
    assert score is not None
    name = series_name(taken, results)
    metric = metric_name(results.about["metric"])
    expected = f"{100 * score.interval.value:.1f} % {metric} on new texts"
    if score.interval.bounded:
        expected += f" (95 % CI {within(score.interval)})"
    else:
        expected += " (too few seeds or test rows for an interval)"
    found = [f"Take {name}: expect {expected}{_cost_words(cost)}."]
    if results.about["shared_test"]:
        found.append(
            "The same rows chose it among the arms, so expect a little less on new texts; a "
            "separate test file (--test FILE) would tell."
        )
    found += _alternatives(analysis, cost, labels)
    command = f"headstart predict {folder / 'best'} --input texts.csv"
    saved = results.about.get("saved") or {}
    if not saved:
        command = f"# {name} cannot be saved: there is no {folder / 'best'}"
    elif (saved["arm"], saved["objective"]) != taken:
        other = series_name((saved["arm"], saved["objective"]), results)
        found.append(f"{_capital(name)} cannot be saved as a run: best/ holds {other}.")
    return Recommendation(taken, found, command)


def _alternatives(analysis: Analysis, cost: Cost, labels: int) -> list[str]:
    """Name smaller or faster arms that are not significantly worse."""
    results, found = analysis.results, []
    for gap in sorted(analysis.alternatives, key=lambda gap: gap.interval.value):
        other = analysis.costs[gap.second, labels]
        ratios = [
            f"{float(f'{ratio:.2g}'):,g} times {word}"
            for ratio, word in (
                (other.times_smaller(cost), "smaller"),
                (other.times_faster(cost), "faster"),
            )
            if ratio >= CHEAPER
        ]
        behind = gap.significant and gap.interval.value > 0
        if behind or not ratios or not gap.interval.bounded:
            continue
        names = [series_name(one, results) for one in (gap.first, gap.second)]
        cheaper = " and ".join(ratios)
        found.append(
            f"Compared with {names[0]}, {names[1]} is {cheaper}, and {_compared(gap.reversed())}."
        )
    return found[:MOST_ALTERNATIVES]


def _cost_words(cost: Cost) -> str:
    found = []
    if cost.minutes is not None:
        found.append(f"{minutes_words(cost.minutes)} to train")
    if cost.bytes is not None:
        found.append(f"{size_words(cost.bytes)} on disk")
    if cost.milliseconds is not None:
        found.append(f"{max(0.01, cost.milliseconds):.2g} ms per text")
    return f"; it costs {', '.join(found)}" if found else ""
