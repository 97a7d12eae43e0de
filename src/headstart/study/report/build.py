"""Write the report of a study: one HTML page that needs no other file, figures/ and tables/."""

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import pyarrow as pa
from markupsafe import Markup, escape
from pyarrow import csv
from sklearn.metrics import confusion_matrix

from headstart.arms import arm_label, find_arm
from headstart.evaluation import metric_name
from headstart.evaluation.metrics import Interval, classification_metrics
from headstart.files import replacing, write_text
from headstart.study.analysis import Analysis, Series
from headstart.study.report import charts
from headstart.study.results import Results, read_results
from headstart.study.statistics import FARTHEST
from headstart.study.verdict import (
    Recommendation,
    Verdict,
    labels_name,
    milliseconds_words,
    minutes_words,
    recommend,
    rounded,
    series_name,
    size_words,
    verdict,
    within,
)

MANY_CLASSES = 5  # more of them have a denser confusion table


@dataclass(frozen=True)
class Report:
    """The path of the page, and its sentences."""

    path: Path
    recommendation: Recommendation
    verdict: Verdict


class Figure(NamedTuple):
    """A chart in two sizes, so that its letters are readable on a phone."""

    name: str
    caption: str
    wide: str
    phone: str


def build_report(folder: Path) -> Report:
    """Write `report.html`, `figures/` and `tables/` into the folder of a study."""
    analysis = Analysis(read_results(folder))
    report = Report(folder / "report.html", recommend(analysis, folder), verdict(analysis))
    pretraining = [_pretraining(part) for part in analysis.results.about["pretraining"]]
    figures = {
        "differences": _differences_figures(analysis),
        "epochs": _epoch_figures(analysis),
        "labels": [_labels_figure(analysis)],
        "pretraining": [part["loss"] for part in pretraining if part["loss"]],
    }
    write_text(report.path, _page(analysis, report, figures, pretraining))
    for figure in chain.from_iterable(figures.values()):
        write_text(folder / "figures" / f"{figure.name}.svg", charts.standalone(figure.wide))
    write_tables(folder / "tables", analysis)
    return report


def _page(
    analysis: Analysis,
    report: Report,
    figures: Mapping[str, Sequence[Figure]],
    pretraining: Sequence[dict[str, Any]],
) -> str:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["intervals"] = _mark_intervals
    script = _part("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    results = analysis.results
    return environment.from_string(_part("template.html")).render(
        about=results.about,
        metric=metric_name(results.about["metric"]),
        style=Markup(_part("style.css") + arm_style()),
        script=Markup(script),
        # The browser itself blocks every request and every script but ours.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        advice=report.recommendation,
        verdict=report.verdict,
        figures=figures,
        is_lab=any(n["preset"] == "lab" for n in results.about["parameters"].values()),
        has_classes=results.has_classes,
        test_rows=len(results.rows),
        most=labels_name(analysis.most),
        glossary=[
            (*_key(series, results), find_arm(series[0]).description) for series in analysis.every
        ],
        scores=_score_rows(analysis),
        costs=_cost_rows(analysis),
        goal=f"{100 * analysis.goal:.0f} %",
        pretraining=pretraining,
        confusions=_confusions(analysis),
        many=len(results.about["label_names"]) > MANY_CLASSES,
    )


def arm_style() -> str:
    """Write the colours of all arms as CSS, for light, dark and print."""
    light, dark = (
        "".join(
            f"--{name}:{getattr(colours, mode)};--{name}-text:{getattr(colours, f'{mode}_text')};"
            for name, colours in charts.COLOURS.items()
        )
        for mode in ("light", "dark")
    )
    return (
        f":root{{{light}}}\n"
        f'@media (prefers-color-scheme: dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f':root[data-theme="dark"]{{{dark}}}\n'
        f"@media print{{:root,:root[data-theme]{{{light}}}}}\n"
    )


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _mark_intervals(sentence: str) -> Markup:
    """Set intervals, which are short and in brackets, lighter and keep them on one line."""
    text = str(escape(sentence)).replace(" %", "\u00a0%")
    return Markup(re.sub(r"\(([^()]{1,40})\)", r'<span class="reach">(\1)</span>', text))


def _key(series: Series, results: Results) -> tuple[str, str]:
    """Return the colour and the name of a series."""
    return charts.colour(series[0]), series_name(series, results)


def _figure(
    name: str, caption: str, draw: Callable[[charts.Size], str], wide: charts.Size = charts.WIDE
) -> Figure:
    """Draw a figure in both sizes; its name becomes that of a file."""
    return Figure(re.sub(r"[^a-z0-9+-]", "-", name), caption, draw(wide), draw(charts.PHONE))


def _differences_figures(analysis: Analysis) -> list[Figure]:
    """Draw what each step adds and the distance to the references, by budget."""
    if not analysis.steps:
        return []
    headline, metric = analysis.contenders[0], metric_name(analysis.results.about["metric"])
    steps = [(one.effect, one.first, one.second) for one in analysis.steps[analysis.objective]]
    steps += [
        (f"{arm_label(headline[0])} − {arm_label(reference[0])}", headline, reference)
        for reference in analysis.references
    ]
    found = [
        (words, analysis.difference(first, second, labels))
        for labels, (words, first, second) in product(analysis.budgets, steps)
    ]
    gaps = [(words, gap) for words, gap in found if gap and gap.interval.bounded]
    if not gaps:
        return []
    return [
        _figure(
            "differences",
            f"Differences in test {metric}: what each step adds",
            lambda size: charts.difference_chart(gaps, size[0], metric),
        )
    ]


def _epoch_figures(analysis: Analysis) -> list[Figure]:
    """Draw the curves of every budget and objective on one scale, the largest budget first."""
    curves, metric = analysis.curves, metric_name(analysis.results.about["metric"])
    if not curves:
        return []
    limits = charts.limits_of(
        [value for curve in curves for line in curve.seeds.values() for value in line],
        [mean for curve in curves for mean in curve.mean],
    )
    objectives = sorted({curve.series[1] for curve in curves if curve.series[1]}) or [""]
    budgets = sorted({curve.labels for curve in curves}, reverse=True)
    found: list[Figure] = []
    for labels, objective in product(budgets, objectives):
        shown = [c for c in curves if c.labels == labels and c.series[1] in ("", objective)]
        name, caption = f"epochs-{labels}", f"Validation {metric}, {labels_name(labels)}"
        if len(objectives) > 1:
            name, caption = f"{name}-{objective}", f"{caption}, {objective}"
        draw = partial(charts.epoch_chart, shown, limits=limits, metric=metric)
        found.append(_figure(name, caption, draw, charts.HALF if found else charts.WIDE))
    return found


def _labels_figure(analysis: Analysis) -> Figure:
    """Draw the test score by number of labels; arms of a second objective are dashed."""
    results, budgets, lines = analysis.results, analysis.budgets, []
    objectives = [part["objective"] for part in results.about["pretraining"]]
    for series in analysis.every:
        means = np.array([analysis.tables[series, labels].mean(1) for labels in budgets])
        lines.append(
            charts.Line(
                series_name(series, results),
                charts.colour(series[0]),
                [(labels, analysis.scores[series, labels]) for labels in budgets],
                [list(zip(budgets, seed, strict=True)) for seed in means.T.tolist()],
                dots=True,
                dash="" if series[1] in ("", *objectives[:1]) else "6 4",
            )
        )
    values = [value for line in lines for seed in line.seeds for _, value in seed]
    title = f"Test {metric_name(results.about['metric'])} by number of labels"
    axis = charts.Axis("labels", budgets, "{:,.0f}".format, log=True)
    limits = charts.limits_of(values, [*analysis.scores.values()])
    return _figure("labels", title, partial(charts.line_chart, title, lines, axis, limits))


def _score_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Make the table of scores, with an interval where there is one."""
    rows = []
    for series in analysis.every:
        scores = [analysis.scores[series, labels] for labels in analysis.budgets]
        cells = [(f"{100 * one.value:.1f}", within(one) if one.bounded else "") for one in scores]
        rows.append({"key": _key(series, analysis.results), "cells": cells})
    return rows


def _cost_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Make the table of costs with the most labels."""
    rows = []
    for series in analysis.every:
        cost = analysis.costs[series, analysis.most]
        size = size_words(cost.bytes) if cost.bytes else "–"
        cells = [minutes_words(cost.minutes), size, milliseconds_words(cost.milliseconds)]
        needed = labels_cell(analysis.needed[series], analysis.most)
        rows.append({"key": _key(series, analysis.results), "cells": cells, "needed": needed})
    return rows


def labels_cell(needed: Interval | str, most: int) -> tuple[str, str]:
    """Write the labels that an arm needs, and their interval or the reason why there is none."""
    if isinstance(needed, str):
        return "", needed
    end = FARTHEST * most
    high = f"more than {rounded(end)}" if needed.high > end else rounded(needed.high)
    return rounded(needed.value), f"{rounded(needed.low)} to {high}"


def _pretraining(part: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the pretraining of an objective: its last numbers and its loss."""
    name, points = part["objective"], part["points"]
    measured = [point for point in points if point["perplexity"] is not None]
    words = loss = None
    if measured:
        last = measured[-1]
        bits = f", {last['bits_per_byte']:.2f} bits per byte" if last["bits_per_byte"] else ""
        words = (
            f"Perplexity {last['perplexity']:,.1f} on held-out text{bits}, after "
            f"{last['seconds'] / 60:.1f} minutes."
        )
        loss = _figure(
            f"pretraining-{name}",
            "Loss by tokens, in nats per token",
            partial(charts.loss_chart, name, points),
            (780, 300),
        )
    return {"objective": name, "words": words, "loss": loss}


def _confusions(analysis: Analysis) -> list[dict[str, Any]]:
    """Compute row-normalized confusions of the recommended arm and one other, over all seeds."""
    results, found = analysis.results, []
    names = results.about["label_names"]
    every = dict.fromkeys([analysis.selected, *analysis.contenders]) if results.has_classes else {}
    for series in list(every)[:2]:
        by_seed = results.probabilities(*series, analysis.most)
        p, gold = np.concatenate(by_seed), np.tile(results.gold, len(by_seed))
        shares = confusion_matrix(gold, p.argmax(1), labels=np.arange(len(names)), normalize="true")
        rows = [*zip(names, shares.tolist(), strict=True)]
        found.append(
            {"key": _key(series, results), "rows": rows, **classification_metrics(p, gold)}
        )
    return found


def write_tables(folder: Path, analysis: Analysis) -> None:
    """Write `scores.csv` and `differences.csv`: the means and intervals of the report."""
    scores = [
        {"arm": arm, "objective": objective, "labels": labels, **_numbers(score)}
        for ((arm, objective), labels), score in analysis.scores.items()
    ]
    differences = [
        {
            "arm": one.first[0],
            "objective": one.first[1],
            "minus_arm": one.second[0],
            "minus_objective": one.second[1],
            "labels": one.labels or None,  # of a mean over all budgets
            **_numbers(one.interval),
            "significant": one.significant,
        }
        for one in analysis.differences.values()
    ]
    for name, rows in (("scores", scores), ("differences", differences)):
        with replacing(folder / f"{name}.csv") as temporary:
            csv.write_csv(pa.Table.from_pylist(rows), temporary)


def _numbers(interval: Interval) -> dict[str, float | None]:
    ends = {"value": interval.value, "low": interval.low, "high": interval.high}
    return {name: value if math.isfinite(value) else None for name, value in ends.items()}
