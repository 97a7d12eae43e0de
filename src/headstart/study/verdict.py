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
    find_comparison,
    series_of,
)
from headstart.study.arms import arm_label
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
    results, comparison = analysis.results, analysis.comparison
    cuts = results.about["cuts"]
    reduced = [f"Reduced to fit into the time limit: {'; '.join(cuts)}."] if cuts else []
    if comparison is None or not analysis.steps:
        return Verdict(_without_comparison(analysis), reduced)
    objective = analysis.objective
    steps = analysis.steps[objective]
    found = _effect(analysis, steps[-1], _subject(analysis, objective))
    if len(steps) > 1 and steps[0].interval.bounded:
        found.append(_first_step(analysis, steps))
    for arm in comparison.missing if steps[-1].significant else ():
        found.append(
            f"The study has no arm “{arm.label}”, so this includes whatever {arm.effect} adds."
        )
    headline = analysis.contenders[0]
    for reference in comparison.references:
        found += _reference(analysis, headline, series_of(reference, objective))
    if steps[-1].significant and objective in analysis.savings:
        nearest = comparison.chain[-2]
        name = series_name(headline, results)
        found += _savings(
            results, analysis.savings[objective], name, nearest.phrase or nearest.label
        )
    claims = tuple(step.effect for step in steps if step.significant)
    return Verdict(found[:MOST_SENTENCES], found[MOST_SENTENCES:] + reduced, claims)


def _subject(analysis: Analysis, objective: str) -> str:
    about, effect = analysis.results.about, analysis.steps[objective][-1].effect
    name = f"{objective} {effect}" if len(analysis.steps) > 1 else effect
    own = effect == "pretraining" and not about["corpus"].startswith("the base ")
    return f"{name} on your text" if own else name


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
        return _unclaimed(step, gaps, subject, metric, average)
    clear = [gap for gap in gaps if gap.significant]
    if not clear:
        each = " and ".join(
            f"{within(gap.interval)} with {labels_name(gap.labels, results)}" for gap in gaps
        )
        return [
            _capital(f"{subject} {_changes(overall, metric)}{average} {_ci(overall)}."),
            f"At a single budget the difference is not significant ({each}).",
        ]
    found: list[str] = []
    for gap in sorted(gaps, key=lambda gap: not gap.significant):
        labels = f"with {labels_name(gap.labels, results)}"
        if gap.significant and not found:
            found.append(
                f"{subject} {_changes(gap.interval, metric)} {labels} {_ci(gap.interval)}."
            )
        elif gap.significant:
            size = points(gap.interval.value)
            found.append(f"{labels} the {_kind(gap)} is {size} {_ci(gap.interval)}.")
        else:
            found.append(f"{labels} {_not_significant(gap)}.")
    return [_capital(sentence) for sentence in found]


def _unclaimed(
    difference: Difference, gaps: Sequence[Difference], subject: str, metric: str, average: str
) -> list[str]:
    """Say that there is no difference, or that this study cannot show one."""
    overall = difference.interval
    reach = f"(95 % CI {within(overall)})"
    change = f"it changes {metric} by {signed(overall.value)} points{average} {reach}"
    level = is_equivalent(overall)
    found = [f"This study does not show whether {subject} helps: {change}."]
    if level:
        found = [f"{_capital(subject)} makes no difference here: {change}."]
    directions = {gap.interval.value > 0 for gap in gaps if gap.interval.excludes(0)}
    if len(directions) > 1:
        each = [f"{within(gap.interval)} with {labels_name(gap.labels)}" for gap in gaps]
        found.append(f"Label budgets point in opposite directions: {' and '.join(each)}.")
    elif not level and math.isfinite(difference.detectable):
        found.append(
            f"With these seeds and test rows it would find differences of about "
            f"{points(difference.detectable)} or more (power 80 %)."
        )
    return found


def _named(analysis: Analysis, first: Series, second: Series) -> list[Difference]:
    budgets = named_budgets(analysis.results.about["budgets"])
    found = [analysis.difference(first, second, labels) for labels in budgets]
    return [gap for gap in found if gap is not None and gap.interval.bounded]


def _changes(difference: Interval, what: str) -> str:
    verb = "raises" if difference.value >= 0 else "lowers"
    return f"{verb} {what} by {points(difference.value)}"


def _ci(difference: Interval) -> str:
    """Write the interval of a change by its size: both ends without sign where signs agree."""
    if difference.high < 0:
        return f"(95 % CI {signed(-difference.high)} to {signed(-difference.low)})"
    return f"(95 % CI {within(difference)})"


def _kind(gap: Difference) -> str:
    return "gain" if gap.interval.value >= 0 else "loss"


def _not_significant(gap: Difference) -> str:
    more = " after correction for several budgets" if gap.interval.excludes(0) else ""
    size = points(gap.interval.value)
    return f"the {_kind(gap)} of {size} is not significant{more} ({within(gap.interval)})"


def _first_step(analysis: Analysis, steps: Sequence[Difference]) -> str:
    """Say what the ingredients before the headline arm's own add over the control."""
    first, total = steps[0], sum(step.interval.value for step in steps)
    value = first.interval
    assert analysis.comparison is not None
    control = analysis.comparison.chain[0].phrase or analysis.comparison.chain[0].label
    average = " on average" if len(analysis.results.about["budgets"]) > 1 else ""
    change = f"{signed(value.value)} points{average}, {within(value)}"
    if not first.significant:
        return _capital(
            f"{first.effect} alone is not significantly better than {control} ({change})."
        )
    if value.value < 0:
        return _capital(f"{first.effect} alone is worse than {control} ({change}).")
    if value.value > total / 2:
        return f"Most of the gain over {control} comes from {first.effect} ({change})."
    return _capital(f"{first.effect} alone improves on {control}, too ({change}).")


def _change(interval: Interval) -> str:
    """Write a signed difference with its interval."""
    return f"{signed(interval.value)} points, {within(interval)}"


def _reference(analysis: Analysis, headline: Series, reference: Series) -> list[str]:
    """Compare the headline arm with a reference, at the named budgets."""
    results = analysis.results
    found = []
    for gap in _named(analysis, headline, reference):
        labels = f"with {labels_name(gap.labels, results)}"
        if gap.significant:
            judged = "better" if gap.interval.value > 0 else "worse"
            found.append(f"{points(gap.interval.value)} {judged} {labels} {_ci(gap.interval)}")
        elif is_equivalent(gap.interval):
            found.append(f"as good {labels} ({_change(gap.interval)})")
        else:
            found.append(f"not significantly different {labels} ({_change(gap.interval)})")
    names = [series_name(one, results) for one in (reference, headline)]
    return [f"Compared with {names[0]}, {names[1]} is {' and '.join(found)}."] if found else []


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
    if not scores:
        return ["The study has no finished run."]
    best = max(scores, key=lambda score: score.interval.value)
    labels, name = labels_name(best.labels, results), series_name(best.series, results)
    metric = f"test {metric_name(results.about['metric'])}"
    highest = "has the highest" if len(scores) > 1 else "has a"
    found = [f"With {labels} {name} {highest} {metric}: {percent(best.interval)}."]
    compared = find_comparison()
    if compared is not None:
        arms = f"{compared.chain[0].label} and {compared.chain[-1].label}"
        found.append(
            f"The study does not have both {arms}, so it says nothing about "
            f"{compared.chain[-1].effect}."
        )
    return found


# Which arm to take.


@dataclass(frozen=True)
class Recommendation:
    """The arm to take, sentences with its expected score and cost, and the command to use it."""

    series: Series
    sentences: list[str]
    command: str


def recommend(analysis: Analysis, folder: Path) -> Recommendation | None:
    """Recommend the arm that model selection chose; None without a finished run.

    Parameters
    ----------
    analysis : Analysis
        Its alternatives carry the verdict's corrected decisions.
    folder : Path
        The study's folder, for the command.
    """
    results, taken = analysis.results, analysis.taken
    if taken is None:
        return None
    labels = max(score.labels for score in analysis.scores)
    score, cost = analysis.score(taken, labels), analysis.costs[taken, labels]
    assert score is not None
    name = series_name(taken, results)
    metric = metric_name(results.about["metric"])
    expected = f"{100 * score.interval.value:.1f} % {metric} on new texts"
    if score.interval.bounded:
        expected += f" (95 % CI {within(score.interval)})"
    found = [f"Take {name}: expect {expected}{_cost_words(cost)}."]
    if results.about["shared_test"]:
        found.append(
            "The same rows chose it among the arms, so expect a little less on new texts; a "
            "separate test file (--test FILE) would tell."
        )
    found += _alternatives(analysis, cost, labels)
    command = f"headstart predict {folder / 'best'} --input texts.csv"
    if results.about["best"] and folder.is_dir() and not (folder / "best").is_dir():
        command = f"# {name} cannot be saved: there is no {folder / 'best'}"
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
        name, cheaper = series_name(gap.second, results), " and ".join(ratios)
        taken = series_name(gap.first, results)
        if gap.significant:
            found.append(
                f"On the test rows {name} is {points(gap.interval.value)} better than {taken} "
                f"{_ci(gap.interval)}, and {cheaper}."
            )
        elif is_equivalent(gap.interval):
            found.append(
                f"{_capital(name)} is as good ({taken} − {name}: {_change(gap.interval)}) and "
                f"{cheaper}."
            )
        else:
            found.append(
                f"{_capital(name)} is {cheaper}, and {taken} is not significantly better "
                f"({_change(gap.interval)})."
            )
    return found[:MOST_ALTERNATIVES]


def _cost_words(cost: Cost) -> str:
    found = []
    if cost.minutes is not None:
        found.append(f"{minutes_words(cost.minutes)} to train")
    if cost.bytes is not None:
        found.append(f"{size_words(cost.bytes)} on disk")
    if cost.milliseconds is not None:
        found.append(f"{cost.milliseconds:.2g} ms per text")
    return f"; it costs {', '.join(found)}" if found else ""
