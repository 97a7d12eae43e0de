"""What was found: the verdict, the curves by epoch, the accuracy by number of labels."""

from html import escape

from headstart.studies.analysis import Curve, Gap, Score
from headstart.studies.comparison import Series, series_of
from headstart.studies.costs import choice_words, find_cost, minutes_words, size_words
from headstart.studies.label_goals import arm_labels, reach_words, rounded, usual_goal
from headstart.studies.report.charts import (
    epoch_chart,
    gap_chart,
    label_chart,
    limits_of,
)
from headstart.studies.report.report_data import (
    WIDE,
    ReportData,
    emphasised,
    paragraph,
    section,
    table,
)
from headstart.studies.report.svg import Frame
from headstart.studies.verdict import speaking_objective
from headstart.studies.words import labelled, series_name, signed


def verdict_section(data: ReportData) -> str:
    """The sentences first, large; which arm to take; the differences that they rest on."""
    first, *others = data.verdict.sentences
    parts = [
        f"<h1>{emphasised(first)}</h1>",
        *(f'<p class="more">{emphasised(s)}</p>' for s in others),
        *(_curves(data)[:1] if data.is_lab else ()),
    ]
    if data.advice:
        words = " ".join(emphasised(s) for s in data.advice.sentences)
        parts.append(f"<h3>Which one do I take?</h3><p>{words}</p>")
        parts.append(f"<pre>{escape(data.advice.command)}</pre>")
    groups = _gap_groups(data)
    if groups:
        height = 54 + 26 * sum(map(len, groups)) + 13 * (len(groups) - 1)
        longest = 9 * max(len(words) + 6 for group in groups for words, _ in group)
        parts.append(
            data.figure(
                "differences",
                "What each step gave, and the distance to the reference",
                lambda frame: gap_chart(groups, frame),
                Frame(780, height, left=104, right=longest),
                Frame(350, height, left=82, right=min(longest, 140)),
            )
        )
        parts.append(
            paragraph(
                "Lines are 95 % intervals over seeds and test rows together; one that crosses zero "
                "may be noise.",
                "note",
            )
        )
        parts.append(
            "<details><summary>How the intervals are made</summary>"
            + paragraph(
                "The interval is the wider of two: a bootstrap over seeds and test rows together, "
                "and Student’s t over seeds, because a few seeds show little of their spread. A "
                "step is claimed only where it and all steps together stand clear of zero, as "
                "means over all label budgets."
            )
            + "</details>"
        )
    return f'<section id="verdict">{"".join(parts)}</section>'


def _gap_groups(data: ReportData) -> list[list[tuple[str, Gap]]]:
    """The steps and the references of each budget, with what they are called."""
    analysis, comparison = data.analysis, data.analysis.comparison
    if comparison is None or not analysis.steps:
        return []
    objective = speaking_objective(analysis)
    wanted = [(step.effect, step.first, step.second) for step in analysis.steps[objective]]
    headline = data.contenders[0]
    wanted += [
        (f"over {arm.label}", headline, series_of(arm, objective)) for arm in comparison.references
    ]
    groups = []
    for labels in data.study.budgets:
        found = [(words, analysis.gap(one, other, labels)) for words, one, other in wanted]
        groups.append([(words, gap) for words, gap in found if gap and gap.difference.bounded])
    return [group for group in groups if group]


def epochs_section(data: ReportData) -> str:
    """Validation accuracy by epoch: all labels large, the other budgets beside each other."""
    if not data.analysis.curves:
        return section(
            "epochs", "How each arm learns", paragraph("No arm of this study trains in epochs.")
        )
    largest, *others = _curves(data)
    parts = [] if data.is_lab else [largest]  # the lab's stands at the top of the page
    if others and not data.several:
        others = [f'<div class="pair">{"".join(reversed(others))}</div>']
    parts += others
    words = (
        "Validation accuracy by epoch: mean over seeds; the band is the 95 % interval of that mean."
    )
    if len(data.study.seeds) == 1:
        words = "Validation accuracy by epoch, of one seed: the spread between seeds is unknown."
    if data.study.selection == "none":
        words += " They chose no epoch: the last one is what the tables report."
    if data.study.selection == "budget":
        words += " The validation part draws these curves and chose "
        words += "nothing." if data.study.has_classes else "which arm is kept, and nothing else."
    return section("epochs", "How each arm learns", paragraph(words, "note"), *parts)


def _curves(data: ReportData) -> list[str]:
    """The pictures of every budget on one scale, the largest budget first."""
    curves = data.analysis.curves
    if not curves:
        return []
    values = [v for c in curves for line in c.seeds.values() for v in line]
    limits = limits_of(values, [m for c in curves for m in c.mean])
    budgets = sorted({curve.labels for curve in curves}, reverse=True)
    return [
        _epoch_figures(data, labels, first=labels == budgets[0], limits=limits)
        for labels in budgets
    ]


def _epoch_figures(
    data: ReportData, labels: int, *, first: bool, limits: tuple[float, float]
) -> str:
    """One picture of a budget, or one for each objective beside each other, on one scale."""
    curves = [curve for curve in data.analysis.curves if curve.labels == labels]
    half = Frame(376, 290, left=50)
    if not data.several:
        wide = WIDE if first else half
        of = f"{labels:,} labels"
        if first and data.is_lab:
            of = f"Validation accuracy by epoch, mean over seeds and its 95 % interval: {of}"
        return _epoch_figure(data, f"epochs-{labels}", of, curves, wide, limits)
    pictures = [
        _epoch_figure(
            data,
            f"epochs-{labels}-{objective}",
            f"{labels:,} labels, {objective}",
            [curve for curve in curves if curve.series[1] == objective],
            half,
            limits,
        )
        for objective in sorted({curve.series[1] for curve in curves})
    ]
    return f'<div class="pair">{"".join(pictures)}</div>'


def _epoch_figure(
    data: ReportData,
    name: str,
    of: str,
    curves: list[Curve],
    wide: Frame,
    limits: tuple[float, float],
) -> str:
    return data.figure(
        name,
        of,
        lambda frame: epoch_chart(curves, frame, limits, data.contenders),
        wide,
    )


def labels_section(data: ReportData) -> str:
    """Test accuracy by number of labels, as a picture and as a table; what each arm costs."""
    study, analysis = data.study, data.analysis
    best = {
        labels: max((s.accuracy.value for s in analysis.scores if s.labels == labels), default=0)
        for labels in study.budgets
    }

    def cell(score: Score | None) -> str:
        if score is None:
            return "–"
        low, high = score.accuracy.low, score.accuracy.high
        if not score.accuracy.bounded or (low, high) == (0, 1):  # it says nothing of the mean
            single = ", ".join(f"{100 * value:.1f}" for value in score.seeds.values())
            return f"<small>single seeds: {single}</small>"
        mean = f"{100 * score.accuracy.value:.1f}"
        if score.accuracy.value == best[score.labels]:
            mean = f'<b class="best">{mean}</b>'
        return f"{mean}<small>{signed(low)} to {signed(high)}</small>"

    series = dict.fromkeys(score.series for score in analysis.scores)
    rows = [
        (data.key(one), *(cell(analysis.score(one, labels)) for labels in study.budgets))
        for one in series
    ]
    return section(
        "labels",
        "What labels buy",
        paragraph(
            f"Accuracy on {study.splits.get('test', 0):,} test rows, with 95 % intervals over "
            "seeds and test rows; over test rows alone where seeds do not vary.",
            "note",
        ),
        data.figure(
            "labels",
            "Test accuracy by number of labels",
            lambda frame: label_chart(analysis, study, frame),
        ),
        table(("accuracy, %", *(f"{labels:,} labels" for labels in study.budgets)), rows),
        _cost_table(data, list(series)),
        _mcnemar(data),
    )


def _cost_table(data: ReportData, every: list[Series]) -> str:
    """What each arm chose and costs with the most labels, and the labels that it needs."""
    labels = data.study.budgets[-1]
    taken = data.analysis.score(data.advice.series, labels) if data.advice else None
    if taken is None:
        return ""
    goal = usual_goal(taken)
    needed = {one.series: one for one in arm_labels(data.study, data.predictions, [goal])}

    def labels_cell(series: Series) -> str:
        answer = needed.get(series)
        if answer is None:
            return "–"
        found = answer.needed.labels
        if found is None:
            return f"<small>{escape(answer.needed.reason)}</small>"
        return f"{rounded(found.value)}<small>{reach_words(found, labels)}</small>"

    rows = []
    for series in every:
        cost = find_cost(data.study, data.facts, series, labels)
        chosen = escape(choice_words(data.facts, series, labels))
        rows.append(
            (
                data.key(series) + (f"<small>{chosen}</small>" if chosen else ""),
                "–" if cost.minutes is None else minutes_words(cost.minutes),
                "–" if cost.bytes is None else size_words(cost.bytes),
                "–" if cost.milliseconds is None else f"{cost.milliseconds:.2g}",
                labels_cell(series),
            )
        )
    head = (
        f"with {labels:,} labels",
        *("to train", "size", "ms per text"),
        f"labels for {100 * goal:.0f} %",
    )
    note = (
        "Small print: what each arm chose. Labels are those of a power law; for any accuracy: "
        "headstart labels."
    )
    known = [k for k in range(len(head)) if any(row[k] != "–" for row in rows)]
    shown = [[row[k] for k in known] for row in [head, *rows]]
    spare = [place for place, k in enumerate(known) if k == 3]  # milliseconds, on a phone
    return table(shown[0], shown[1:], spare=spare) + paragraph(note, "note")


def _mcnemar(data: ReportData) -> str:
    tests, comparison = data.analysis.mcnemar, data.analysis.comparison
    if not tests or comparison is None:
        return ""
    one, other = comparison.headline.label, comparison.nearest.label
    rows = [
        (
            escape(series_name(test.first, data.study)),
            str(test.seed),
            f"{test.only_first:,}",
            f"{test.only_second:,}",
            "< 0.0001" if test.p < 1e-4 else f"{test.p:.4f}",
        )
        for test in tests
    ]
    return (
        f"<details><summary>McNemar’s exact test, {escape(one)} against {escape(other)}, "
        f"{labelled(data.study.budgets[-1])}, one line per seed</summary>"
        + table(("", "seed", f"only {escape(one)} right", f"only {escape(other)} right", "p"), rows)
        + "</details>"
    )
