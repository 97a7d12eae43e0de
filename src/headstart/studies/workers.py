"""Trainings one after another, or side by side in processes with their share of the threads.

The parent hands out one training at a time and receives every epoch. A worker whose parent is
gone ends at once, so that a study which was killed can be started again without a second process
writing into its folder.
"""

import multiprocessing
import os
import pickle
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from headstart.errors import HeadstartError
from headstart.studies.arms import arms, find_arm, register
from headstart.studies.arms.arm import Arm
from headstart.studies.context import ArmContext, OnEpoch, StudyContext
from headstart.studies.keep_best import SAME_AS_SEED
from headstart.studies.outcomes import Outcome, RunKey, is_finished, write_training
from headstart.training.loop import Interrupted

OnDone = Callable[[RunKey], None]
PATIENCE = 30.0  # seconds that a worker is given to save and end
LESS_MEMORY = "start the study again: it resumes; --jobs 1 needs the least memory"


def run_one(run: RunKey, study: StudyContext, on_epoch: OnEpoch) -> None:
    """One training, from the rows of its budget to its file."""
    arm, context = find_arm(run.arm), study.for_run(run, on_epoch)
    write_training(study.folder, same_training(arm, context) or arm.train(context))


def same_training(arm: Arm, context: ArmContext) -> Outcome | None:
    """The outcome of another seed, where that seed can change nothing.

    With all labels every seed has the same rows; an arm that draws nothing from the seed would
    only come to the same answers again.
    """
    if arm.varies_with_seed:
        return None
    for seed in range(context.study.recipe.seeds):
        other = RunKey(context.run.arm, context.run.objective, context.run.labels, seed)
        if other != context.run and is_finished(context.study.folder, other):
            here, there = _rows(context), _rows(context.study.for_run(other))
            if sorted(here) != sorted(there):
                return None
            place = {one: row for row, one in enumerate(here)}
            found = context.outcome(other).for_run(context.run, [place[one] for one in there])
            return replace(found, facts={SAME_AS_SEED: seed, **found.facts})
    return None


def _rows(context: ArmContext) -> list[tuple[str, int]]:
    train = context.splits.train
    texts = context.task.row_texts(train)
    return list(zip(texts, getattr(train, "labels", [0] * len(texts)), strict=True))


def run_here(
    runs: Sequence[RunKey], study: StudyContext, *, on_epoch: OnEpoch, on_done: OnDone
) -> None:
    """Run all trainings in this process, one after another."""
    for run in runs:
        run_one(run, study, on_epoch)
        on_done(run)


def run_side_by_side(
    runs: Sequence[RunKey],
    study: StudyContext,
    *,
    jobs: int,
    on_epoch: OnEpoch,
    on_done: OnDone,
) -> None:
    """Run all trainings, `jobs` at a time; the first error ends them all."""
    context = multiprocessing.get_context("spawn")  # forked PyTorch threads would hang
    waiting = list(runs)[::-1]
    workers: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(min(jobs, len(waiting))):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, study), daemon=True)
            process.start()
            theirs.close()
            workers[ours] = process
            ours.send(waiting.pop())
        while workers:
            for pipe in wait(list(workers)):
                assert isinstance(pipe, Connection)
                if not _hear(pipe, workers[pipe], on_epoch, on_done):
                    continue
                if waiting:
                    pipe.send(waiting.pop())
                else:
                    pipe.send(None)
                    workers.pop(pipe).join(PATIENCE)
    finally:
        for worker in workers.values():
            worker.terminate()  # a training saves what it has
        for worker in workers.values():
            worker.join(PATIENCE)
            worker.kill()


def _hear(pipe: Connection, process: BaseProcess, on_epoch: OnEpoch, on_done: OnDone) -> bool:
    """Take one message of a worker; true if it is ready for the next training."""
    try:
        kind, *content = pipe.recv()
    except EOFError:
        process.join(PATIENCE)
        raise HeadstartError(_end_in_words(process.exitcode), fix=LESS_MEMORY) from None
    if kind == "epoch":
        on_epoch(*content)
    elif kind == "done":
        on_done(*content)
    else:
        raise content[0]
    return kind == "done"


def _end_in_words(code: int | None) -> str:
    if code == -9:
        return "the system killed a training: it may have run out of memory"
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return f"a training's process ended {how}, without an error message"


def _work(pipe: Connection, study: StudyContext) -> None:
    """A worker's life: wait for a training, do it, report."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for arm in study.arms:
            if arm.name not in arms():  # only the parent's program has registered it
                register(arm)
        while (run := pipe.recv()) is not None:
            run_one(run, study, lambda *epoch: pipe.send(("epoch", *epoch)))
            pipe.send(("done", run))
    except BaseException as error:  # silence would look like a lack of memory
        pipe.send(("error", _as_sent(error)))


def _as_sent(error: BaseException) -> BaseException:
    """The error itself where it can be pickled, with the worker's traceback as a note."""
    if isinstance(error, HeadstartError | Interrupted | KeyboardInterrupt):
        return error
    if isinstance(error, MemoryError):
        return HeadstartError("a training ran out of memory", fix=LESS_MEMORY)
    place = "in a worker process:\n" + "".join(traceback.format_exception(error))
    try:
        error.add_note(place)
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception can refuse to be copied in any way it likes
        error = RuntimeError(f"{type(error).__name__}: {error}")
        error.add_note(place)
    return error


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
