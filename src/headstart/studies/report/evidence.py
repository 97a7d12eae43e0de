"""What the findings rest on: pretraining, calibration, single rows, the data, the network."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from headstart.studies.report.charts import calibration_chart, loss_chart
from headstart.studies.report.report_data import (
    PHONE,
    ReportData,
    facts_table,
    paragraph,
    section,
    table,
)
from headstart.studies.report.rows import (
    Calibration,
    ExampleRow,
    calibration,
    confusion,
    examples,
    of_series,
)
from headstart.studies.report.svg import Frame
from headstart.studies.report.token_chart import token_figure
from headstart.studies.results import PretrainingCurve
from headstart.studies.words import labelled, series_name

LONGEST = 400  # characters of an example that are shown


def pretraining_section(data: ReportData) -> str:
    """Each objective's loss curve, its last numbers, and what the base says."""
    parts = [_objective(data, part) for part in data.study.pretraining]
    if not parts:
        parts = [paragraph("This study pretrained nothing itself.")]
    return section("pretraining", "What pretraining learned", *parts)


def _objective(data: ReportData, part: PretrainingCurve) -> str:
    shown = [f"<h3>{escape(part.objective.capitalize())}</h3>"]
    if part.points:
        last = [p for p in part.points if p.get("perplexity") is not None]
        if last:
            end = last[-1]
            seconds = end.get("seconds") or 0
            words = f"Perplexity {end['perplexity']:,.1f} on held-out text"
            if end.get("bits_per_byte") is not None:
                words += f", {end['bits_per_byte']:.2f} bits per byte"
            shown.append(paragraph(f"{words}, after {seconds / 60:.1f} minutes.", "note"))
        shown.append(
            data.figure(
                f"pretraining-{part.objective}",
                "Loss by tokens read",
                lambda frame: loss_chart(part, frame),
                Frame(780, 300),
            )
        )
    longer = [one for one in data.tokens if one.objective == part.objective]
    shown += [token_figure(data, one) for one in longer]
    if part.samples:
        verb = "fills in" if part.objective.startswith("masked") else "continues"
        shown.append(paragraph(f"How the base {verb}:", "note"))
    for sample in part.samples:
        prompt, text = sample.get("prompt", ""), sample.get("text", "")
        rest = text.removeprefix(prompt) if text != prompt else text
        arrow = "" if text.startswith(prompt) else " → "
        shown.append(
            f"<blockquote><p><b>{escape(prompt)}</b>{arrow}{escape(rest)}</p></blockquote>"
        )
    return "".join(shown)


def trust_section(data: ReportData) -> str:
    """Calibration of the arm to take and of the two compared, and what each takes for what."""
    found = calibrations(data)
    if not found:
        words = "No test predictions were kept."
        if not data.study.has_classes:
            words = "Rows of this task have no classes, whose probabilities could be checked."
        return section("trust", "When to trust it", paragraph(words))
    tables = "".join(_confusion(data, c) for c in found[:2])
    return section(
        "trust",
        "When to trust it",
        paragraph(
            "On the dotted line a classifier is right as often as it says; below it, less often.",
            "note",
        ),
        data.figure(
            "calibration",
            f"Share right by stated confidence, {labelled(data.study.budgets[-1])}",
            lambda frame: calibration_chart(found, data.study, frame),
            Frame(780, 340),
            PHONE,
        ),
        tables if len(data.study.label_names) > 5 else f'<div class="pair">{tables}</div>',
    )


def calibrations(data: ReportData) -> list[Calibration]:
    """Of the arm to take and of those compared, with the most labels, where rows have classes."""
    if not data.study.has_classes:
        return []
    runs = {
        series: of_series(data.predictions, series, data.study.budgets[-1]) for series in data.shown
    }
    return [calibration(series, found) for series, found in runs.items() if found]


def _confusion(data: ReportData, one: Calibration) -> str:
    names = data.study.label_names
    runs = of_series(data.predictions, one.series, data.study.budgets[-1])
    counts = confusion(runs, len(names))
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in names)
    body = ""
    for name, line in zip(names, shares, strict=True):
        cells = "".join(
            f'<td style="background:rgba(var(--shade),{0.55 * share:.2f})">{100 * share:.0f}</td>'
            for share in line
        )
        body += f"<tr><th>{escape(name)}</th>{cells}</tr>"
    kind = "confusion many" if len(names) > 5 else "confusion"
    return (
        f'<div class="together"><h3>{data.key(one.series)}: what it says of each label, %</h3>'
        f'<div class="scroll"><table class="{kind}"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def examples_section(data: ReportData) -> str:
    """Rows that one arm gets right and another wrong: the one to take goes first."""
    if not data.study.has_classes:
        words = "Rows of this task are not right or wrong as a whole."
        return section("examples", "Row by row", paragraph(words))
    if len(data.shown) < 2:
        return section("examples", "Row by row", paragraph("One arm has nothing to differ from."))
    one, other = data.shown[:2]
    parts = []
    for first, second in ((one, other), (other, one)):
        runs = [
            of_series(data.predictions, series, data.study.budgets[-1])
            for series in (first, second)
        ]
        found = examples(runs[0], runs[1], data.test_rows)
        names = [escape(series_name(series, data.study)) for series in (first, second)]
        parts.append(f"<h3>{names[0]} right, {names[1]} wrong</h3>")
        parts += [_example(example, names) for example in found]
        if not found:
            parts.append(paragraph("No such row.", "note"))
    note = "Test rows on which most seeds disagree, the clearest first; not a fair sample."
    return section("examples", "Row by row", paragraph(note, "note"), *parts)


def _example(example: ExampleRow, names: list[str]) -> str:
    text = example.row.text
    shown = text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"
    return (
        f"<blockquote><p>{escape(shown)}</p><footer>{escape(example.row.gold)} · {names[0]} gives "
        f"it {100 * example.first_probability:.0f}\u00a0%, {names[1]} "
        f"{100 * example.second_probability:.0f}\u00a0%</footer></blockquote>"
    )


def data_section(data: ReportData) -> str:
    """Rows of each split, what was dropped, what the data check warned of."""
    study = data.study
    splits = [(name, f"{count:,} rows") for name, count in study.splits.items()]
    labels = ", ".join(study.label_names)
    if study.overlap_checked:
        overlap = study.overlap_checked
    elif study.overlap_dropped:  # a study of an earlier version
        overlap = (
            f"{study.overlap_dropped:,} documents of the corpus held test rows and were left out"
        )
    else:
        overlap = "No document of the corpus held a test row"
    if study.task_texts:
        overlap += (
            f". {study.task_texts:,} training texts joined the corpus without their labels, in "
            "every budget: text is plentiful where labels are few"
        )
    warnings = "".join(f"<li>{escape(words)}</li>" for words in study.warnings)
    return section(
        "data",
        "The data check",
        paragraph(
            f"{len(study.label_names)} labels: {labels}. " + (f"{overlap}." if study.corpus else "")
        ),
        facts_table("split", splits),
        f"<ul>{warnings}</ul>" if warnings else paragraph("No warnings.", "note"),
    )


def network_section(data: ReportData) -> str:
    """The parameter table of each network, part by part."""
    parts = []
    for objective, document in data.study.parameters.items():
        config = document.get("config", {})
        sizes = [
            f"{config[key]:,} {word}"
            for key, word in (("vocab_size", "pieces"), ("width", "wide"), ("layers", "layers"))
            if key in config
        ]
        parts.append(f"<h3>{escape(objective.capitalize())}: {escape(', '.join(sizes))}</h3>")
        rows = [
            (
                escape(str(part["name"])),
                escape(str(part["of"]).replace("_", " ")),
                f"<code>{escape(str(part['formula']))}</code>",
                f"{part['count']:,}",
            )
            for part in document.get("parts", [])
        ]
        for head, count in document.get("total", {}).items():
            name = f"<b>base + {escape(head.replace('_', ' '))} head</b>"
            rows.append((name, "", "", f"<b>{count:,}</b>"))
        parts.append(table(("part", "of", "formula", "parameters"), rows, spare=(2,)))
    if not parts:
        parts = [paragraph("No network was trained.")]
    return section("network", "The network", *parts)


def rerun_section(data: ReportData) -> str:
    """The exact command, and everything that its numbers depend on."""
    study = data.study
    facts: dict[str, Any] = {
        "seeds": ", ".join(map(str, study.seeds)),
        "labels": ", ".join(f"{labels:,}" for labels in study.budgets),
        "arms": ", ".join(study.arms),
        "time": f"{study.minutes:.1f} minutes",
    }
    return section(
        "rerun",
        "How to run it again",
        f"<pre>{escape(study.command)}</pre>",
        _facts("study", facts),
        _facts("machine", study.machine),
        _facts("version", study.versions),
    )


def _facts(name: str, facts: Mapping[str, Any]) -> str:
    def said(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key} {said(one)}" for key, one in value.items())
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return facts_table(name, [(str(key).replace("_", " "), said(v)) for key, v in facts.items()])
