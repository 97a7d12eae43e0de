"""Callbacks: how a training reports its progress to a terminal, a file or a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError
from headstart.files import write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from headstart.progress import ProgressCallback
    from headstart.run import NetworkRun
    from headstart.training.trainer import TrainState

METRICS_FILE = "metrics.jsonl"
NUMBERS = ("step", "tokens", "seconds", "loss")  # of every line


class Callback:
    """Receives the events of a training. Override those of interest.

    Example
    -------
    >>> class Losses(Callback):
    ...     def __init__(self):
    ...         self.losses = []
    ...     def on_step(self, state):
    ...         self.losses.append(state.loss)
    """

    def stage(self, name: str) -> ProgressCallback:
        """Begin a stage of the preparation; returns what is called with its progress."""
        return lambda done, total: None

    def on_start(self, run: NetworkRun, step: int) -> None:
        """Everything is prepared, and the run folder exists; earlier sessions did `step` steps."""

    def on_step(self, state: TrainState) -> None:
        """A step was taken."""

    def on_evaluation(self, state: TrainState) -> None:
        """The held-out rows were evaluated: `state.metrics`."""

    def on_warning(self, message: str) -> None:
        """Something that a person should know."""


class Callbacks(Callback):
    """Pass every event on to several callbacks, in their order."""

    events: tuple[str, ...] = ("on_start", "on_step", "on_evaluation", "on_warning")

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = callbacks
        for event in self.events:
            setattr(self, event, _each([getattr(one, event) for one in callbacks]))

    def stage(self, name: str) -> ProgressCallback:
        return _each([one.stage(name) for one in self.callbacks])


def _each(functions: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        for function in functions:
            function(*arguments)

    return call


class MetricsFile(Callback):
    """Write `metrics.jsonl`: one line per step, and one more per evaluation."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS_FILE

    def on_start(self, run: NetworkRun, step: int) -> None:
        """Remove the lines of steps that the checkpoint does not have."""
        lines = read_metrics(self.path) if self.path.is_file() else []
        known = [line for line in lines if line["step"] <= step]
        if [line["step"] for line in known if "held_out" not in line] != list(range(1, step + 1)):
            raise HeadstartError(
                f"{METRICS_FILE} is damaged: it does not hold every step of the run",
                where=self.path,
                fix="restore it from a copy, or start the run again in another folder",
                code="damaged",
            )
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in known))

    def on_evaluation(self, state: TrainState) -> None:
        self.on_step(state, held_out=state.metrics)

    def on_step(self, state: TrainState, **more: Any) -> None:
        """Append a line."""
        line = {
            **{name: getattr(state, name) for name in NUMBERS},
            "seconds": round(state.seconds, 3),
            **more,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a `metrics.jsonl` that are whole: a kill may have cut one short."""
    lines: list[dict[str, Any]] = []
    for text in path.read_bytes().splitlines():
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            line = json.loads(text)
            numbers = all(isinstance(line[name], int | float) for name in NUMBERS)
            if numbers and isinstance(line.get("held_out", {}), dict):
                lines.append(line)
    return lines


def loss_curve(
    lines: Sequence[dict[str, Any]], *, points: int = 100
) -> list[dict[str, float | None]]:
    """Thin out the metrics of a pretraining: about `points` steps, and every evaluation."""
    evaluated = {line["step"] for line in lines if "held_out" in line}
    every = max(1, (len(lines) - len(evaluated)) // points)
    curve: list[dict[str, float | None]] = []
    for line in lines:
        held_out = line.get("held_out", {})
        if held_out or (line["step"] not in evaluated and line["step"] % every == 0):
            curve.append(
                {
                    **{name: line[name] for name in ("step", "tokens", "seconds")},
                    "train_loss": line["loss"],
                    "held_out_loss": held_out.get("loss"),
                    "perplexity": held_out.get("perplexity"),
                    "bits_per_byte": held_out.get("bits_per_byte"),
                }
            )
    return curve
