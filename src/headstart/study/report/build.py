"""Write the report of a study: one HTML page that needs no other file, figures/ and tables/."""

import base64
import csv
import hashlib
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape

from headstart.arms import arm_label, find_arm
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.evaluation.calibration import calibration_error, reliability_bins
from headstart.evaluation.metrics import Interval
from headstart.files import escape_formula, write_text
from headstart.lab import PRESET
from headstart.study.analysis import ALL_BUDGETS, Analysis, Cost, Series, analyse
from headstart.study.labels_needed import FARTHEST, LabelsNeeded
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
from headstart.study.verdict import (
    Recommendation,
    Verdict,
    labels_name,
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
    results = read_results(folder)
    if not results.runs:
        raise HeadstartError(
            "the study has no finished run to report on",
            where=folder,
            fix="run `headstart compare` again; it resumes where it stopped",
        )
    analysis = analyse(results)
    advice, found = recommend(analysis, folder), verdict(analysis)
    figures = _Figures(analysis)
    write_text(folder / "report.html", _page(analysis, advice, found, figures))
    written = _write_figures(folder / "figures", figures.every)
    tables = write_tables(folder / "tables", analysis)
    return Report(folder / "report.html", written, tables, advice, found)


def _page(analysis: Analysis, advice: Recommendation, found: Verdict, figures: "_Figures") -> str:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["intervals"] = _mark_intervals
    script = _part("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    results = analysis.results
    metric = metric_name(results.about["metric"])
    return environment.from_string(_part("template.html")).render(
        about=results.about,
        metric=metric,
        style=Markup(_part("style.css") + arm_style()),
        script=Markup(script),
        # The browser itself blocks every request and every script but ours.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        advice=advice,
        verdict=found,
        figures=figures,
        is_lab=any(n.get("preset") == PRESET for n in results.about["parameters"].values()),
        has_classes=results.has_classes,
        test_rows=len(results.rows),
        most=labels_name(results.about["budgets"][-1]),
        glossary=[
            (*_key(series, results), find_arm(series[0]).description) for series in analysis.every
        ],
        scores=_score_rows(analysis),
        costs=_cost_rows(analysis),
        goal=f"{100 * analysis.goal:.0f} %",
        pretraining=_pretraining(analysis, figures),
        confusions=_confusions(analysis),
        many=len(results.about["label_names"]) > MANY_CLASSES,
        examples=_examples(analysis),
        networks=_networks(results),
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


class _Figures:
    """All figures of the page; each one is drawn once, in two sizes."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis, self.results = analysis, analysis.results
        self.metric = metric_name(self.results.about["metric"])
        self.every: dict[str, Figure] = {}
        self.differences = self._differences()
        self.epochs = self._epochs()
        self.labels = self._labels()
        self.calibration = self._calibration()

    def _add(
        self, name: str, caption: str, draw: Any, wide: Frame = WIDE, phone: Frame = PHONE
    ) -> Figure:
        name = re.sub(r"[^a-z0-9+-]", "-", name)  # it becomes a file's name
        figure = self.every[name] = Figure(name, caption, draw(wide), draw(phone))
        return figure

    def _differences(self) -> Figure | None:
        """Draw what each step adds and the distance to the references, by budget."""
        analysis = self.analysis
        if not analysis.steps:
            return None
        objective, headline = analysis.objective, analysis.contenders[0]
        steps = [(step.effect, step.first, step.second) for step in analysis.steps[objective]]
        for reference in analysis.references:
            words = f"{arm_label(headline[0])} − {arm_label(reference[0])}"
            steps.append((words, headline, reference))
        groups = []
        for labels in self.results.about["budgets"]:
            found = [(words, analysis.difference(a, b, labels)) for words, a, b in steps]
            groups.append([(w, d) for w, d in found if d and d.interval.bounded])
        groups = [group for group in groups if group]
        if not groups:
            return None
        lines = sum(map(len, groups)) + 0.5 * (len(groups) - 1)
        longest = max(len(words) + 6 for group in groups for words, _ in group)
        return self._add(
            "differences",
            f"Differences in test {self.metric}: what each step adds",
            lambda frame: difference_chart(groups, frame, self.metric),
            Frame(780, round(54 + 26 * lines), left=104, right=round(8.2 * longest)),
            Frame(350, round(54 + 36 * lines), left=6, right=6),
        )

    def _epochs(self) -> list[Figure]:
        """Draw the curves of every budget and objective on one scale, the largest budget first."""
        curves = self.analysis.curves
        if not curves:
            return []
        values = [v for c in curves for line in c.seeds.values() for v in line]
        limits = limits_of(values, [m for c in curves for m in c.mean])
        objectives = sorted({curve.series[1] for curve in curves if curve.series[1]}) or [""]
        budgets = sorted({curve.labels for curve in curves}, reverse=True)
        found: list[Figure] = []
        for labels, objective in product(budgets, objectives):
            shown = [c for c in curves if c.labels == labels and c.series[1] in ("", objective)]
            name, caption = f"epochs-{labels}", f"Validation {self.metric}, {labels_name(labels)}"
            if len(objectives) > 1:
                name, caption = f"{name}-{objective}", f"{caption}, {objective}"
            draw = partial(epoch_chart, shown, limits=limits, metric=self.metric)
            found.append(self._add(name, caption, draw, HALF if found else WIDE))
        return found

    def _labels(self) -> Figure:
        """Draw the test score by number of labels."""
        analysis, budgets = self.analysis, self.results.about["budgets"]
        lines = []
        for series in analysis.every:
            scores = [score for score in analysis.scores.values() if score.series == series]
            lines.append(
                Line(
                    series_name(series, self.results),
                    colour(series[0]),
                    [(score.labels, score.interval) for score in scores],
                    [[(s.labels, v) for v in s.seeds.values()] for s in scores],
                    dash=self._dash(series),
                )
            )
        values = [v for score in analysis.scores.values() for v in score.seeds.values()]
        limits = limits_of(values, [score.interval for score in analysis.scores.values()])
        axis = Axis(
            "labelled rows (log scale)",
            budgets,
            lambda v: f"{v:,.0f}",
            lambda v: labels_name(int(v)),
            log=True,
        )
        title = f"Test {self.metric} by number of labels, mean and 95 % interval"
        return self._add(
            "labels",
            f"Test {self.metric} by number of labels",
            lambda frame: line_chart(title, lines, axis, limits, frame),
        )

    def _dash(self, series: Series) -> str:
        """The first objective is solid, the others are dashed: colour belongs to the arm."""
        objectives = [part["objective"] for part in self.results.about["pretraining"]]
        return "" if series[1] in ("", *objectives[:1]) else "6 4"

    def _calibration(self) -> Figure | None:
        """Draw the share of correct predictions by predicted probability."""
        lines = []
        for series in _shown(self.analysis):
            probabilities, gold = _probabilities(self.analysis, series)
            bins = reliability_bins(probabilities, gold)
            lines.append(
                Line(
                    series_name(series, self.results),
                    colour(series[0]),
                    [(b.confidence, Interval(b.accuracy, b.accuracy, b.accuracy)) for b in bins],
                    width=2,
                    dash=self._dash(series),
                    notes={
                        b.confidence: f"{whole_percent(b.accuracy)} of {b.rows:,} correct"
                        for b in bins
                    },
                )
            )
        if not lines:
            return None
        places = [x for line in lines for x, _ in line.points]
        shares = [value.value for line in lines for _, value in line.points]
        start = math.floor(10 * min(places)) / 10
        bottom = min(start, math.floor(10 * min(shares)) / 10)
        axis = Axis(
            "predicted probability",
            ticks(start, 1),
            whole_percent,
            lambda v: f"predicted with {100 * v:.0f} %",
        )
        most = labels_name(self.results.about["budgets"][-1])
        return self._add(
            "calibration",
            f"Correct predictions by predicted probability, {most}",
            lambda frame: line_chart("Calibration", lines, axis, (bottom, 1), frame, diagonal=True),
            Frame(780, 340),
        )

    def loss(self, part: Mapping[str, Any]) -> Figure | None:
        """Draw the loss of one pretraining."""
        if not part["points"]:
            return None
        return self._add(
            f"pretraining-{part['objective']}",
            "Loss by tokens",
            lambda frame: loss_chart(part["objective"], part["points"], frame),
            Frame(780, 300),
        )


def _score_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Make the table of scores; bold is a significant winner of its column."""
    rows = []
    for series in analysis.every:
        cells: list[dict[str, Any]] = []
        for labels in analysis.results.about["budgets"]:
            score = analysis.scores.get((series, labels))
            if score is None:
                cells.append({"value": "–", "small": "", "best": False})
            elif score.interval.bounded:
                value, small = f"{100 * score.interval.value:.1f}", within(score.interval)
                best = analysis.winners.get(labels) == series
                cells.append({"value": value, "small": small, "best": best})
            else:
                single = ", ".join(f"{100 * value:.1f}" for value in score.seeds.values())
                cells.append({"value": "", "small": f"single seeds: {single}", "best": False})
        rows.append({"key": _key(series, analysis.results), "cells": cells})
    return rows


def _cost_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Make the table of costs with the most labels."""
    labels = analysis.results.about["budgets"][-1]
    rows = []
    for series in analysis.every:
        cost = analysis.costs.get((series, labels), Cost())
        cells = [
            "–" if cost.minutes is None else minutes_words(cost.minutes),
            "–" if cost.bytes is None else size_words(cost.bytes),
            "–" if cost.milliseconds is None else f"{cost.milliseconds:.2g}",
        ]
        needed = labels_cell(analysis.needed.get(series), labels)
        key = _key(series, analysis.results)
        rows.append({"key": key, "selected": cost.selected, "cells": cells, "needed": needed})
    return rows


def labels_cell(needed: LabelsNeeded | None, most: int) -> tuple[str, str]:
    """Write the labels that an arm needs, and their interval or the reason why there is none."""
    if needed is None:
        return "", ""
    found = needed.labels
    if found is None:
        return "", needed.reason
    end = FARTHEST * most
    high = f"more than {rounded(end)}" if found.high > end else rounded(found.high)
    return rounded(found.value), f"{rounded(found.low)} to {high}"


def _pretraining(analysis: Analysis, figures: _Figures) -> list[dict[str, Any]]:
    """Describe each objective's pretraining: its last numbers, figures, and samples."""
    found = []
    for part in analysis.results.about["pretraining"]:
        words = ""
        measured = [p for p in part["points"] if p.get("perplexity") is not None]
        if measured:
            last = measured[-1]
            words = f"Perplexity {last['perplexity']:,.1f} on held-out text"
            if last.get("bits_per_byte") is not None:
                words += f", {last['bits_per_byte']:.2f} bits per byte"
            words += f", after {(last.get('seconds') or 0) / 60:.1f} minutes."
        name = part["objective"]
        fills = name.startswith("masked")
        found.append(
            {
                "objective": name,
                "words": words,
                "loss": figures.loss(part),
                "verb": "fills gaps" if fills else "continues texts",
                "samples": [
                    _sample(one.get("prompt", ""), one.get("text", "")) for one in part["samples"]
                ],
            }
        )
    return found


def _sample(prompt: str, text: str) -> tuple[str, str]:
    """Split a sample into its prompt and what the base adds."""
    return prompt, text[len(prompt) :] if text.startswith(prompt) else f" → {text}"


def _shown(analysis: Analysis) -> list[Series]:
    """Return the arms that are shown row by row: the recommended one and the two compared."""
    labels = analysis.results.about["budgets"][-1]
    every = dict.fromkeys([analysis.selected, *analysis.contenders[:2]])
    runs = analysis.results.runs
    return [s for s in every if (*s, labels) in runs and analysis.results.has_classes]


def _probabilities(analysis: Analysis, series: Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities and gold classes of an arm at the largest budget, seeds together."""
    found = analysis.results.probabilities(*series, analysis.results.about["budgets"][-1])
    return found.reshape(-1, found.shape[-1]), np.tile(analysis.results.gold, len(found))


def _confusions(analysis: Analysis) -> list[dict[str, Any]]:
    """Compute, for two arms, the predicted classes of each true class in percent."""
    found = []
    names = analysis.results.about["label_names"]
    for series in _shown(analysis)[:2]:
        probabilities, gold = _probabilities(analysis, series)
        counts = np.zeros((len(names), len(names)))
        np.add.at(counts, (gold, probabilities.argmax(1)), 1)
        shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        error = calibration_error(probabilities, gold)
        rows = [(name, line.tolist()) for name, line in zip(names, shares, strict=True)]
        key = _key(series, analysis.results)
        found.append({"key": key, "rows": rows, "error": f"{100 * error:.1f} %"})
    return found


def _examples(analysis: Analysis, count: int = 2) -> list[dict[str, Any]]:
    """Find test rows that most seeds of one arm predict correctly and most of the other do not."""
    shown = _shown(analysis)[:2]
    if len(shown) < 2:
        return []
    results, labels = analysis.results, analysis.results.about["budgets"][-1]
    correct = [results.scores(*series, labels).mean(0) for series in shown]
    rows = np.arange(len(results.gold))
    sure = [results.probabilities(*s, labels).mean(0)[rows, results.gold] for s in shown]
    texts = results.rows.to_pylist()
    found = []
    for a, b in ((0, 1), (1, 0)):
        wanted = np.flatnonzero((correct[a] > 0.5) & (correct[b] < 0.5))
        clearest = wanted[np.argsort(-(sure[a] - sure[b])[wanted], kind="stable")]
        chosen = {texts[i]["text"]: i for i in clearest[::-1]}  # each text once, clearest first
        kept = [i for i in clearest if chosen[texts[i]["text"]] == i][:count]
        names = [series_name(shown[k], results) for k in (a, b)]
        found.append(
            {
                "names": names,
                "rows": [
                    {
                        **texts[i],
                        "text": _shortened(texts[i]["text"]),
                        "shares": [f"{100 * sure[k][i]:.0f}\u00a0%" for k in (a, b)],
                    }
                    for i in kept
                ],
            }
        )
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"


def _networks(results: Results) -> list[dict[str, Any]]:
    """Describe the parameters of each network, part by part."""
    found = []
    for objective, document in results.about["parameters"].items():
        config = document.get("config", {})
        kinds = (("vocab_size", "tokens"), ("width", "wide"), ("layers", "layers"))
        sizes = [f"{config[key]:,} {word}" for key, word in kinds if key in config]
        found.append({"objective": objective, "sizes": ", ".join(sizes), **document})
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
    return [
        (name, [(str(key).replace("_", " "), str(value)) for key, value in facts.items()])
        for name, facts in groups.items()
    ]


def write_tables(folder: Path, analysis: Analysis) -> list[Path]:
    """Write the four CSV tables: scores, differences, curves and costs.

    A score without a seed is the mean over seeds; a difference without labels is the mean over all
    budgets; an unbounded or unknown number is an empty cell.
    """
    metric = analysis.results.about["metric"]
    scores: list[Sequence[object]] = []
    for score in analysis.scores.values():
        ends = (score.interval.value, score.interval.low, score.interval.high)
        scores.append((*score.series, score.labels, None, metric, *ends))
        scores += [
            (*score.series, score.labels, seed, metric, value, None, None)
            for seed, value in score.seeds.items()
        ]
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
    for row in rows:
        writer.writerow(map(_cell, row))
    write_text(path, text.getvalue())
    return path


def _cell(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return ""
    return escape_formula(value) if isinstance(value, str) else value


def _write_figures(folder: Path, figures: Mapping[str, Figure]) -> list[Path]:
    """Write every figure as an SVG file."""
    paths = {folder / f"{name}.svg": figure for name, figure in figures.items()}
    for path, figure in paths.items():
        write_text(path, figure.wide.svg(standalone=True))
    return list(paths)
