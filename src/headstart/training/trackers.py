"""Trackers: listeners that send a training's numbers elsewhere, found by their name.

TensorBoard is built in. Another package adds one with `register_tracker`, or without being
imported first by an entry point of the group `headstart.trackers`:

    [project.entry-points."headstart.trackers"]
    mlflow = "my_package:MlflowTracker"
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.registry import Registry
from headstart.training.listener import Listener, Progress, RunStart

TrackerFactory = Callable[[], Listener]


class TensorBoard(Listener):
    """Writes the losses into the folder `tensorboard` of the run."""

    def __init__(self) -> None:
        # Now, and not at the first step: a missing package is said before any work.
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
