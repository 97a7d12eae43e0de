"""What it was made with: the data check, the network, and how to run it again."""

from collections.abc import Mapping
from html import escape
from typing import Any

from headstart.studies.report.material import Material, facts_table, paragraph, section, table


def data_section(material: Material) -> str:
    """Rows of each split, what was dropped, what the data check warned of."""
    study = material.study
    splits = [(name, f"{count:,} rows") for name, count in study.splits.items()]
    labels = ", ".join(study.label_names)
    if study.overlap_dropped:
        overlap = (
            f"{study.overlap_dropped:,} documents of the corpus held test rows and were left out"
        )
    else:
        overlap = "No document of the corpus held a test row"
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


def network_section(material: Material) -> str:
    """The parameter table of each network, part by part."""
    parts = []
    for objective, document in material.study.parameters.items():
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


def rerun_section(material: Material) -> str:
    """The exact command, and everything that its numbers depend on."""
    study = material.study
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
