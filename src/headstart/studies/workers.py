"""Several trainings side by side, each in a process of its own with its share of the threads.

The parent hands out one training at a time and hears of every epoch. A worker whose parent is
gone ends at once, so that a study which was killed can be started again without a second hand
writing into its folder.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from headstart.errors import HeadstartError
from headstart.studies.arms import Ground, train
from headstart.studies.results import RunKey
from headstart.studies.trainings import write_training
from headstart.text.checking.splits import take_budget
from headstart.text.reading.dataset import Splits
from headstart.training.loop import Interrupted

OnEpoch = Callable[[RunKey, int, float], None]
OnDone = Callable[[RunKey], None]
PATIENCE = 30.0  # seconds that a worker is given to save and end


def budget_rows(splits: Splits, run: RunKey) -> Splits:
    """The labelled rows of a training: the same for every arm, and within a larger budget's."""
    rows = take_budget(splits.train, str(run.labels), run.seed)
    return Splits(rows, splits.validation, splits.test)


def run_one(run: RunKey, splits: Splits, ground: Ground, on_epoch: OnEpoch) -> None:
    """One training, from the rows of its budget to its file."""

    def tell(epoch: int, accuracy: float) -> None:
        on_epoch(run, epoch, accuracy)

    write_training(ground.folder, train(run, budget_rows(splits, run), ground, tell))


def run_here(
    runs: Sequence[RunKey], splits: Splits, ground: Ground, *, on_epoch: OnEpoch, on_done: OnDone
) -> None:
    for run in runs:
        run_one(run, splits, ground, on_epoch)
        on_done(run)


def run_side_by_side(
    runs: Sequence[RunKey],
    splits: Splits,
    ground: Ground,
    *,
    jobs: int,
    on_epoch: OnEpoch,
    on_done: OnDone,
) -> None:
    """Run all trainings, `jobs` at a time; the first error ends them all."""
    context = multiprocessing.get_context("spawn")  # forked PyTorch threads would hang
    waiting = list(runs)[::-1]
    pipes: dict[Connection, Any] = {}
    try:
        for _ in range(min(jobs, len(waiting))):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, splits, ground), daemon=True)
            process.start()
            theirs.close()
            pipes[ours] = process
            ours.send(waiting.pop())
        while pipes:
            for pipe in wait(list(pipes)):
                assert isinstance(pipe, Connection)
                if not _hear(pipe, on_epoch, on_done):
                    continue
                if waiting:
                    pipe.send(waiting.pop())
                else:
                    pipe.send(None)
                    pipes.pop(pipe).join(PATIENCE)
    finally:
        for process in pipes.values():
            process.terminate()  # a training saves what it has
        for process in pipes.values():
            process.join(PATIENCE)
            process.kill()


def _hear(pipe: Connection, on_epoch: OnEpoch, on_done: OnDone) -> bool:
    """Take one message of a worker; true if it wants something to do."""
    try:
        kind, *content = pipe.recv()
    except EOFError:
        raise HeadstartError(
            "a training ended without a word: the system may have run out of memory",
            fix="start the study again: it goes on; --jobs 1 needs the least memory",
        ) from None
    if kind == "epoch":
        on_epoch(*content)
    elif kind == "done":
        on_done(*content)
    else:
        raise content[0]
    return kind == "done"


def _work(pipe: Connection, splits: Splits, ground: Ground) -> None:
    """A worker's life: wait for a training, do it, tell."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while (run := pipe.recv()) is not None:
            run_one(run, splits, ground, lambda *epoch: pipe.send(("epoch", *epoch)))
            pipe.send(("done", run))
    except (HeadstartError, Interrupted, KeyboardInterrupt) as error:
        pipe.send(("error", error))  # silence would look like a lack of memory


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
