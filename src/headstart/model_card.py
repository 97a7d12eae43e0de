"""The model card: what a model is, what it learned from, how good it is and what it cannot do.

Every folder with a trained model has one, as `README.md`. The function takes plain facts, so that
any kind of model can have a card.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version

from headstart.files import write_text

CARD = "README.md"
PACKAGES = ("headstart", "torch", "tokenizers", "scikit-learn", "numpy")
SHOWN_FINGERPRINT = 16  # of its digits; the whole one is in identity.json


@dataclass(frozen=True)
class CardScore:
    """A number about the model.

    Parameters
    ----------
    name : such as "accuracy".
    value : as a share, or as text where it is none.
    measured_on : which rows, and how many.
    low, high : the ends of its interval, where it has one.
    """

    name: str
    value: float | str
    measured_on: str
    low: float | None = None
    high: float | None = None


def write_card(
    folder: Path,
    *,
    title: str,
    facts: Mapping[str, object],
    scores: Sequence[CardScore],
    fingerprints: Mapping[str, str],
    use: str,
    limits: Sequence[str],
) -> None:
    """Write `README.md`.

    Parameters
    ----------
    folder : where the model is.
    title : what the model is.
    facts : what it learned from and how, by name.
    scores : how good it is.
    fingerprints : hashes of the data and of whatever else it is made of, by name.
    use : a command or a sentence about what it is for.
    limits : what it cannot do and what its numbers do not say, one sentence each.
    """
    named = {name: f"`{digits[:SHOWN_FINGERPRINT]}…`" for name, digits in fingerprints.items()}
    made = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "versions": _versions()}
    parts = [f"# {_plain(title)}", _table(("", ""), {**facts, **made}), "## How good it is"]
    if scores:
        parts.append(_score_table(scores))
    else:
        parts.append("It was not measured.")
    parts += ["## What it was made from", _table(("", "SHA-256"), named)] if named else []
    parts += ["## Use", use, "## Limits", "\n".join(f"- {limit}" for limit in limits)]
    write_text(folder / CARD, "\n\n".join(parts) + "\n")


def _score_table(scores: Sequence[CardScore]) -> str:
    lines = ["| | | 95 % interval | measured on |", "|---|---|---|---|"]
    for score in scores:
        value = score.value if isinstance(score.value, str) else _share(score.value)
        known = score.low is not None and score.high is not None
        ends = f"{_share(score.low)} to {_share(score.high)}" if known else ""
        cells = (score.name, value, ends, score.measured_on)
        lines.append("| " + " | ".join(map(_plain, cells)) + " |")
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _table(header: tuple[str, str], rows: Mapping[str, object]) -> str:
    lines = [f"| {header[0]} | {header[1]} |", "|---|---|"]
    lines += [f"| {_plain(name)} | {_plain(value)} |" for name, value in rows.items()]
    return "\n".join(lines)


def _plain(value: object) -> str:
    """A user's string in one cell of a table: no markup, no line ends, no control characters."""
    text = str(value)
    for mark in "\\|<>[]*_":
        text = text.replace(mark, f"\\{mark}")
    return "".join(c if c.isprintable() else f"\\\\x{ord(c):02x}" for c in text)


def _versions() -> str:
    found = [f"Python {python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # run from its source, without an installation
            continue
    return ", ".join(found)
