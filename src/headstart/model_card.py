"""The model card: what a model is, its training data, its metrics and its limits.

Every folder with a trained model has one, as `README.md`. It names no path, so that it stays true
where the folder is moved.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from headstart.files import installed_version, write_text

CARD = "README.md"
PACKAGES = ("torch", "tokenizers", "scikit-learn", "numpy")


@dataclass(frozen=True)
class CardScore:
    """A metric of the model, with the bounds of its interval, where it has one."""

    name: str
    value: float | str  # a share, or text for any other quantity
    measured_on: str  # which rows, and how many
    low: float | None = None
    high: float | None = None


def write_card(
    folder: Path,
    *,
    title: str,
    facts: Mapping[str, object],
    scores: Sequence[CardScore],
    use: str,
    limits: Sequence[str],
    fingerprints: Mapping[str, str] | None = None,
    tables: Mapping[str, Sequence[Sequence[object]]] | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Write `README.md`. Titles and cells may hold any text: their markup is escaped.

    `use` and `limits` are Markdown; the limits list what the model cannot do and what its metrics
    do not show. The first digits of the `fingerprints` (data, tokenizer, base) are shown. `tables`
    are by heading; their first row is the header. The Hugging Face Hub reads `data`
    (https://huggingface.co/docs/hub/model-cards).
    """
    versions = [f"Python {python_version()}", f"headstart {installed_version()}"]
    versions += [f"{package} {version(package)}" for package in PACKAGES]
    rows = {
        **facts,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": ", ".join(versions),
    }
    parts = [f"# {escape_markup(title)}", _table([("", ""), *rows.items()]), "## Evaluation"]
    measured = [("", "", "95 % interval", "measured on")]
    for score in scores:
        value = score.value if isinstance(score.value, str) else f"{score.value:.1%}"
        interval = "" if score.low is None else f"{score.low:.1%} to {score.high:.1%}"
        measured.append((score.name, value, interval, score.measured_on))
    parts.append(_table(measured) if scores else "It was not measured.")
    more = dict(tables or {})
    if fingerprints:
        hashes = [(name, f"{digits[:16]}…") for name, digits in fingerprints.items()]
        more["Fingerprints of its inputs"] = [("", "SHA-256"), *hashes]
    for heading, content in more.items():
        parts += [f"## {heading}", _table(content)]
    listed = "\n".join(f"- {limit}" for limit in limits)
    parts += ["## Use", use, "## Limits and notes", listed or "None are known."]
    front = _front_matter(data) if data else ""
    write_text(folder / CARD, front + "\n\n".join(parts) + "\n")


def _front_matter(data: Mapping[str, Any]) -> str:
    """Return the YAML before a card: JSON is YAML, except for unprintable characters."""
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in data.items()
        if value is not None
    ]
    safe = ["".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in line) for line in lines]
    return "\n".join(["---", *safe, "---", ""])


def usage(texts_per_row: int = 1) -> str:
    """Describe how a run is used, from its folder."""
    texts = '"a text"' if texts_per_row == 1 else '"first text" "second text"'
    return f'In this folder: `headstart predict . {texts}`, or `headstart.load(".")` in Python.'


def _table(rows: Sequence[Sequence[object]]) -> str:
    """Make a Markdown table; the first row is its header."""
    lines = ["| " + " | ".join(map(escape_markup, row)) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines)


def escape_markup(value: object) -> str:
    """Escape markup, line ends and control characters of a user's string."""
    text = str(value)
    for mark in "\\|<>[]*_`":
        text = text.replace(mark, f"\\{mark}")
    return "".join(c if c.isprintable() else f"\\\\x{ord(c):02x}" for c in text)
