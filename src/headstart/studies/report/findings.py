"""What was found: the verdict, the curves by epoch, the accuracy by number of labels."""

import math
from html import escape

from headstart.studies.analysis import Analysis, Curve, Score
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
from headstart.studies.statistics import LabelSavings
from headstart.studies.verdict import capital, labelled, series_name, signed


def verdict_section(data: ReportData) -> str:
    """The sentences first, large; then the differences that they rest on."""
    first, *others = data.verdict.sentences
    parts = [
        f"<h1>{emphasised(first)}</h1>",
        *(f'<p class="more">{emphasised(s)}</p>' for s in others),
        *(_curves(data)[:1] if data.is_lab else ()),
    ]
    series = data.contenders[0]
    among = [g for g in data.analysis.gaps if g.first == series]
    comparison = data.analysis.comparison
    effect = comparison.headline.effect if comparison else ""
    for other in comparison.others if comparison else ():
        gaps = [g for g in among if g.second[0] == other.name]
        if not gaps:
            continue
        height = 54 + 30 * len(gaps)
        parts.append(
            data.figure(
                f"difference-{other.name}",
                f"{capital(series_name(series, data.study))} against {other.phrase}",
                lambda frame, gaps=gaps: gap_chart(gaps, among, effect, frame),  # type: ignore[misc]
                Frame(780, height, left=104, right=70),
                Frame(350, height, left=92, right=62),
            )
        )
    if any(gap.difference.bounded for gap in among):
        parts.append(
            paragraph(
                "Lines are 95 % intervals over seeds and test rows together; one that crosses zero "
                "could be noise.",
                "note",
            )
        )
        parts.append(
            "<details><summary>How the intervals are made</summary>"
            + paragraph(
                "Both arms are compared on the same seeds and test rows. The interval is the wider "
                "of two: a bootstrap that draws seeds and test rows together, and Student’s t over "
                "seeds, because a few seeds show little of their spread. A difference is claimed "
                "only where the mean over all label budgets stands clear of zero; the sentences "
                "above name a single budget only where its mean with the other one named does too."
            )
            + "</details>"
        )
    return f'<section id="verdict">{"".join(parts)}</section>'


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
    parts += [*others, _learning_table(data)]
    words = (
        "Validation accuracy by epoch: mean over seeds; the band is the 95 % interval of that mean."
    )
    if len(data.study.seeds) == 1:
        words = "Validation accuracy by epoch, of one seed: the spread between seeds is unknown."
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


def _learning_table(data: ReportData) -> str:
    """First epoch at 95 % of the best and mean height of the curve, arms by budgets."""
    curves = {(curve.series, curve.labels): curve for curve in data.analysis.curves}
    budgets = sorted({labels for _, labels in curves})

    def cell(curve: Curve | None) -> str:
        if curve is None:
            return "–"
        return f"{curve.epochs_to_95:.1f}<small>area {100 * curve.area:.1f}</small>"

    rows = [
        (data.key(series), *(cell(curves.get((series, labels))) for labels in budgets))
        for series in dict.fromkeys(series for series, _ in curves)
    ]
    head = ("epochs to 95 % of its best", *(f"{labels:,} labels" for labels in budgets))
    note = "Area: the mean height of the curve, in %, so that an early rise counts."
    return table(head, rows) + paragraph(note, "note")


def labels_section(data: ReportData) -> str:
    """Test accuracy by number of labels, as a picture and as a table."""
    study, analysis = data.study, data.analysis
    best = {
        labels: max((s.accuracy.value for s in analysis.scores if s.labels == labels), default=0)
        for labels in study.budgets
    }

    def cell(score: Score | None) -> str:
        if score is None:
            return "–"
        mean = f"{100 * score.accuracy.value:.1f}"
        if score.accuracy.value == best[score.labels]:
            mean = f'<b class="best">{mean}</b>'
        low, high = max(0.0, score.accuracy.low), min(1.0, score.accuracy.high)
        reach = f"<small>{signed(low)} to {signed(high)}</small>" if score.accuracy.bounded else ""
        return mean + reach

    series = dict.fromkeys(score.series for score in analysis.scores)
    rows = [
        (data.key(one), *(cell(analysis.score(one, labels)) for labels in study.budgets))
        for one in series
    ]
    savings = [
        paragraph(f"{_prefix(data, objective)}{_savings_note(found, data.analysis)}")
        for objective, found in analysis.savings.items()
    ]
    return section(
        "labels",
        "What labels buy",
        paragraph(
            f"Accuracy on {study.splits.get('test', 0):,} test rows, at the epoch that validation "
            "chose; whiskers are 95 % intervals over seeds.",
            "note",
        ),
        data.figure(
            "labels",
            "Test accuracy by number of labels",
            lambda frame: label_chart(analysis, study, frame),
        ),
        table(("accuracy, %", *(f"{labels:,} labels" for labels in study.budgets)), rows),
        *savings,
        _mcnemar(data),
    )


def _prefix(data: ReportData, objective: str) -> str:
    return f"{objective.capitalize()}: " if len(data.analysis.savings) > 1 else ""


def _savings_note(found: LabelSavings, analysis: Analysis) -> str:
    assert analysis.comparison is not None
    control = capital(analysis.comparison.control.label)
    headline = capital(analysis.comparison.headline.label)
    goal = f"{control} reaches {100 * found.goal:.1f} % with all {labelled(found.all_labels)}. "
    if math.isinf(found.labels):
        return goal + f"{headline} does not reach that within this range."
    if found.labels == 0:
        return goal + f"{headline} is there with {labelled(found.fewest)}, the fewest tried."
    saved = 1 - found.labels / found.all_labels
    return goal + (
        f"{headline} is there with about {float(f'{found.labels:.2g}'):,.0f} "
        f"({100 * saved:.0f} % fewer), interpolated on a log scale."
    )


def _mcnemar(data: ReportData) -> str:
    tests, comparison = data.analysis.mcnemar, data.analysis.comparison
    if not tests or comparison is None:
        return ""
    one, other = comparison.headline.label, comparison.control.label
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
        f"<details><summary>McNemar’s exact test, {escape(one)} against {escape(other)}, all "
        "labels, one line per seed</summary>"
        + table(("", "seed", f"only {escape(one)} right", f"only {escape(other)} right", "p"), rows)
        + "</details>"
    )
