"""Write the report of a study: one HTML page that needs no other file, figures/ and tables/."""

import base64
import csv
import hashlib
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import chain, product
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape
from sklearn.metrics import confusion_matrix

from headstart.arms import arm_label, find_arm
from headstart.evaluation import metric_name
from headstart.evaluation.calibration import reliability_bins
from headstart.evaluation.metrics import Interval, classification_metrics
from headstart.files import escape_formula, write_text
from headstart.lab import PRESET
from headstart.study.analysis import ALL_BUDGETS, Analysis, Series
from headstart.study.report.charts import (
    COLOURS,
    HALF,
    PHONE,
    WIDE,
    Axis,
    Frame,
    Line,
    Picture,
    colour,
    difference_chart,
    epoch_chart,
    limits_of,
    line_chart,
    loss_chart,
    ticks,
    whole_percent,
)
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

LONGEST = 400  # characters of an example that are shown
MANY_CLASSES = 5  # more of them have a denser confusion table


@dataclass(frozen=True)
class Report:
    """The files that were written, and the sentences of the page."""

    path: Path
    figures: list[Path]
    tables: list[Path]
    recommendation: Recommendation
    verdict: Verdict


@dataclass(frozen=True)
class Figure:
    """A chart in two sizes, so that its letters are readable on a phone."""

    name: str
    caption: str
    wide: Picture
    phone: Picture

    @property
    def html(self) -> Markup:
        wide, phone = Markup(self.wide.svg()), Markup(self.phone.svg())
        return Markup(
            '<figure id="{}"><figcaption>{}</figcaption><div class="wide">{}</div>'
            '<div class="phone">{}</div></figure>'
        ).format(self.name, self.caption, wide, phone)


def build_report(folder: Path) -> Report:
    """Write `report.html`, `figures/` and `tables/` into the folder of a study."""
    analysis = Analysis(read_results(folder))
    advice, found = recommend(analysis, folder), verdict(analysis)
    pretraining = [_pretraining(part) for part in analysis.results.about["pretraining"]]
    figures = {
        "differences": _differences_figures(analysis),
        "epochs": _epoch_figures(analysis),
        "labels": [_labels_figure(analysis)],
        "calibration": _calibration_figures(analysis),
        "pretraining": [part["loss"] for part in pretraining if part["loss"]],
    }
    page = _page(analysis, advice, found, figures, pretraining)
    write_text(folder / "report.html", page)
    pictures = []
    for figure in chain.from_iterable(figures.values()):
        pictures.append(folder / "figures" / f"{figure.name}.svg")
        write_text(pictures[-1], figure.wide.svg(standalone=True))
    tables = write_tables(folder / "tables", analysis)
    return Report(folder / "report.html", pictures, tables, advice, found)


def _page(
    analysis: Analysis,
    advice: Recommendation,
    found: Verdict,
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
        advice=advice,
        verdict=found,
        figures=figures,
        is_lab=any(n["preset"] == PRESET for n in results.about["parameters"].values()),
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
        examples=_examples(analysis),
        facts=_facts(results),
    )


def arm_style() -> str:
    """Write the colours of all arms as CSS, for light, dark and print."""
    light, dark = (
        "".join(
            f"--{name}:{getattr(colours, mode)};--{name}-text:{getattr(colours, f'{mode}_text')};"
            for name, colours in COLOURS.items()
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
    marked = re.sub(r"\(([^()]{1,40})\)", r'<span class="reach">(\1)</span>', text)
    return Markup(marked)


def _key(series: Series, results: Results) -> tuple[str, str]:
    """Return the colour and the name of a series."""
    return colour(series[0]), series_name(series, results)


# Figures.


def _figure(
    name: str,
    caption: str,
    draw: Callable[[Frame], Picture],
    wide: Frame = WIDE,
    phone: Frame = PHONE,
) -> Figure:
    """Draw a figure in both sizes; its name becomes that of a file."""
    return Figure(re.sub(r"[^a-z0-9+-]", "-", name), caption, draw(wide), draw(phone))


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
    groups = []
    for labels in analysis.budgets:
        found = [(words, analysis.difference(a, b, labels)) for words, a, b in steps]
        groups.append([(w, d) for w, d in found if d and d.interval.bounded])
    groups = [group for group in groups if group]
    if not groups:
        return []
    lines = sum(map(len, groups)) + 0.5 * (len(groups) - 1)
    longest = max(len(words) + 6 for words, _, _ in steps)
    return [
        _figure(
            "differences",
            f"Differences in test {metric}: what each step adds",
            lambda frame: difference_chart(groups, frame, metric),
            Frame(780, round(54 + 26 * lines), left=104, right=round(8.2 * longest)),
            Frame(350, round(54 + 36 * lines), left=6, right=6),
        )
    ]


def _epoch_figures(analysis: Analysis) -> list[Figure]:
    """Draw the curves of every budget and objective on one scale, the largest budget first."""
    curves, metric = analysis.curves, metric_name(analysis.results.about["metric"])
    if not curves:
        return []
    limits = limits_of(
        [v for c in curves for line in c.seeds.values() for v in line],
        [m for c in curves for m in c.mean],
    )
    objectives = sorted({curve.series[1] for curve in curves if curve.series[1]}) or [""]
    budgets = sorted({curve.labels for curve in curves}, reverse=True)
    found: list[Figure] = []
    for labels, objective in product(budgets, objectives):
        shown = [c for c in curves if c.labels == labels and c.series[1] in ("", objective)]
        name, caption = f"epochs-{labels}", f"Validation {metric}, {labels_name(labels)}"
        if len(objectives) > 1:
            name, caption = f"{name}-{objective}", f"{caption}, {objective}"
        draw = partial(epoch_chart, shown, limits=limits, metric=metric)
        found.append(_figure(name, caption, draw, HALF if found else WIDE))
    return found


def _labels_figure(analysis: Analysis) -> Figure:
    """Draw the test score by number of labels."""
    budgets, metric = analysis.budgets, metric_name(analysis.results.about["metric"])
    seeds = {key: table.mean(1).tolist() for key, table in analysis.tables.items()}
    lines = [
        Line(
            series_name(series, analysis.results),
            colour(series[0]),
            [(labels, analysis.scores[series, labels]) for labels in budgets],
            [[(labels, value) for value in seeds[series, labels]] for labels in budgets],
            dash=_dash(series, analysis.results),
        )
        for series in analysis.every
    ]
    limits = limits_of([*chain(*seeds.values())], [*analysis.scores.values()])
    axis = Axis(
        "labelled rows (log scale)",
        budgets,
        lambda v: f"{v:,.0f}",
        lambda v: labels_name(int(v)),
        log=True,
    )
    title = f"Test {metric} by number of labels, mean and 95 % interval"
    return _figure(
        "labels",
        f"Test {metric} by number of labels",
        lambda frame: line_chart(title, lines, axis, limits, frame),
    )


def _dash(series: Series, results: Results) -> str:
    """The first objective is solid, the others are dashed: colour belongs to the arm."""
    objectives = [part["objective"] for part in results.about["pretraining"]]
    return "" if series[1] in ("", *objectives[:1]) else "6 4"


def _calibration_figures(analysis: Analysis) -> list[Figure]:
    """Draw the share of correct predictions by predicted probability."""
    lines = []
    for series in _shown(analysis):
        bins = reliability_bins(*_probabilities(analysis, series))
        lines.append(
            Line(
                series_name(series, analysis.results),
                colour(series[0]),
                [(b.confidence, Interval(b.accuracy, b.accuracy, b.accuracy)) for b in bins],
                width=2,
                dash=_dash(series, analysis.results),
                notes={
                    b.confidence: f"{whole_percent(b.accuracy)} of {b.rows:,} correct" for b in bins
                },
            )
        )
    if not lines:
        return []
    points = [point for line in lines for point in line.points]
    start = math.floor(10 * min(place for place, _ in points)) / 10
    bottom = min(start, math.floor(10 * min(share.value for _, share in points)) / 10)
    axis = Axis(
        "predicted probability",
        ticks(start, 1),
        whole_percent,
        lambda v: f"predicted with {100 * v:.0f} %",
    )
    return [
        _figure(
            "calibration",
            f"Correct predictions by predicted probability, {labels_name(analysis.most)}",
            lambda frame: line_chart("Calibration", lines, axis, (bottom, 1), frame, diagonal=True),
            Frame(780, 340),
        )
    ]


# Tables and texts.


def _score_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Make the table of scores; bold is a significant winner of its column."""
    rows = []
    for series in analysis.every:
        cells = []
        for labels in analysis.budgets:
            score = analysis.scores[series, labels]
            value, small = f"{100 * score.value:.1f}", within(score)
            if not score.bounded:
                seeds = analysis.tables[series, labels].mean(1)
                single = ", ".join(f"{100 * one:.1f}" for one in seeds)
                value, small = "", f"single seeds: {single}"
            best = analysis.winners[labels] == series
            cells.append({"value": value, "small": small, "best": best})
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
        key = _key(series, analysis.results)
        rows.append({"key": key, "selected": cost.selected, "cells": cells, "needed": needed})
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
        after = f"after {last['seconds'] / 60:.1f} minutes"
        words = f"Perplexity {last['perplexity']:,.1f} on held-out text{bits}, {after}."
        draw = partial(loss_chart, name, points)
        loss = _figure(f"pretraining-{name}", "Loss by tokens", draw, Frame(780, 300))
    return {"objective": name, "words": words, "loss": loss}


def _shown(analysis: Analysis) -> list[Series]:
    """Return the arms that are shown row by row: the recommended one and the two compared."""
    every = dict.fromkeys([analysis.selected, *analysis.contenders[:2]])
    return list(every) if analysis.results.has_classes else []


def _probabilities(analysis: Analysis, series: Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities and gold classes of an arm at the largest budget, seeds together."""
    found = analysis.results.probabilities(*series, analysis.most)
    return found.reshape(-1, found.shape[-1]), np.tile(analysis.results.gold, len(found))


def _confusions(analysis: Analysis) -> list[dict[str, Any]]:
    """Compute, for two arms, the predicted classes of each true class in percent."""
    found = []
    names = analysis.results.about["label_names"]
    for series in _shown(analysis)[:2]:
        probabilities, gold = _probabilities(analysis, series)
        classes = np.arange(len(names))
        shares = confusion_matrix(gold, probabilities.argmax(1), labels=classes, normalize="true")
        measured = classification_metrics(probabilities, gold)
        error, macro_f1 = (
            f"{100 * measured[name]:.1f} %" for name in ("calibration_error", "macro_f1")
        )
        rows = [*zip(names, shares.tolist(), strict=True)]
        key = _key(series, analysis.results)
        found.append({"key": key, "rows": rows, "error": error, "macro_f1": macro_f1})
    return found


def _examples(analysis: Analysis, count: int = 2) -> list[dict[str, Any]]:
    """Find test rows that most seeds of one arm predict correctly and most of the other do not."""
    shown, results = _shown(analysis)[:2], analysis.results
    if len(shown) < 2:
        return []
    texts, rows = results.rows.to_pylist(), np.arange(len(results.rows))
    correct = [analysis.tables[series, analysis.most].mean(0) for series in shown]
    sure = [
        results.probabilities(*series, analysis.most).mean(0)[rows, results.gold]
        for series in shown
    ]
    found = []
    for a, b in ((0, 1), (1, 0)):
        wanted = np.flatnonzero((correct[a] > 0.5) & (correct[b] < 0.5))
        chosen: dict[str, dict[str, Any]] = {}  # each text once, the clearest first
        for i in wanted[np.argsort(-(sure[a] - sure[b])[wanted], kind="stable")]:
            shares = [f"{100 * sure[k][i]:.0f}\u00a0%" for k in (a, b)]
            text = texts[i]["text"]
            short = text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"
            chosen.setdefault(text, {**texts[i], "text": short, "shares": shares})
        names = [series_name(shown[k], results) for k in (a, b)]
        found.append({"names": names, "rows": list(chosen.values())[:count]})
    return found


def _facts(results: Results) -> list[tuple[str, list[tuple[str, str]]]]:
    """List what the numbers depend on: the study, the machine, the versions."""
    about = results.about
    study = {
        "seeds": ", ".join(map(str, about["seeds"])),
        "labels": ", ".join(f"{labels:,}" for labels in about["budgets"]),
        "arms": ", ".join(about["arms"]),
        "time": f"{about['minutes']:.1f} minutes",
    }
    groups = {"study": study, "machine": about["machine"], "version": about["versions"]}
    return [(name, [*facts.items()]) for name, facts in groups.items()]


def write_tables(folder: Path, analysis: Analysis) -> list[Path]:
    """Write the four CSV tables: scores, differences, curves and costs.

    A score without a seed is the mean over seeds; a difference without labels is the mean over all
    budgets; an unbounded or unknown number is an empty cell.
    """
    metric = analysis.results.about["metric"]
    scores: list[Sequence[object]] = []
    for (series, labels), score in analysis.scores.items():
        scores.append((*series, labels, None, metric, score.value, score.low, score.high))
        single = analysis.tables[series, labels].mean(1).tolist()
        for seed, value in zip(analysis.results.about["seeds"], single, strict=True):
            scores.append((*series, labels, seed, metric, value, None, None))
    differences = [
        (
            *(*d.first, *d.second, None if d.labels == ALL_BUDGETS else d.labels, metric),
            *(d.interval.value, d.interval.low, d.interval.high, d.significant),
        )
        for d in analysis.differences.values()
    ]
    curves = [
        (*curve.series, curve.labels, seed, epoch, metric, value)
        for curve in analysis.curves
        for seed, values in curve.seeds.items()
        for epoch, value in enumerate(values, 1)
    ]
    costs = [
        (*series, labels, cost.minutes, cost.bytes, cost.milliseconds, cost.selected)
        for (series, labels), cost in analysis.costs.items()
    ]
    run = "arm objective labels"
    pair = "arm objective minus_arm minus_objective labels metric"
    return [
        _write(folder / "scores.csv", f"{run} seed metric value low high", scores),
        _write(folder / "differences.csv", f"{pair} difference low high significant", differences),
        _write(folder / "curves.csv", f"{run} seed epoch metric validation", curves),
        _write(folder / "costs.csv", f"{run} minutes bytes milliseconds_per_text selected", costs),
    ]


def _write(path: Path, head: str, rows: Iterable[Sequence[object]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head.split())
    writer.writerows(map(_cell, row) for row in rows)
    write_text(path, text.getvalue())
    return path


def _cell(value: object) -> object:
    if isinstance(value, float) and math.isinf(value):
        return ""
    return escape_formula(value) if isinstance(value, str) else value
