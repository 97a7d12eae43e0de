"""Write a study's report: one page of nine sections that needs no other file, figures, tables."""

import base64
import csv
import hashlib
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import Interval, mean_scores
from headstart.files import escape_formula, replacing, write_text
from headstart.studies.costs import choice_words, find_cost
from headstart.studies.metric_words import in_metric
from headstart.studies.report.evidence import (
    calibrations,
    data_section,
    examples_section,
    network_section,
    pretraining_section,
    rerun_section,
    trust_section,
)
from headstart.studies.report.findings import epochs_section, labels_section, verdict_section
from headstart.studies.report.report_data import ReportData
from headstart.studies.report.rows import confusion, of_series
from headstart.studies.report.svg import Picture, arm_style
from headstart.studies.results import Predictions
from headstart.study.statistics import area_under_curve, epochs_to_reach


def write_tables(folder: Path, data: ReportData) -> list[Path]:
    """Write every table into `folder`; returns the files."""
    analysis = data.analysis
    return [
        _write(
            folder / "accuracy.csv",
            ("arm", "objective", "labels", "mean", "low", "high", "seeds"),
            [(*s.series, s.labels, *_ends(s.accuracy), len(s.seeds)) for s in analysis.scores],
        ),
        _write(
            folder / "single_runs.csv",
            ("arm", "objective", "labels", "seed", "accuracy", "low", "high", "method"),
            [
                (*_run(p), *_ends(interval), interval.method)
                for p, interval in ((p, _over_rows(p)) for p in data.predictions)
            ],
        ),
        _write(
            folder / "differences.csv",
            ("arm", "objective", "minus", "labels", "difference", "low", "high"),
            [(*g.first, g.second[0], g.labels, *_ends(g.difference)) for g in analysis.gaps],
        ),
        _write(
            folder / "mcnemar.csv",
            ("arm", "objective", "against", "seed", "only_first_right", "only_second_right", "p"),
            [
                (*t.first, t.second[0], t.seed, t.only_first, t.only_second, t.p)
                for t in analysis.mcnemar
            ],
        ),
        _write(
            folder / "learning.csv",
            ("arm", "objective", "labels", "seed", "epochs_to_95_percent", "area_under_curve"),
            [
                (*c.series, c.labels, seed, epochs_to_reach(line), area_under_curve(line))
                for c in analysis.curves
                for seed, line in c.seeds.items()
            ],
        ),
        _write(
            folder / "label_savings.csv",
            ("objective", "goal_accuracy", "most_labels", "labels", "low", "high"),
            [
                (objective, s.goal, s.most, s.labels, s.low, s.high)
                for objective, s in analysis.savings.items()
            ],
        ),
        *_by_row(folder, data),
        _write(
            folder / "costs.csv",
            ("arm", "objective", "labels", "minutes", "bytes", "milliseconds_per_text", "chosen"),
            [
                (
                    *(*s.series, s.labels),
                    *vars(find_cost(data.study, data.facts, s.series, s.labels)).values(),
                    choice_words(data.facts, s.series, s.labels),
                )
                for s in analysis.scores
            ],
        ),
        _write(
            folder / "parameters.csv",
            ("objective", "part", "of", "formula", "count", "trainable"),
            [
                (objective, *(part[k] for k in ("name", "of", "formula", "count", "trainable")))
                for objective, document in data.study.parameters.items()
                for part in document.get("parts", [])
            ],
        ),
    ]


def _by_row(folder: Path, data: ReportData) -> list[Path]:
    found, names = calibrations(data), data.study.label_names
    mixed = []
    for one in found:
        runs = of_series(data.predictions, one.series, data.study.budgets[-1])
        counts = confusion(runs, len(names))
        mixed += [
            (*one.series, gold, said, int(counts[i, j]))
            for i, gold in enumerate(names)
            for j, said in enumerate(names)
        ]
    return [
        _write(
            folder / "calibration.csv",
            ("arm", "objective", "confidence", "share_right", "rows"),
            [(*one.series, *line) for one in found for line in one.bins],
        ),
        _write(folder / "confusion.csv", ("arm", "objective", "gold", "predicted", "rows"), mixed),
    ]


def _run(said: Predictions) -> tuple[str, str, int, int]:
    return said.run.arm, said.run.objective, said.run.labels, said.run.seed


def _over_rows(said: Predictions) -> Interval:
    return mean_scores(said.right).interval()


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write one table; an unbounded end of an interval is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(_cell(cell) for cell in row)
    write_text(path, text.getvalue())
    return path


def _cell(value: object) -> object:
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return ""
    return escape_formula(value) if isinstance(value, str) else value


SECTIONS = (
    verdict_section,
    epochs_section,
    labels_section,
    pretraining_section,
    trust_section,
    examples_section,
    data_section,
    network_section,
    rerun_section,
)
INSTALL = "pip install 'headstart[figures]'"


@dataclass(frozen=True)
class Report:
    """The files that were written, and the verdict they carry."""

    path: Path
    figures: list[Path]
    tables: list[Path]
    sentences: list[str]
    advice: list[str]  # which arm to take; the command is the last line
    missing: str | None  # what would have been written too, and how to get it


def build_report(folder: Path) -> Path:
    """Write `report.html`, `figures/` and `tables/` into the study's folder."""
    return write_report(folder).path


def write_report(folder: Path) -> Report:
    """The same, telling every file."""
    data = ReportData.read(folder)
    if not data.analysis.scores:
        raise HeadstartError(
            "the study has no finished run to report on",
            where=folder / "results.csv",
            fix="run `headstart compare` again; it resumes where it stopped",
        )
    write_text(folder / "report.html", page(data))
    figures, missing = _write_figures(folder / "figures", data.pictures)
    tables = write_tables(folder / "tables", data)
    sentences = [in_metric(one, data.study) for one in data.verdict.sentences]
    advice = []
    if data.advice:
        advice = [in_metric(" ".join(data.advice.sentences), data.study), data.advice.command]
    return Report(folder / "report.html", figures, tables, sentences, advice, missing)


def page(data: ReportData) -> str:
    """The whole report as HTML."""
    study = data.study
    style, script = _part("style.css") + arm_style(), _part("hover.js") + _part("script.js")
    # The browser itself refuses every request and every script but ours, whatever the data holds.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(script)}'"
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) != 1 else ''}"
    about = f"{seeds}, {study.splits.get('test', 0):,} test rows"
    if study.corpus:
        about = f"pretrained on {study.corpus} · {about}"
    # Only our own words: not the script, whose hash is above.
    sections = in_metric("".join(make(data) for make in SECTIONS), study)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(study.dataset)}: does pretraining help?</title>
<style>{style}</style></head><body>
<header><span><strong>{escape(study.dataset)}</strong> · {escape(about)}</span>
<label class="switch"><input type="checkbox" id="seeds"> single seeds</label>
<button id="theme" type="button">light / dark</button></header>
<main>{sections}</main>
<footer>Made by Headstart {escape(study.versions.get("headstart", ""))}. The pictures are in
<code>figures/</code>, the tables in <code>tables/</code>, every number in <code>results.csv</code>,
beside this file.</footer>
<div id="tip" hidden></div>
<script>{script}</script></body></html>
"""


def _write_figures(folder: Path, pictures: Mapping[str, Picture]) -> tuple[list[Path], str | None]:
    """Every picture as SVG, and as PNG where the optional renderer is there."""
    drawing = find_spec("resvg_py") is not None and find_spec("font_roboto") is not None
    written = []
    for name, picture in pictures.items():
        svg = picture.svg(standalone=True)
        write_text(folder / f"{name}.svg", svg)
        written.append(folder / f"{name}.svg")
        if drawing:
            with replacing(folder / f"{name}.png") as temporary:
                temporary.write_bytes(_png(svg))
            written.append(folder / f"{name}.png")
    return written, None if drawing else f"PNG figures are an extra: {INSTALL}"


def _png(svg: str) -> bytes:
    """Three pixels for one, for print; a font of our own, as a server may have none."""
    from resvg_py import svg_to_bytes

    fonts = find_spec("font_roboto")
    assert fonts is not None
    assert fonts.origin is not None
    return svg_to_bytes(
        svg_string=svg,
        zoom=3,
        skip_system_fonts=True,
        font_dirs=[str(Path(fonts.origin).parent / "files")],
        font_family="Roboto",
        sans_serif_family="Roboto",
    )


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
