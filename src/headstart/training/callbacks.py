"""Callbacks: how a training reports its progress to a terminal, a file, a tracker or a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
        """Everything is prepared; the run folder exists.

        Parameters
        ----------
        run : the run that is trained, with its model in memory and its `plan`.
        step : the steps that an earlier session has done.
        """

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
        if not step:
            self.path.unlink(missing_ok=True)
            return
        lines = read_metrics(self.path) if self.path.is_file() else []
        known = [line for line in lines if line["step"] <= step]
        steps = [line["step"] for line in known if "held_out" not in line]
        if steps != list(range(1, step + 1)):
            raise _damaged(self.path)
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in known))

    def on_step(self, state: TrainState) -> None:
        self._append(state)

    def on_evaluation(self, state: TrainState) -> None:
        self._append(state, held_out=state.metrics)

    def _append(self, state: TrainState, **more: Any) -> None:
        numbers = {name: getattr(state, name) for name in NUMBERS}
        line = numbers | {"seconds": round(state.seconds, 3)} | more
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read a `metrics.jsonl`; its last line may have been cut short by a kill."""
    lines: list[dict[str, Any]] = []
    written = path.read_bytes().splitlines()
    for number, text in enumerate(written, start=1):
        try:
            line = json.loads(text)
            if not all(isinstance(line[name], int | float) for name in NUMBERS):
                raise TypeError
            dict(line.get("held_out", {}))
        except (ValueError, RecursionError, KeyError, TypeError):
            if number < len(written):
                raise _damaged(f"{path}, line {number}") from None
        else:
            lines.append(line)
    return lines


def _damaged(where: object) -> HeadstartError:
    return HeadstartError(
        f"{METRICS_FILE} is damaged: it does not hold every step of the run",
        where=where,
        fix="restore it from a copy, or start the run again in another folder",
        code="damaged",
    )


def loss_curve(
    lines: Sequence[dict[str, Any]], *, points: int = 100
) -> list[dict[str, float | None]]:
    """Thin out the metrics of a pretraining: about `points` steps, and every evaluation."""
    evaluations = {line["step"]: line["held_out"] for line in lines if "held_out" in line}
    steps = [line for line in lines if "held_out" not in line]
    every = max(1, len(steps) // points)
    curve: list[dict[str, float | None]] = []
    for line in steps:
        found = evaluations.get(line["step"])
        if found is None and line["step"] % every:
            continue
        held_out = found or {}
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


class TensorBoard(Callback):
    """Write losses and metrics into the folder `tensorboard` of the run."""

    def __init__(self) -> None:
        # Now, and not at the first step: a missing package is reported before any work.
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise HeadstartError(
                "TensorBoard is not installed",
                fix="pip install 'headstart[tensorboard]'",
                code="missing-package",
            ) from None
        self._writer_class: Any = SummaryWriter
        self._writer: Any = None

    def on_start(self, run: NetworkRun, step: int) -> None:
        purge = step + 1 if step else None
        self._writer = self._writer_class(str(run.folder / "tensorboard"), purge_step=purge)

    def on_step(self, state: TrainState) -> None:
        self._writer.add_scalar("loss", state.loss, state.step)

    def on_evaluation(self, state: TrainState) -> None:
        for name, value in state.metrics.items():
            self._writer.add_scalar(f"held_out/{name}", value, state.step)
        self._writer.flush()  # the last step is evaluated, so nothing is left


TRACKERS: dict[str, type[Callback]] = {"tensorboard": TensorBoard}


def find_trackers(names: Sequence[str]) -> list[Callback]:
    """Make a callback for each named tracker."""
    if unknown := [name for name in names if name not in TRACKERS]:
        raise HeadstartError(
            f"unknown tracker {unknown[0]!r}", fix=f"choose one of {', '.join(TRACKERS)}"
        )
    return [TRACKERS[name]() for name in dict.fromkeys(names)]
