"""`metrics.jsonl`: one line per step and one more per evaluation, and what is read off them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.training.listener import Listener, Progress, RunStart

METRICS = "metrics.jsonl"


class MetricsFile(Listener):
    """Appends lines; a resumed run first removes those that its checkpoint does not know."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS

    def on_start(self, start: RunStart) -> None:
        if not start.step:
            # What is there is of a run that was killed before its first checkpoint.
            self.path.unlink(missing_ok=True)
            return
        # A line that a kill cut short goes, too.
        lines = read_metrics(self.path) if self.path.is_file() else []
        kept = [line for line in lines if line["step"] <= start.step]
        steps = [line["step"] for line in kept if "held_out" not in line]
        if steps != list(range(1, start.step + 1)):
            raise _damaged(self.path)
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in kept))

    def on_step(self, progress: Progress) -> None:
        self._append(_line(progress))

    def on_evaluation(self, progress: Progress) -> None:
        self._append({**_line(progress), "held_out": progress.evaluation})

    def _append(self, line: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _line(progress: Progress) -> dict[str, Any]:
    return {
        "step": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "loss": progress.loss,
    }


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's `metrics.jsonl`; the last one may have been cut short by a kill."""
    written = path.read_bytes().splitlines()
    lines = []
    for number, text in enumerate(written, start=1):
        line = _parsed(text)
        if line is not None:
            lines.append(line)
        elif number < len(written):
            raise _damaged(f"{path}, line {number}")
    return lines


def _damaged(where: object) -> HeadstartError:
    return HeadstartError(
        f"{METRICS} is damaged: it does not hold every step of the run",
        where=where,
        fix="put it back from a copy, or start the run anew, in another folder",
    )


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    numbers = ("step", "tokens", "seconds", "loss")
    whole = (
        isinstance(line, dict)
        and all(isinstance(line.get(name), int | float) for name in numbers)
        and isinstance(line.get("held_out", {}), dict)
    )
    return line if whole else None


def evaluation_at(folder: Path, step: int) -> dict[str, float]:
    """What the evaluation after `step` found in the run of this folder."""
    for line in read_metrics(folder / METRICS):
        if line["step"] == step and "held_out" in line:
            return dict(line["held_out"])
    raise HeadstartError(
        f"{METRICS} has no evaluation of step {step}",
        where=folder,
        fix="start the run anew, in another folder",
    )


def loss_points(
    lines: Sequence[dict[str, Any]], *, most: int = 100
) -> list[dict[str, float | None]]:
    """A pretraining's curve from its metrics: about `most` of its steps, and every evaluation."""
    evaluations = {line["step"]: line["held_out"] for line in lines if "held_out" in line}
    steps = [line for line in lines if "held_out" not in line]
    every = max(1, len(steps) // most)
    points: list[dict[str, float | None]] = []
    for line in steps:
        found = evaluations.get(line["step"])
        if found is None and line["step"] % every:
            continue
        points.append(
            {
                **{name: line[name] for name in ("step", "tokens", "seconds")},
                "train_loss": line["loss"],
                "held_out_loss": found["loss"] if found else None,
                "perplexity": found["perplexity"] if found else None,
                "bits_per_byte": found.get("bits_per_byte") if found else None,
            }
        )
    return points


def epoch_rows(folder: Path, *, best_step: int) -> list[dict[str, Any]]:
    """The table of a fine-tuning: one row per epoch.

    Each has the mean training loss, the numbers of validation, and the seconds that it took.
    """
    rows: list[dict[str, Any]] = []
    losses: list[float] = []
    before = 0.0
    for line in read_metrics(folder / METRICS):
        if "held_out" not in line:
            losses.append(line["loss"])
            continue
        found = dict(line["held_out"])
        rows.append(
            {
                "epoch": len(rows) + 1,
                "step": line["step"],
                "train_loss": sum(losses) / len(losses),
                "validation_loss": found.pop("loss"),
                **found,
                "seconds": round(line["seconds"] - before, 3),
                "best": line["step"] == best_step,
            }
        )
        losses, before = [], line["seconds"]
    return rows
