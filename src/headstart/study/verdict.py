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
from headstart.study.analysis import ALL_BUDGETS, CHEAPER, Analysis, Cost, Difference, Series
from headstart.study.results import Results
from headstart.study.statistics import is_equivalent, named_budgets

MOST_SENTENCES = 3
MOST_ALTERNATIVES = 2
FILE_KINDS = {"tagging": "conll", "spans": "jsonl"}  # that predictions are read from and written to


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
    headline, steps = analysis.contenders[0], analysis.steps[analysis.objective]
    found = _effect(analysis, steps[-1])
    if len(steps) > 1 and steps[0].interval.bounded:
        found.append(_first_step(analysis, steps))
    missing = find_arm(CHAIN[1])
    if steps[-1].significant and missing not in analysis.chain:
        found.append(
            f"The study has no arm “{missing.label}”, so this includes whatever {missing.effect} "
            "adds."
        )
    for reference in analysis.references:
        gaps = _named(analysis, headline, reference)
        if gaps:
            names = [series_name(one, results) for one in (reference, headline)]
            compared = [_compared(gap, _where(analysis, gap)) for gap in gaps]
            same = compared[0].partition(" with ")[0] + " "
            compared[1:] = [one.removeprefix(same) for one in compared[1:]]
            found.append(f"Compared with {names[0]}, {names[1]} is {' and '.join(compared)}.")
    if steps[-1].significant and len(analysis.budgets) > 1:
        found += _savings(analysis)
    claims = tuple(step.effect for step in steps if step.significant)
    return Verdict(found[:MOST_SENTENCES], found[MOST_SENTENCES:] + reduced, claims)


def _effect(analysis: Analysis, step: Difference) -> list[str]:
    """Say what the headline arm's own ingredient adds, at the named budgets."""
    results, overall = analysis.results, step.interval
    subject = f"{step.first[1]} {step.effect}" if len(analysis.steps) > 1 else step.effect
    if not results.about["corpus"].startswith("the base "):
        subject += " on your text"
    if not overall.bounded:
        seeds = max(3, len(results.about["seeds"]) + 1)
        return [f"So few seeds cannot show whether {subject} helps: run with --seeds {seeds}."]
    metric = f"test {metric_name(results.about['metric'])}"
    gaps = _named(analysis, step.first, step.second)
    if not step.significant:
        return _unclaimed(analysis, step, gaps, subject, metric)
    changes, last = [], ""
    for gap in [gap for gap in gaps if gap.significant] or [step]:
        verb = f"{'raises' if gap.interval.value >= 0 else 'lowers'} {metric} "
        size = f"by {_size(gap, _where(analysis, gap))}"
        changes.append(size if verb == last else verb + size)
        last = verb
    found = [f"{subject} {' and '.join(changes)}."]
    found += [
        f"{_where(analysis, gap).lstrip()} the {'gain' if gap.interval.value >= 0 else 'loss'} of "
        f"{points(gap.interval.value)} is not significant{_corrected(gap)} "
        f"({within(gap.interval)})."
        for gap in gaps
        if not gap.significant
    ]
    return [_capital(sentence) for sentence in found]


def _unclaimed(
    analysis: Analysis, step: Difference, gaps: Sequence[Difference], subject: str, metric: str
) -> list[str]:
    """Say that there is no difference, or that this study cannot show one."""
    overall, other = step.interval, series_name(step.second, analysis.results)
    size = f"{signed(overall.value)} points ({_level(overall)} {within(overall)})"
    change = f"it changes {metric} by {size}{_where(analysis, step)}, compared with {other}"
    if overall.excludes(0):
        change += f", which is not significant{_corrected(step)}"
    found = [f"This study does not show whether {subject} helps: {change}."]
    if is_equivalent(overall):
        found = [f"{_capital(subject)} makes no difference here: {change}."]
    if len({gap.interval.value > 0 for gap in gaps if gap.interval.excludes(0)}) > 1:
        each = [f"{within(gap.interval)} with {labels_name(gap.labels)}" for gap in gaps]
        found.append(f"Label budgets point in opposite directions: {' and '.join(each)}.")
    elif step.detectable >= 1:
        found.append("There are too few rows to find any difference.")
    elif not is_equivalent(overall):
        found.append(
            "With these seeds and rows it would find differences of about "
            f"{points(step.detectable)} or more (power 80 %)."
        )
    return found


def _named(analysis: Analysis, first: Series, second: Series) -> list[Difference]:
    budgets = named_budgets(analysis.budgets)
    found = [analysis.difference(first, second, labels) for labels in budgets]
    return [gap for gap in found if gap is not None and gap.interval.bounded]


def _where(analysis: Analysis, gap: Difference) -> str:
    """Write the budget of a difference, with a blank before it."""
    if gap.labels != ALL_BUDGETS:
        return f" with {labels_name(gap.labels, analysis.results)}"
    return " on average over all label budgets" if len(analysis.budgets) > 1 else ""


def _level(interval: Interval) -> str:
    return f"{100 * interval.level:.3g} % CI"


def _size(gap: Difference, words: str) -> str:
    """Write the size of a significant difference, then `words`, then its interval, no signs."""
    ends = sorted(map(abs, (gap.interval.low, gap.interval.high)))
    reach = " to ".join(map(signed, ends))
    return f"{points(gap.interval.value)}{words} ({_level(gap.interval)} {reach})"


def _corrected(gap: Difference) -> str:
    """Explain a difference that is not significant although its interval excludes zero."""
    return " after correction for several comparisons" if gap.interval.excludes(0) else ""


def _compared(gap: Difference, where: str = "") -> str:
    """Say how the first arm of a difference compares with the second."""
    if gap.significant:
        return _size(gap, f" {'better' if gap.interval.value > 0 else 'worse'}{where}")
    word = "as good" if is_equivalent(gap.interval) else "not significantly different"
    change = f"{signed(gap.interval.value)} points, {within(gap.interval)}"
    return f"{word}{_corrected(gap)}{where} ({change})"


def _first_step(analysis: Analysis, steps: Sequence[Difference]) -> str:
    """Say what the ingredient before the headline arm's own adds over the control."""
    first, total = steps[0], sum(step.interval.value for step in steps)
    control = analysis.chain[0].phrase
    where = _where(analysis, first).removesuffix(" over all label budgets")
    if first.significant and first.interval.value > max(0.0, total / 2):
        change = f"{points(first.interval.value)}{where}, {within(first.interval)}"
        return f"Most of the gain over {control} comes from {first.effect} ({change})."
    return f"Compared with {control}, {first.effect} alone is {_compared(first, where)}."


def _savings(analysis: Analysis) -> list[str]:
    """Say how many labels replace all labels of the other arm, where the interval is bounded."""
    savings = analysis.label_savings()
    if not savings.bounded:
        return []
    labels, low, high = (
        rounded(number) if number else f"fewer than {analysis.budgets[0]:,}"
        for number in (savings.value, savings.low, savings.high)
    )
    name, other = series_name(analysis.contenders[0], analysis.results), analysis.chain[-2].phrase
    goal = f"what {other} needs {labels_name(analysis.most, analysis.results)} for"
    return [_capital(f"{name} reaches with {labels} labels (95 % CI {low} to {high}) {goal}.")]


def _without_comparison(analysis: Analysis) -> list[str]:
    results, most = analysis.results, analysis.most
    best = max(analysis.every, key=lambda one: analysis.scores[one, most].value)
    score = f"test {metric_name(results.about['metric'])}: {percent(analysis.scores[best, most])}"
    highest = "has the highest" if len(analysis.every) > 1 else "has a"
    found = [f"With {labels_name(most, results)} {series_name(best, results)} {highest} {score}."]
    gap = analysis.difference(best, analysis.selected, most)
    if gap is not None:
        selected = series_name(analysis.selected, results)
        how = "not comparable: there are too few seeds or rows"
        how = _compared(gap) if gap.interval.bounded else how
        found.append(f"Compared with {selected}, which model selection chose, it is {how}.")
    return [
        *found,
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
    interval, name = analysis.scores[taken, analysis.most], series_name(taken, results)
    metric = metric_name(results.about["metric"])
    reach = "too few seeds or rows for an interval"
    if interval.bounded:
        reach = f"95 % CI {within(interval)}"
    expected = f"{100 * interval.value:.1f} % {metric} on new texts ({reach})"
    cost = cost_words(analysis.costs[taken, analysis.most])
    found = [f"Take {name}: expect {expected}; it costs {cost}."]
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
            "The same rows chose it among the arms, so expect a little less on new texts; a "
            "separate test file (--test FILE) would tell."
        )
    if find_arm(taken[0]).estimator:
        found.append("Only networks can be exported to ONNX or transformers; this arm is not one.")
    found += _cheaper(analysis)
    kind = FILE_KINDS.get(results.about["task"], "csv")
    files = ["--input", f"texts.{kind}", "--output", f"predictions.{kind}"]
    command = shlex.join(["headstart", "predict", str(folder / "best"), *files])
    saved = results.about["saved"]
    if not saved:
        return Recommendation(
            taken, found, f"# {name} cannot be saved: there is no {folder / 'best'}"
        )
    held = (saved["arm"], saved["objective"])
    if held != taken:
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
        if ratios and not (gap.significant and gap.interval.value > 0):
            names = [series_name(one, results) for one in (gap.second, gap.first)]
            change = f"{' and '.join(ratios)} than {names[1]}, and {_compared(gap.reversed())}"
            found.append(_capital(f"{names[0]} is {change}."))
    return found[:MOST_ALTERNATIVES]


def cost_words(cost: Cost) -> str:
    """Write a cost: time to train, size if known, time per text."""
    size = f"{size_words(cost.bytes)} on disk, " if cost.bytes else ""
    speed = f"{milliseconds_words(cost.milliseconds)} ms per text"
    return f"{minutes_words(cost.minutes)} to train, {size}{speed}"
