"""One attempt at a training, on whatever machine: from the rows of its budget to its file.

Another attempt may have been made before, or may still be under way: a machine that is cut off goes
on for a while, a job that was lost is submitted again.
"""

import pickle
import time
import traceback
from dataclasses import replace
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.lock import locked
from headstart.studies.arms import arms, find_arm
from headstart.studies.arms.arm import Arm
from headstart.studies.arms.registry import add_arm
from headstart.studies.context import ArmContext, OnEpoch, StudyContext
from headstart.studies.keep_best import SAME_AS_SEED
from headstart.studies.outcomes import Outcome, RunKey, is_finished, write_training
from headstart.training.trainer import Interrupted

LESS_MEMORY = "start the study again: it resumes; --jobs 1 needs the least memory"
LOCK_SECONDS = 600.0  # that an attempt waits for another one to end


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


def know_arms(study: StudyContext) -> None:
    """Add the arms that the study names: they are not built in."""
    for arm in study.arms:
        if arm.name not in arms():
            add_arm(arm)


def attempt_lock(study: StudyContext, run: RunKey) -> Path:
    """The folder whose lock an attempt holds: beside the runs, and gone with them in the end."""
    folder = study.run_folder(run)
    lock = folder.with_name(folder.name + ".attempt")
    lock.mkdir(parents=True, exist_ok=True)  # so that whoever leaves does not remove it
    return lock


def attempt(
    run: RunKey, study: StudyContext, on_epoch: OnEpoch, *, pause: float = 1.0
) -> BaseException | None:
    """Train unless it is done; waits while another attempt works in the training's folder.

    Parameters
    ----------
    run, study, on_epoch
        As for `run_one`.
    pause : float
        Seconds between two looks at the other attempt.

    Returns
    -------
    BaseException or None
        What went wrong and would go wrong again, ready to be pickled.
    """
    know_arms(study)
    lock = attempt_lock(study, run)
    began = time.monotonic()
    try:
        while not is_finished(study.folder, run):
            try:
                # Choosing settings writes beside the training's own folder, so that folder's lock
                # is not enough.
                with locked(lock, "training"):
                    if not is_finished(study.folder, run):
                        run_one(run, study, on_epoch)
            except HeadstartError as error:
                if error.code != "locked" or time.monotonic() - began > LOCK_SECONDS:
                    raise
                time.sleep(pause)
    except Exception as error:
        return as_sent(error)
    return None


def as_sent(error: BaseException) -> BaseException:
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
