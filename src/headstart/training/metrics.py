"""`metrics.jsonl`: one line per step and one more per evaluation, and what is read off them."""

import json
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
        if self.path.is_file():  # a line that a kill cut short goes, too
            kept = [line for line in read_metrics(self.path) if line["step"] <= start.step]
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
    """The lines of a run's `metrics.jsonl`; one that was cut short ends them."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break  # the last line of a killed run
    return lines


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
