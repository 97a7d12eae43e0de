"""What a study says, in a few sentences: which arm to take, and whether pretraining helped.

What may be claimed is decided in `statistics.py`: over all label budgets first, then for single
budgets. The metric's name is written as it is given; no sentence assumes accuracy. Differences are
those of the arm named first minus the other.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headstart.arms import CHAIN, arm_label, find_arm
from headstart.evaluation import metric_name
from headstart.evaluation.metrics import Interval
from headstart.study.analysis import ALL_BUDGETS, Analysis, Difference, Series
from headstart.study.results import Results
from headstart.study.statistics import is_equivalent, named_budgets

MOST_SENTENCES = 3
SMALLER = 2.0  # times, to be an alternative
FILE_KINDS = {"tagging": "conll", "spans": "jsonl"}  # that predictions are read from and written to


def signed(value: float) -> str:
    """Write a difference in points, with a real minus sign."""
    text = f"{100 * value:.1f}"
    return text.replace("-", "−") if float(text) else "0.0"


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


def series_name(series: Series, results: Results) -> str:
    """Write an arm's label, with its objective where the study has several."""
    several = len(results.about["pretraining"]) > 1 and series[1]
    return f"{arm_label(series[0])} · {series[1]}" if several else arm_label(series[0])


def labels_name(labels: int, results: Results | None = None) -> str:
    """Write a number of labels; "all" where these are all labelled rows of the training part."""
    if results and results.about["folds"] == 1 and labels >= results.about["all_labels"]:
        return f"all {labels:,} labels"
    return f"{labels:,} labels"  # in a study in folds never all: a fold lacks its own rows


def size_words(count: float) -> str:
    """Write a size on disk."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.0f} kB"


def minutes_words(minutes: float) -> str:
    """Write a time to train: seconds below a minute."""
    return f"{minutes:,.1f} min" if minutes >= 1 else f"{60 * minutes:,.1f} s"


def milliseconds_words(milliseconds: float) -> str:
    """Write a time per text in milliseconds: never zero."""
    return f"{max(0.01, milliseconds):.2g}"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


@dataclass(frozen=True)
class Verdict:
    """At most three sentences, and further ones."""

    sentences: list[str]
    details: list[str]


def verdict(analysis: Analysis) -> Verdict:
    """Say whether pretraining helped, by how much, and what else the gain comes from."""
    found = [
        f"The study does not have both {CHAIN[0]} and {CHAIN[-1]}, so it says nothing about "
        "pretraining."
    ]
    if analysis.steps:
        steps = analysis.steps[analysis.objective]
        found = [*_effect(analysis, steps[-1]), *_context(analysis, steps)]
    if cuts := analysis.results.about["cuts"]:
        found.append(f"Reduced to fit into the time limit: {'; '.join(cuts)}.")
    return Verdict(found[:MOST_SENTENCES], found[MOST_SENTENCES:])


def _effect(analysis: Analysis, step: Difference) -> list[str]:
    """Say what the headline arm's own ingredient adds."""
    about, overall = analysis.results.about, step.interval
    subject = f"{step.first[1]} {step.effect}" if len(analysis.steps) > 1 else step.effect
    if not about["corpus"].startswith("the base "):
        subject += " on your text"
    if not overall.bounded:
        seeds = max(3, len(about["seeds"]) + 1)
        return [f"So few seeds cannot show whether {subject} helps: run with --seeds {seeds}."]
    gaps = _named(analysis, step.first, step.second)
    if step.significant:
        verb = "raises" if overall.value > 0 else "lowers"
        claim = f"{subject} {verb} test {metric_name(about['metric'])}"
        shown = gaps if any(gap.significant for gap in gaps) else [step]
        return [_capital(f"{claim}: {_comparison(analysis, shown)}.")]
    if is_equivalent(overall):
        return [_capital(f"{subject} makes no difference here: {_comparison(analysis, [step])}.")]
    found = f"This study does not show whether {subject} helps: {_comparison(analysis, [step])}."
    if step.detectable >= 1:
        return [found, "There are too few rows to find any difference."]
    return [
        found,
        "With these seeds and rows, it would find differences of about "
        f"{signed(step.detectable)} points or more (power 80 %).",
    ]


def _context(analysis: Analysis, steps: Sequence[Difference]) -> list[str]:
    """Say what the other ingredient adds, how references compare, and how many labels it saves."""
    headline, found = analysis.contenders[0], []
    if len(steps) > 1 and steps[0].interval.bounded:
        found.append(_capital(f"{_comparison(analysis, steps[:1])}."))
    missing, helps = find_arm(CHAIN[1]), steps[-1].significant
    if helps and missing not in analysis.chain:
        found.append(
            f"The study has no arm “{missing.label}”, so this includes what {missing.effect} adds."
        )
    for reference in analysis.references:
        if gaps := _named(analysis, headline, reference):
            found.append(_capital(f"{_comparison(analysis, gaps)}."))
    if not helps or len(analysis.budgets) == 1:
        return found
    savings = analysis.label_savings()
    if savings.bounded:
        labels, low, high = (
            rounded(number) if number else f"fewer than {analysis.budgets[0]:,}"
            for number in (savings.value, savings.low, savings.high)
        )
        name, other = (series_name(one, analysis.results) for one in analysis.contenders[:2])
        goal = f"to be as good as {other} with {labels_name(analysis.most, analysis.results)}"
        found.append(_capital(f"{name} needs {labels} labels (95 % CI {low} to {high}) {goal}."))
    return found


def _named(analysis: Analysis, first: Series, second: Series) -> list[Difference]:
    """Return the differences of two arms at the budgets that sentences name."""
    budgets = named_budgets(analysis.budgets)
    found = [analysis.difference(first, second, labels) for labels in budgets]
    return [gap for gap in found if gap is not None and gap.interval.bounded]


def _comparison(analysis: Analysis, gaps: Sequence[Difference]) -> str:
    """Compare two arms, at one budget or several."""
    first, second = (series_name(one, analysis.results) for one in (gaps[0].first, gaps[0].second))
    found = []
    for gap in gaps:
        where = f" with {labels_name(gap.labels, analysis.results)}"
        if gap.labels == ALL_BUDGETS:
            where = " on average over all label budgets" if len(analysis.budgets) > 1 else ""
        found.append(_compared(gap, where))
    return f"compared with {second}, {first} is {' and '.join(found)}"


def _compared(gap: Difference, where: str = "") -> str:
    """Say how the first arm of a difference compares with the second."""
    interval = gap.interval
    level = f"{100 * interval.level:.3g} % CI"
    if gap.significant:
        size, *ends = (signed(abs(one)) for one in (interval.value, interval.low, interval.high))
        low, high = sorted(ends, key=float)
        word = "better" if interval.value > 0 else "worse"
        return f"{size} points {word}{where} ({level} {low} to {high})"
    word = "as good" if is_equivalent(interval) else "not significantly different"
    if interval.excludes(0):
        word += " after correction for several comparisons"
    return f"{word}{where} ({signed(interval.value)} points, {level} {within(interval)})"


@dataclass(frozen=True)
class Recommendation:
    """The arm to take, sentences with its expected score and cost, and the command to use it."""

    series: Series
    sentences: list[str]
    command: str


def recommend(analysis: Analysis, folder: Path) -> Recommendation:
    """Recommend the arm that model selection chose, and name cheaper ones that do not differ."""
    results, taken = analysis.results, analysis.selected
    interval, name = analysis.scores[taken, analysis.most], series_name(taken, results)
    metric = metric_name(results.about["metric"])
    reach = f"95 % CI {within(interval)}" if interval.bounded else "too few seeds for an interval"
    expected = f"{100 * interval.value:.1f} % {metric} on new texts ({reach})"
    cost = analysis.costs[taken, analysis.most]
    size = f"{size_words(cost.bytes)} on disk, " if cost.bytes else ""
    found = [
        f"Take {name}: expect {expected}; it costs {minutes_words(cost.minutes)} to train, "
        f"{size}{milliseconds_words(cost.milliseconds)} ms per text."
    ]
    if not find_arm(taken[0]).is_network:
        found.append("It is not a single network: it cannot be exported to ONNX or transformers.")
    if results.about["folds"] > 1:
        found.append(
            f"This was measured in {results.about['folds']} folds, each with {analysis.most:,} "
            f"labels for training; best/ is trained on all {len(results.rows):,} labelled rows."
        )
    if results.has_classes:
        counts = np.bincount(results.gold.astype(int))
        share, largest = counts.max() / counts.sum(), results.about["label_names"][counts.argmax()]
        if interval.low <= share:
            found.append(
                f"For comparison: always predicting “{largest}” is correct for {100 * share:.1f} % "
                "of these rows."
            )
    if results.about["shared_test"]:
        found.append(
            "The same rows selected this arm, so expect slightly less on new texts; a separate "
            "test file (--test FILE) gives an unbiased number."
        )
    found += _smaller(analysis)
    saved = results.about["saved"]
    if not saved:
        command = f"# {name} cannot be saved: there is no {folder / 'best'}"
        return Recommendation(taken, found, command)
    held = (saved["arm"], saved["objective"])
    if held != taken:
        held_name = series_name(held, results)
        found.append(f"The folder best/ holds {held_name}, which is the best that can be saved.")
    kind = FILE_KINDS.get(results.about["task"], "csv")
    files = ["--input", f"texts.{kind}", "--output", f"predictions.{kind}"]
    command = shlex.join(["headstart", "predict", str(folder / "best"), *files])
    return Recommendation(taken, found, command)


def _smaller(analysis: Analysis) -> list[str]:
    """Name smaller arms that are not significantly worse."""
    results, most, taken = analysis.results, analysis.most, analysis.selected
    gaps = [analysis.difference(one, taken, most) for one in analysis.every]
    compared = [gap for gap in gaps if gap is not None and gap.interval.bounded]
    found = []
    for gap in sorted(compared, key=lambda gap: -gap.interval.value):
        large, small = (analysis.costs[one, most].bytes or 0.0 for one in (taken, gap.first))
        ratio = large / small if small else 0.0
        if ratio >= SMALLER and not (gap.significant and gap.interval.value < 0):
            names = [series_name(one, results) for one in (gap.first, taken)]
            times = f"{float(f'{ratio:.2g}'):,g} times smaller than {names[1]}"
            found.append(_capital(f"{names[0]} is {times}, and {_compared(gap)}."))
    return found[:2]
