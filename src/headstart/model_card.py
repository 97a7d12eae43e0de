"""The model card: what a model is, its training data, its metrics and its limits.

Every folder with a trained model has one, as `README.md`. It names no path, so that it stays true
where the folder is moved.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy.special import expit

from headstart.evaluation.calibration import CERTAINTY_NOTE, at_temperature, is_certain
from headstart.files import write_text

CARD = "README.md"
VALIDATION = "validation.safetensors"  # scores and labels of the validation rows
CALIBRATION = "calibration.json"
PACKAGES = ("headstart", "torch", "tokenizers", "scikit-learn", "numpy")
SHOWN_FINGERPRINT = 16  # of its digits; the whole one is in identity.json


@dataclass(frozen=True)
class CardScore:
    """A metric of the model.

    Parameters
    ----------
    name : such as "accuracy".
    value : a share, or text for any other quantity.
    measured_on : which rows, and how many.
    low, high : the bounds of its interval, where it has one.
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
    facts : training data and settings, by name.
    scores : its metrics.
    fingerprints : hashes of the data and of the other things it is made of, by name.
    use : a command or a sentence about how it is used.
    limits : what it cannot do and what its numbers do not say, one sentence each. A warning about
        probabilities that are all near 1 is added.
    """
    named = {name: f"`{digits[:SHOWN_FINGERPRINT]}…`" for name, digits in fingerprints.items()}
    made = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "versions": _versions()}
    parts = [f"# {_plain(title)}", _table(("", ""), {**facts, **made}), "## How good it is"]
    if scores:
        parts.append(_score_table(scores))
    else:
        parts.append("It was not measured.")
    parts += ["## What it was made from", _table(("", "SHA-256"), named)] if named else []
    limits = [*limits, CERTAINTY_NOTE] if _certain_validation(folder) else limits
    parts += ["## Use", use, "## Limits", "\n".join(f"- {limit}" for limit in limits)]
    write_text(folder / CARD, "\n\n".join(parts) + "\n")


def usage(texts_per_row: int = 1) -> str:
    """Describe how a run is used, from its folder."""
    texts = '"a text"' if texts_per_row == 1 else '"first text" "second text"'
    return f'In this folder: `headstart predict . {texts}`, or `headstart.load(".")` in Python.'


def _certain_validation(folder: Path) -> bool:
    """Tell whether the probability of every validation prediction is near 1."""
    try:
        arrays = load_file(folder / VALIDATION)
        temperature = json.loads((folder / CALIBRATION).read_text("utf-8"))["temperature"]
        logits, labels = arrays["logits"], arrays["labels"]
    except (OSError, ValueError, KeyError, SafetensorError):
        return False
    if labels.ndim == 1:
        return is_certain(at_temperature(logits, temperature))
    p = expit(logits)  # several labels per text
    return is_certain(np.stack([p, 1 - p], axis=-1))


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
    """Escape markup, line ends and control characters of a user's string for a table cell."""
    text = str(value)
    for mark in "\\|<>[]*_":
        text = text.replace(mark, f"\\{mark}")
    return "".join(c if c.isprintable() else f"\\\\x{ord(c):02x}" for c in text)


def _versions() -> str:
    found = [f"Python {python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:  # not installed, but run from the source
            continue
    return ", ".join(found)
