"""Listeners: what a training reports while it runs; trackers are those that are found by name.

TensorBoard is built in. Another package adds one with `register_tracker`, or without being
imported first by an entry point of the group `headstart.trackers`:

    [project.entry-points."headstart.trackers"]
    mlflow = "my_package:MlflowTracker"
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.registry import Registry
from headstart.training.recipe_file import Recipe

if TYPE_CHECKING:
    from headstart.training.finetune import FinetunePlan
    from headstart.training.plan import Plan


@dataclass
class Progress:
    """Where a training stands; what a display shows and a checkpoint keeps."""

    steps: int
    step: int = 0
    loss: float = math.nan
    first_loss: float = math.nan
    tokens: int = 0
    seconds: float = 0.0  # over all sessions
    best: float = math.inf
    best_step: int = 0
    evaluations: int = 0  # so far; a fine-tuning has one per epoch
    evaluation: dict[str, float] = field(default_factory=dict)  # the latest

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"progress": {key: value for key, value in vars(self).items() if key != "steps"}}


@dataclass(frozen=True)
class RunStart:
    """What is known when the first step is about to be taken."""

    kind: Literal["pretraining", "finetuning"]
    folder: Path
    recipe: Recipe
    plan: "Plan | FinetunePlan"
    step: int = 0  # steps that an earlier session has done


class Listener:
    """Receives the events of a training. Override those of interest; the default ignores them.

    Example
    -------
    >>> class Losses(Listener):
    ...     def __init__(self):
    ...         self.losses = []
    ...     def on_step(self, progress):
    ...         self.losses.append(progress.loss)
    """

    def stage(self, name: str) -> ProgressCallback:
        """A stage of the preparation begins; returns what is called with its progress."""
        return lambda done, total: None

    def on_start(self, start: RunStart) -> None:
        """Everything is prepared and planned; the run folder exists."""

    def on_step(self, progress: Progress) -> None:
        """A step was taken."""

    def on_best(self, progress: Progress) -> None:
        """The evaluation that is about to be reported is the best so far."""

    def on_evaluation(self, progress: Progress) -> None:
        """The held-out rows were evaluated: `progress.evaluation`."""

    def on_warning(self, message: str) -> None:
        """Something that a person should know."""

    def on_finish(self, summary: dict[str, Any]) -> None:
        """The training has ended, and this is its summary."""

    def on_stop(self, error: BaseException) -> None:
        """The training was stopped or failed after `on_start`; nothing more will come."""


class Listeners(Listener):
    """Passes every event on to each of several listeners, in their order."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self.listeners = tuple(listeners)

    def stage(self, name: str) -> ProgressCallback:
        callbacks = [listener.stage(name) for listener in self.listeners]

        def progress(done: int, total: int | None) -> None:
            for callback in callbacks:
                callback(done, total)

        return progress

    def on_start(self, start: RunStart) -> None:
        for listener in self.listeners:
            listener.on_start(start)

    def on_step(self, progress: Progress) -> None:
        for listener in self.listeners:
            listener.on_step(progress)

    def on_best(self, progress: Progress) -> None:
        for listener in self.listeners:
            listener.on_best(progress)

    def on_evaluation(self, progress: Progress) -> None:
        for listener in self.listeners:
            listener.on_evaluation(progress)

    def on_warning(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_warning(message)

    def on_finish(self, summary: dict[str, Any]) -> None:
        for listener in self.listeners:
            listener.on_finish(summary)

    def on_stop(self, error: BaseException) -> None:
        for listener in self.listeners:
            listener.on_stop(error)


class SaveBest(Listener):
    """Saves the weights whenever an evaluation is the best so far."""

    def __init__(self, save: Callable[[], object]) -> None:
        self.save = save

    def on_best(self, progress: Progress) -> None:
        self.save()


@contextmanager
def reporting(listener: Listener, start: RunStart) -> Iterator[None]:
    """Report the start of a training, and its end if that comes too early."""
    listener.on_start(start)
    try:
        yield
    except BaseException as error:
        listener.on_stop(error)
        raise


TrackerFactory = Callable[[], Listener]


class TensorBoard(Listener):
    """Writes the losses into the folder `tensorboard` of the run."""

    def __init__(self) -> None:
        # Now, and not at the first step: a missing package is reported before any work.
        self._open = _summary_writer()
        self._board: Any = None

    def on_start(self, start: RunStart) -> None:
        folder: Path = start.folder / "tensorboard"
        self._board = self._open(str(folder), purge_step=start.step + 1 if start.step else None)

    def on_step(self, progress: Progress) -> None:
        self._board.add_scalar("loss", progress.loss, progress.step)

    def on_evaluation(self, progress: Progress) -> None:
        for name, value in progress.evaluation.items():
            self._board.add_scalar(f"held out/{name}", value, progress.step)

    def on_finish(self, summary: dict[str, Any]) -> None:
        self._board.close()

    def on_stop(self, error: BaseException) -> None:
        if self._board is not None:
            self._board.close()


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise HeadstartError(
            "TensorBoard is not installed", fix="pip install 'headstart[tensorboard]'"
        ) from None
    return SummaryWriter


TRACKERS: Registry[TrackerFactory] = Registry(
    "tracker",
    group="headstart.trackers",
    base=Callable,  # type: ignore[arg-type]
    built_in={"tensorboard": TensorBoard},
)


def register_tracker(name: str, factory: TrackerFactory) -> None:
    """Make a tracker known in this process, for `--track NAME` and `find_trackers`.

    Parameters
    ----------
    name : str
        What it is called on the command line.
    factory : callable
        Called without arguments for each training; returns a `Listener`.
    """
    TRACKERS.register(name, factory)


def unregister_tracker(name: str) -> None:
    """Remove a tracker that was added with `register_tracker`."""
    TRACKERS.unregister(name)


def find_trackers(names: Iterable[str]) -> list[Listener]:
    """A new listener for each name; an unknown name is an error that lists the known ones."""
    return [_find(name)() for name in dict.fromkeys(names)]


def _find(name: str) -> TrackerFactory:
    factory = TRACKERS.get(name)
    if factory is None:
        raise HeadstartError(
            f"unknown tracker {name!r}; there are {', '.join(sorted(TRACKERS.entries()))}",
            fix="install the package that brings it, or call headstart.register_tracker",
        )
    return factory
