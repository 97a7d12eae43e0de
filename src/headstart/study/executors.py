"""Where the jobs of a study run: this process, processes of this machine, Ray, Slurm.

An executor has `submit(fn, *args) -> concurrent.futures.Future`, `events()` for the epochs that
jobs have reported, and `stop()`. `report` is the picklable function that jobs report them with; on
a cluster it does nothing.
"""

import io
import multiprocessing
import os
import pickle
import queue
import shutil
import signal
import tarfile
import tempfile
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from pathlib import Path
from typing import Any

from headstart.config import StudyConfig
from headstart.errors import HeadstartError, need_packages
from headstart.machine import choose_threads, usable_cores

MOST_JOBS = 4  # on this machine, where no number is given
CLUSTER_JOBS = 16  # on a cluster, where no number is given
JOB_MINUTES = 240  # of a Slurm job
LESS_MEMORY = "start the study again: it resumes; --jobs 1 needs the least memory"

_reports: Any = None  # of a worker process: the queue that its epochs go to


def parallel_jobs(config: StudyConfig) -> int:
    """Return how many jobs run at the same time."""
    if config.executor == "local":
        return config.jobs or min(choose_threads(config.threads), MOST_JOBS)
    return config.jobs or CLUSTER_JOBS


def job_threads(config: StudyConfig, jobs: int) -> int:
    """Return the threads of each job; its bits depend on their number."""
    if config.executor == "local":
        return max(1, choose_threads(config.threads) // jobs)
    return config.cores or 1


def pack(folders: dict[str, str]) -> bytes:
    """Return an archive of folders and files, each under a name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, place in folders.items():
            archive.add(place, arcname=name)
    return buffer.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Write the content of an archive into a folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(folder, filter="data")


def ignore(*event: object) -> None:
    """Receive an event and do nothing."""


class Executor:
    """Runs jobs. The base class runs each one in this process, when it is submitted."""

    def __init__(self, report: Callable[..., None] = ignore) -> None:
        self.report = report

    def submit(self, fn: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run a job: here at once, so that errors and interrupts are raised here."""
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future

    def ship(self, paths: dict[str, str]) -> Any:
        """Return what jobs are given in place of files of the study: here, their paths."""
        return paths

    def events(self) -> list[tuple[Any, ...]]:
        """Return the epochs that jobs elsewhere reported since the last call."""
        return []

    def stop(self) -> None:
        """End all jobs, also those that still run: finished ones are saved already."""


class LocalExecutor(Executor):
    """Run jobs in processes of this machine, which end with this one.

    Parameters
    ----------
    jobs : how many processes.
    folder : for their temporary files, which killed processes leave behind; `stop` removes it.
    """

    def __init__(self, jobs: int, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)  # of a driver that was killed, it is still there
        self._folder = folder
        spawn = multiprocessing.get_context("spawn")  # forked threads of PyTorch would hang
        super().__init__(_report)
        self._queue = spawn.Queue()
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=spawn, initializer=_start_worker, initargs=(self._queue, folder)
        )

    def submit(self, fn: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run it in a process that is free, or as soon as one is."""
        return self._pool.submit(_run_in_worker, fn, *args)

    def events(self) -> list[tuple[Any, ...]]:
        """Return what was reported since the last call."""
        found = []
        while True:
            try:
                found.append(self._queue.get_nowait())
            except queue.Empty:
                return found

    def stop(self) -> None:
        """End all processes, also those that still work: finished jobs are saved already."""
        workers = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
            worker.join()
        shutil.rmtree(self._folder, ignore_errors=True)


def _start_worker(reports: Any, folder: Path) -> None:
    global _reports
    _reports, tempfile.tempdir = reports, str(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _run_in_worker(fn: Callable[..., Any], *args: Any) -> Any:
    """Call it; an error that cannot be sent to the driver is replaced by its text."""
    try:
        return fn(*args)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            text = "".join(traceback.format_exception(error))
            raise RuntimeError(f"a job failed: {error}\n{text}") from None
        raise


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _report(*event: Any) -> None:
    _reports.put(event)


class RayExecutor(Executor):
    """Run jobs on a Ray cluster, or on one that is started here."""

    def __init__(self, config: StudyConfig) -> None:
        need_packages("ray", "ray")
        ray: Any = import_module("ray")
        super().__init__()
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = config.address or os.environ.get("RAY_ADDRESS")
        here = {} if address else {"num_cpus": usable_cores(), "include_dashboard": False}
        try:
            if not ray.is_initialized():
                ray.init(address=address or "local", log_to_driver=False, **here)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise HeadstartError(
                f"no Ray cluster can be used at {address or 'this machine'}: {error}",
                fix="start one with: ray start --head, and give its --address HOST:6379",
            ) from error
        memory = {"memory": config.memory * 1e9} if config.memory else {}
        self._options = {"num_cpus": config.cores or 1, "num_gpus": config.gpus or 0, **memory}
        self._ray = ray

    def ship(self, paths: dict[str, str]) -> Any:
        """Store an archive, once for all jobs: other machines do not have the study's folder."""
        return self._ray.put(pack(paths))

    def submit(self, fn: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Submit a task."""
        future: Future[Any] = self._ray.remote(**self._options)(fn).remote(*args).future()
        return future

    def stop(self) -> None:
        """Leave the cluster, which ends the tasks of this driver."""
        self._ray.shutdown()


class SlurmExecutor(Executor):
    """Run each job as a job of Slurm, through submitit; `--address local` tries it without."""

    def __init__(self, config: StudyConfig, jobs: int, folder: Path) -> None:
        need_packages("slurm", "submitit")
        submitit: Any = import_module("submitit")
        super().__init__()
        self._jobs: list[Any] = []
        cluster = "local" if config.address == "local" else "slurm"
        try:
            self._executor = submitit.AutoExecutor(folder / "executor", cluster=cluster)
        except RuntimeError as error:
            raise HeadstartError(
                f"this machine cannot submit jobs to Slurm: {error}",
                fix="start the study on a login node, or try it here with --address local",
            ) from error
        self._executor.update_parameters(
            name="headstart",
            cpus_per_task=config.cores or 1,
            gpus_per_node=config.gpus or 0,
            mem_gb=config.memory,
            timeout_min=config.time_limit or JOB_MINUTES,
            slurm_partition=config.partition,
        )
        self._threads = ThreadPoolExecutor(jobs)  # each waits for one job

    def submit(self, fn: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Submit a job."""
        job = self._executor.submit(fn, *args)
        self._jobs.append(job)
        return self._threads.submit(job.result)

    def stop(self) -> None:
        """Cancel the jobs that still wait or run."""
        for job in self._jobs:
            if not job.done():
                job.cancel(check=False)
        self._threads.shutdown(wait=False, cancel_futures=True)


def make_executor(
    config: StudyConfig, jobs: int, folder: Path, report: Callable[..., None]
) -> Executor:
    """Return the executor that a study asks for; `report` is for jobs in this process."""
    if config.executor == "ray":
        return RayExecutor(config)
    if config.executor == "slurm":
        return SlurmExecutor(config, jobs, folder)
    return Executor(report) if jobs == 1 else LocalExecutor(jobs, folder / "temporary")


def job_error(error: BaseException) -> BaseException:
    """Turn what ended a job into an error with a fix, where there is one."""
    if isinstance(error, BrokenProcessPool):
        what = "the system killed a training: it may have run out of memory"
        return HeadstartError(what, fix=LESS_MEMORY)
    if isinstance(error, MemoryError):
        return HeadstartError("a training ran out of memory", fix=LESS_MEMORY)
    return error
