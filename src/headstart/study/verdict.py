"""What a study says, in a few sentences: which arm to take, and whether pretraining helped.

What may be claimed is decided in `statistics.py`: over all label budgets first, then for single
budgets. The metric's name is written as it is given; no sentence assumes accuracy. Differences are
those of the arm named first minus the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.evaluation.metrics import Interval
from headstart.study.analysis import CHEAPER, Analysis, Cost, Difference, Series
from headstart.study.arms import CHAIN, arm_label, find_arm
from headstart.study.labels_needed import LabelSavings
from headstart.study.results import Results
from headstart.study.statistics import is_equivalent, named_budgets

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
    about: dict[str, Any] = results.about if results else {"all_labels": math.inf}
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
    controls = [arm.phrase or arm.label for arm in analysis.chain]
    found = _effect(analysis, steps[-1])
    if len(steps) > 1 and steps[0].interval.bounded:
        found.append(_first_step(analysis, steps, controls[0]))
    missing = find_arm(CHAIN[1])
    if steps[-1].significant and missing not in analysis.chain:
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
        found += _savings(results, analysis.savings[objective], name, controls[-2])
    claims = tuple(step.effect for step in steps if step.significant)
    return Verdict(found[:MOST_SENTENCES], found[MOST_SENTENCES:] + reduced, claims)


def _effect(analysis: Analysis, step: Difference) -> list[str]:
    """Say what the headline arm's own ingredient adds, at the named budgets."""
    results, overall = analysis.results, step.interval
    subject = f"{step.first[1]} {step.effect}" if len(analysis.steps) > 1 else step.effect
    if not results.about["corpus"].startswith("the base "):
        subject += " on your text"
    if not overall.bounded:
        seeds = len(results.about["seeds"])
        few = "One seed" if seeds == 1 else f"{seeds} seeds"
        return [f"{few} cannot show whether {subject} helps: run with --seeds {max(3, seeds + 1)}."]
    metric = f"test {metric_name(results.about['metric'])}"
    gaps = _named(analysis, step.first, step.second)
    average = " on average over all label budgets" if len(analysis.budgets) > 1 else ""
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
            found.append(
                f"With {labels_name(gap.labels, results)} the {word} of "
                f"{points(gap.interval.value)} is not significant{_corrected(gap)} "
                f"({within(gap.interval)})."
            )
    return found


def _unclaimed(
    difference: Difference, gaps: Sequence[Difference], subject: str, changed: str
) -> list[str]:
    """Say that there is no difference, or that this study cannot show one."""
    overall = difference.interval
    size = f"{signed(overall.value)} points ({_level(overall)} {within(overall)})"
    change = f"it changes {changed}, by {size}"
    if overall.excludes(0):
        change += f", which is not significant{_corrected(difference)}"
    directions = {gap.interval.value > 0 for gap in gaps if gap.interval.excludes(0)}
    found = [f"This study does not show whether {subject} helps: {change}."]
    if is_equivalent(overall):
        found = [f"{_capital(subject)} makes no difference here: {change}."]
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
    budgets = named_budgets(analysis.budgets)
    found = [analysis.difference(first, second, labels) for labels in budgets]
    return [gap for gap in found if gap is not None and gap.interval.bounded]


def _level(interval: Interval) -> str:
    return f"{100 * interval.level:.3g} % CI"


def _ci(difference: Interval) -> str:
    """Write the interval of a change by its size: both ends without sign where both are losses."""
    if difference.high < 0:
        reach = f"{signed(-difference.high)} to {signed(-difference.low)}"
        return f"({_level(difference)} {reach})"
    return f"({_level(difference)} {within(difference)})"


def _corrected(gap: Difference) -> str:
    """Explain a difference that is not significant although its interval excludes zero."""
    return " after correction for several comparisons" if gap.interval.excludes(0) else ""


def _compared(gap: Difference, where: str = "") -> str:
    """Say how the first arm of a difference compares with the second."""
    if gap.significant:
        word = "better" if gap.interval.value > 0 else "worse"
        return f"{points(gap.interval.value)} {word}{where} {_ci(gap.interval)}"
    word = "as good" if is_equivalent(gap.interval) else "not significantly different"
    change = f"{signed(gap.interval.value)} points, {within(gap.interval)}"
    return f"{word}{_corrected(gap)}{where} ({change})"


def _first_step(analysis: Analysis, steps: Sequence[Difference], control: str) -> str:
    """Say what the ingredient before the headline arm's own adds over the control."""
    first, total = steps[0], sum(step.interval.value for step in steps)
    average = " on average" if len(analysis.budgets) > 1 else ""
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
    scores = [score for score in analysis.scores.values() if score.labels == analysis.most]
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
    """Recommend the arm that model selection chose, and name cheaper ones that do not differ.

    Parameters
    ----------
    analysis : Analysis
    folder : Path
        The study's folder, for the command.
    """
    results, taken = analysis.results, analysis.selected
    interval = analysis.scores[taken, analysis.most].interval
    name = series_name(taken, results)
    metric = metric_name(results.about["metric"])
    reach = "too few seeds or test rows for an interval"
    if interval.bounded:
        reach = f"95 % CI {within(interval)}"
    expected = f"{100 * interval.value:.1f} % {metric} on new texts ({reach})"
    cost = cost_words(analysis.costs[taken, analysis.most])
    costs = f"; it costs {', '.join(cost.values())}" if cost else ""
    found = [f"Take {name}: expect {expected}{costs}."]
    if results.about["shared_test"]:
        found.append(
            "The same rows chose it among the arms, so expect a little less on new texts; a "
            "separate test file (--test FILE) would tell."
        )
    if find_arm(taken[0]).estimator:
        found.append("It is not a network alone: it cannot be exported to ONNX or transformers.")
    found += _cheaper(analysis)
    command = f"headstart predict {folder / 'best'} --input texts.csv"
    saved = results.about.get("saved") or {}
    held = (saved.get("arm", ""), saved.get("objective", ""))
    if not saved:
        command = f"# {name} cannot be saved: there is no {folder / 'best'}"
    elif held != taken:
        other = series_name(held, results)
        found.append(f"The folder best/ holds {other}, which is the best that can be saved.")
    return Recommendation(taken, found, command)


def _cheaper(analysis: Analysis) -> list[str]:
    """Name cheaper arms that are not significantly worse."""
    results, most = analysis.results, analysis.most
    cost = analysis.costs[analysis.selected, most]
    gaps = [analysis.difference(analysis.selected, one, most) for one in analysis.every]
    compared = [gap for gap in gaps if gap is not None and gap.interval.bounded]
    found = []
    for gap in sorted(compared, key=lambda gap: gap.interval.value):
        ratios = [
            f"{float(f'{ratio:.2g}'):,g} times {word}"
            for word, ratio in analysis.costs[gap.second, most].times_cheaper(cost).items()
            if ratio >= CHEAPER
        ]
        if not ratios or (gap.significant and gap.interval.value > 0):
            continue
        names = [series_name(one, results) for one in (gap.first, gap.second)]
        change = f"{' and '.join(ratios)}, and {_compared(gap.reversed())}"
        found.append(f"Compared with {names[0]}, {names[1]} is {change}.")
    return found[:MOST_ALTERNATIVES]


def cost_words(cost: Cost) -> dict[str, str]:
    """Write the measured parts of a cost: time to train, size, time per text."""
    found = {}
    if cost.minutes is not None:
        found["minutes"] = f"{minutes_words(cost.minutes)} to train"
    if cost.bytes is not None:
        found["bytes"] = f"{size_words(cost.bytes)} on disk"
    if cost.milliseconds is not None:
        found["milliseconds"] = f"{max(0.01, cost.milliseconds):.2g} ms per text"
    return found
