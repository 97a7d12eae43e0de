"""The executor `slurm`: each training a job, submitted and watched through submitit.

The study's folder must be on storage that the cluster's machines share: jobs work in it, and report
through files in `executor/`. A job that is preempted or reaches its time limit is requeued and
resumes; one that ends without a word is submitted again.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError
from headstart.files import replacing, write_text
from headstart.studies.executors.attempt import attempt
from headstart.studies.executors.protocol import (
    GOES_ON,
    Executor,
    Resources,
    Session,
    TrainingEvent,
)
from headstart.studies.outcomes import RunKey, is_finished, training_name

if TYPE_CHECKING:
    from headstart.studies.context import StudyContext
    from headstart.studies.recipe import StudyRecipe

FOLDER = "executor"  # in the study's: the jobs' files, their logs and reports
LOCAL = "local"  # an address: submitit's own executor, which needs no Slurm
COMMANDS = ("sbatch", "srun", "sacct", "scancel")
JOBS = 16  # submitted at a time, where nobody says how many
MINUTES = 240  # of one job
TIMEOUTS = 20  # how often a job may reach its time limit and resume
PATIENCE = 30.0  # seconds that jobs are given to save and end
PAUSE = 0.5  # seconds between two looks at files
STATE_SECONDS = 20.0  # between two questions to Slurm
GRACE = 3.0  # seconds for a file to appear on shared storage after its job has ended
PREEMPTED_SECONDS = 300.0  # in which Slurm requeues a preempted job, or it does not
INSTALL = "pip install 'headstart[slurm]'"


class SlurmExecutor(Executor):
    """The Slurm cluster of the machine that the study is started on."""

    name = "slurm"
    takes = frozenset({"address", "cores", "memory", "gpus", "partition", "time_limit"})

    def problems(self, recipe: StudyRecipe) -> list[str]:
        if recipe.address in (None, LOCAL):
            return super().problems(recipe)
        return [f"--address of slurm is {LOCAL} (a trial without Slurm) or left out"]

    def at_once(self, recipe: StudyRecipe, resources: Resources) -> int:
        load()
        missing = [name for name in COMMANDS if shutil.which(name) is None]
        if resources.address != LOCAL and missing:
            raise HeadstartError(
                f"there is no {missing[0]} here: this machine cannot submit jobs to Slurm",
                fix=f"start the study on a login node, or try it here with --address {LOCAL}",
            )
        return recipe.jobs or JOBS

    def words(self, resources: Resources) -> str:
        where = f"partition {resources.partition}, " if resources.partition else ""
        limit = resources.time_limit or MINUTES
        kind = "jobs of submitit on this machine" if resources.address == LOCAL else "Slurm"
        return f"{kind}: {where}{resources.words()}, {limit} minutes at most"

    def open(self, study: StudyContext, resources: Resources) -> SlurmSession:
        return SlurmSession(study, resources)


class SlurmSession(Session):
    """Jobs under way, and how far their reports have been read."""

    def __init__(self, study: StudyContext, resources: Resources) -> None:
        submitit = load()
        from submitit.core.utils import FailedJobError, cloudpickle_dump

        self._refused = FailedJobError
        self._study, folder = study, study.folder.resolve() / FOLDER
        self._folder = folder
        self._local = resources.address == LOCAL
        shutil.rmtree(folder / "reports", ignore_errors=True)
        (folder / "reports").mkdir(parents=True)
        with replacing(folder / "study.pkl") as temporary:
            cloudpickle_dump(study, temporary)
        self._executor = submitit.AutoExecutor(
            folder / "jobs",
            cluster="local" if self._local else "slurm",
            slurm_max_num_timeout=TIMEOUTS,
        )
        self._executor.update_parameters(
            name="headstart",
            nodes=1,
            tasks_per_node=1,
            cpus_per_task=resources.cores,
            gpus_per_node=resources.gpus,
            mem_gb=resources.memory or None,
            timeout_min=resources.time_limit or MINUTES,
            slurm_partition=resources.partition or None,
        )
        self._jobs: dict[RunKey, Any] = {}
        self._read: dict[RunKey, int] = {}  # bytes of each report
        self._ended: dict[RunKey, float] = {}  # when a job was first seen to have ended
        self._asked = time.monotonic()
        self._cancel_leftovers(submitit)

    def submit(self, run: RunKey) -> None:
        training = SlurmTraining(self._folder, str(Path.cwd()))
        try:
            self._jobs[run] = self._executor.submit(training, run)
        except self._refused as error:
            raise HeadstartError(
                f"Slurm does not take the job: {error}", fix=f"see what it says; {GOES_ON}"
            ) from error
        self._ended.pop(run, None)
        self._write_jobs()

    def events(self) -> Iterator[TrainingEvent]:
        time.sleep(PAUSE)
        if time.monotonic() - self._asked > STATE_SECONDS and self._jobs:
            self._asked = time.monotonic()
            next(iter(self._jobs.values())).done(force_check=True)  # one question about all jobs
        for run, job in list(self._jobs.items()):
            yield from self._reports(run)
            if is_finished(self._study.folder, run):
                del self._jobs[run]
                yield TrainingEvent("done", run)
            elif self._has_ended(run, job):
                del self._jobs[run]
                yield self._end_of(run, job)

    def close(self) -> None:
        for job in self._jobs.values():
            job.cancel(check=False)
        waited = time.monotonic()
        while time.monotonic() - waited < PATIENCE:
            if all(job.done(force_check=True) for job in self._jobs.values()):
                break
            time.sleep(PAUSE)
        self._jobs.clear()
        self._write_jobs()

    def _reports(self, run: RunKey) -> Iterator[TrainingEvent]:
        path = report_file(self._folder, run)
        if not path.is_file():
            return
        new = path.read_bytes()[self._read.get(run, 0) :]
        whole = new[: new.rfind(b"\n") + 1]
        self._read[run] = self._read.get(run, 0) + len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):  # a line that a kill cut short
                yield TrainingEvent(run=run, **json.loads(line))

    def _has_ended(self, run: RunKey, job: Any) -> bool:
        """Whether a job ended, so long ago that its file would be here."""
        preempted = str(job.state).startswith("PREEMPTED")
        if not (preempted or job.done()):
            self._ended.pop(run, None)
            return False
        first = self._ended.setdefault(run, time.monotonic())
        return time.monotonic() - first > (PREEMPTED_SECONDS if preempted else GRACE)

    def _end_of(self, run: RunKey, job: Any) -> TrainingEvent:
        state = str(job.state)
        if job.paths.result_pickle.exists():
            try:
                error = job.result()
            except Exception as told:  # it reached its time limit too often, or could not begin
                return TrainingEvent("error", run, error=_lost(run, job, str(told)))
            if error is not None:
                return TrainingEvent("error", run, error=error)
        if not self._local:
            job.cancel(check=False)  # a preempted one must not come back beside the next
        return TrainingEvent("died", run, error=_lost(run, job, f"it ended as {state}"))

    def _write_jobs(self) -> None:
        numbers = [] if self._local else [job.job_id for job in self._jobs.values()]
        write_text(self._folder / "jobs.json", json.dumps(numbers))

    def _cancel_leftovers(self, submitit: Any) -> None:
        """Cancel the jobs of a session that was killed: its trainings are submitted again."""
        path = self._folder / "jobs.json"
        with suppress(OSError, ValueError):
            for number in json.loads(path.read_text(encoding="utf-8")):
                submitit.SlurmJob(self._folder / "jobs", str(number)).cancel(check=False)


class SlurmTraining:
    """What a job does. Called again after a preemption or a time limit, it resumes."""

    def __init__(self, folder: Path, place: str) -> None:
        self.folder, self.place = folder, place

    def __call__(self, run: RunKey) -> BaseException | None:
        from submitit.core.utils import pickle_load

        def report(**event: Any) -> None:
            # To be watched is no condition of a training.
            path = report_file(self.folder, run)
            with suppress(OSError), path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")

        def on_epoch(_: RunKey, epoch: int, value: float) -> None:
            report(kind="epoch", epoch=epoch, value=value)

        report(kind="start", node=platform.node())
        with chdir(self.place):
            return attempt(run, pickle_load(self.folder / "study.pkl"), on_epoch)

    def checkpoint(self, run: RunKey) -> Any:
        """What submitit requeues: the same again, since its checkpoints are in its folder."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, run)


def report_file(folder: Path, run: RunKey) -> Path:
    """Where a job writes its machine and its epochs."""
    return folder / "reports" / f"{training_name(run)}.jsonl"


def load() -> Any:
    """submitit, if it is installed."""
    if importlib.util.find_spec("submitit") is None:
        raise HeadstartError("submitit is not installed", fix=INSTALL)
    import submitit

    return submitit


def _lost(run: RunKey, job: Any, what: str) -> HeadstartError:
    return HeadstartError(
        f"the job {job.job_id} of {run.arm}, {run.labels:,} labels, seed {run.seed} came to "
        f"nothing: {what}",
        where=job.paths.stderr,
        fix=f"see its log; where memory or time ran out, ask for more with --memory or "
        f"--time-limit; {GOES_ON}",
    )


EXECUTOR = SlurmExecutor()
