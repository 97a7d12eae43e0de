"""What it rests on: pretraining itself, calibration and confusion, single rows."""

from html import escape

import numpy as np

from headstart.studies.report.charts import calibration_chart, loss_chart, series_name
from headstart.studies.report.material import PHONE, Material, paragraph, section
from headstart.studies.report.rows import (
    Calibration,
    Example,
    calibration,
    confusion,
    examples,
    of_series,
)
from headstart.studies.report.svg import Frame
from headstart.studies.results import Pretraining

LONGEST = 400  # characters of an example that are shown


def pretraining_section(material: Material) -> str:
    """Each objective's loss curve, its last numbers, and what the base says."""
    parts = [_objective(material, part) for part in material.study.pretraining]
    if not parts:
        parts = [paragraph("This study pretrained nothing itself.")]
    return section("pretraining", "What pretraining learned", *parts)


def _objective(material: Material, part: Pretraining) -> str:
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
            material.figure(
                f"pretraining-{part.objective}",
                "Loss by tokens read",
                lambda frame: loss_chart(part, frame),
                Frame(780, 300),
            )
        )
    if part.samples:
        verb = "fills in" if "masked" in part.objective else "goes on"
        shown.append(paragraph(f"How the base {verb}:", "note"))
    for sample in part.samples:
        prompt, text = sample.get("prompt", ""), sample.get("text", "")
        rest = text.removeprefix(prompt) if text != prompt else text
        arrow = "" if text.startswith(prompt) else " → "
        shown.append(
            f"<blockquote><p><b>{escape(prompt)}</b>{arrow}{escape(rest)}</p></blockquote>"
        )
    return "".join(shown)


def trust_section(material: Material) -> str:
    """Calibration of the two contenders, and what each takes for what."""
    found = calibrations(material)
    if not found:
        return section("trust", "When to trust it", paragraph("No test predictions were kept."))
    errors = ", ".join(
        f"{series_name(c.series, material.study)} {100 * c.error:.1f} points" for c in found
    )
    tables = "".join(_confusion(material, c) for c in found)
    return section(
        "trust",
        "When to trust it",
        paragraph(
            "On the dotted line a classifier is right as often as it says; below it, less often. "
            f"Mean distance from the line: {errors}.",
            "note",
        ),
        material.figure(
            "calibration",
            "Share right by stated confidence, all labels",
            lambda frame: calibration_chart(found, material.study, frame),
            Frame(780, 340),
            PHONE,
        ),
        tables if len(material.study.label_names) > 5 else f'<div class="pair">{tables}</div>',
    )


def calibrations(material: Material) -> list[Calibration]:
    """Of the contenders, with all labels."""
    runs = {
        series: of_series(material.predictions, series, material.study.budgets[-1])
        for series in material.contenders
    }
    return [calibration(series, found) for series, found in runs.items() if found]


def _confusion(material: Material, one: Calibration) -> str:
    names = material.study.label_names
    runs = of_series(material.predictions, one.series, material.study.budgets[-1])
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
        f'<div class="together"><h3>{material.key(one.series)}: what it says of each label, %</h3>'
        f'<div class="scroll"><table class="{kind}"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def examples_section(material: Material) -> str:
    """Rows that one contender gets right and the other wrong."""
    if len(material.contenders) < 2:
        return section("examples", "Row by row", paragraph("One arm has nothing to differ from."))
    one, other = material.contenders
    parts = []
    for first, second in ((one, other), (other, one)):
        runs = [
            of_series(material.predictions, series, material.study.budgets[-1])
            for series in (first, second)
        ]
        found = examples(runs[0], runs[1], material.test_rows)
        names = [escape(series_name(series, material.study)) for series in (first, second)]
        parts.append(f"<h3>{names[0]} right, {names[1]} wrong</h3>")
        parts += [_example(example, names) for example in found]
        if not found:
            parts.append(paragraph("No such row.", "note"))
    note = "Test rows on which most seeds disagree, the clearest first; not a fair sample."
    return section("examples", "Row by row", paragraph(note, "note"), *parts)


def _example(example: Example, names: list[str]) -> str:
    text = example.row.text
    shown = text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"
    return (
        f"<blockquote><p>{escape(shown)}</p><footer>{escape(example.row.gold)} · {names[0]} gives "
        f"it {100 * example.first_probability:.0f}\u00a0%, {names[1]} "
        f"{100 * example.second_probability:.0f}\u00a0%</footer></blockquote>"
    )
