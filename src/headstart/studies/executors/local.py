"""The executor `local`: processes of this machine, each with its share of the threads.

The parent hands out one training at a time and receives every epoch. A worker whose parent is
gone ends at once, so that a study which was killed can be started again without a second process
writing into its folder.
"""

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from headstart.errors import HeadstartError
from headstart.machine import choose_threads
from headstart.studies.context import OnEpoch, StudyContext
from headstart.studies.executors.attempt import LESS_MEMORY, as_sent, know_arms, run_one
from headstart.studies.executors.protocol import (
    Executor,
    OnDone,
    OnStart,
    Resources,
    Session,
    TrainingEvent,
)
from headstart.studies.outcomes import RunKey
from headstart.studies.recipe import StudyRecipe

PATIENCE = 30.0  # seconds that a worker is given to save and end
MOST_JOBS = 4  # where nobody says how many
MOST_PROCESSES = 512


class LocalExecutor(Executor):
    """This machine. Needs nothing else, and is the default."""

    name = "local"
    retries = 0  # what ran out of memory here would do so again

    def problems(self, recipe: StudyRecipe) -> list[str]:
        problems = super().problems(recipe)
        if recipe.jobs and recipe.jobs > MOST_PROCESSES:
            problems.append(
                f"jobs is {recipe.jobs:,}; on one machine it must be {MOST_PROCESSES} or less: "
                "more of them only wait for each other"
            )
        return problems

    def at_once(self, recipe: StudyRecipe, resources: Resources) -> int:
        return recipe.jobs or min(choose_threads(recipe.threads), MOST_JOBS)

    def threads(self, recipe: StudyRecipe, jobs: int, available: int) -> int:
        return max(1, available // jobs)

    def words(self, resources: Resources) -> str:
        return ""

    def is_here(self, trainings: int, jobs: int) -> bool:
        """One after another needs no second process."""
        return jobs == 1 or trainings < 2

    def open(self, study: StudyContext, resources: Resources) -> "LocalSession":
        return LocalSession(study)


class LocalSession(Session):
    """Worker processes, started as they are needed; each does one training after another."""

    def __init__(self, study: StudyContext) -> None:
        self._study = study
        self._context = multiprocessing.get_context("spawn")  # forked PyTorch threads would hang
        self._workers: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, RunKey] = {}

    def submit(self, run: RunKey) -> None:
        idle = [pipe for pipe in self._workers if pipe not in self._busy]
        pipe = idle[0] if idle else self._start()
        self._busy[pipe] = run
        pipe.send(run)

    def events(self) -> Iterator[TrainingEvent]:
        for pipe in wait(list(self._busy)):
            assert isinstance(pipe, Connection)
            yield self._hear(pipe)

    def close(self) -> None:
        for pipe, worker in self._workers.items():
            if pipe in self._busy:
                worker.terminate()  # a training saves what it has
            else:
                with suppress(OSError):  # Ctrl-C has ended it already
                    pipe.send(None)
        for worker in self._workers.values():
            worker.join(PATIENCE)
            worker.kill()
        self._workers.clear()

    def _start(self) -> Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, self._study), daemon=True)
        process.start()
        theirs.close()
        self._workers[ours] = process
        return ours

    def _hear(self, pipe: Connection) -> TrainingEvent:
        """One message of a worker."""
        run = self._busy[pipe]
        try:
            kind, *content = pipe.recv()
        except (EOFError, ConnectionResetError):
            process = self._workers.pop(pipe)
            del self._busy[pipe]
            process.join(PATIENCE)
            error = HeadstartError(_end_in_words(process.exitcode), fix=LESS_MEMORY)
            return TrainingEvent("died", run, error=error)
        if kind == "start":
            return TrainingEvent("start", run)
        if kind == "epoch":
            return TrainingEvent("epoch", run, epoch=content[0], value=content[1])
        del self._busy[pipe]
        if kind == "done":
            return TrainingEvent("done", run)
        del self._workers[pipe]  # it ended
        return TrainingEvent("error", run, error=content[0])


def run_here(
    runs: Sequence[RunKey],
    study: StudyContext,
    *,
    on_start: OnStart,
    on_epoch: OnEpoch,
    on_done: OnDone,
) -> None:
    """Run all trainings in this process, one after another."""
    for run in runs:
        on_start(run, "")
        run_one(run, study, on_epoch)
        on_done(run)


def _end_in_words(code: int | None) -> str:
    if code == -9:
        return "the system killed a training: it may have run out of memory"
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return f"a training's process ended {how}, without an error message"


def work(pipe: Connection, study: StudyContext) -> None:
    """A worker's life: wait for a training, do it, report."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        know_arms(study)
        while (run := pipe.recv()) is not None:
            pipe.send(("start",))
            run_one(run, study, lambda _, epoch, value: pipe.send(("epoch", epoch, value)))
            pipe.send(("done",))
    except BaseException as error:  # silence would look like a lack of memory
        pipe.send(("error", as_sent(error)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


EXECUTOR = LocalExecutor()
