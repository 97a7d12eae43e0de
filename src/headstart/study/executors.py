"""Where the jobs of a study run: this process, processes of this machine, Ray, Dask, Slurm.

An executor has `submit(fn, *args) -> Future`, `ship(paths)` for the files that jobs read,
`events()` for the epochs that they have reported with `report` (None on a cluster), and `stop()`.
Clusters repeat jobs that were lost, but not those that failed: their errors are results.
"""

import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from headstart.config import StudyConfig
from headstart.errors import HeadstartError, need_packages
from headstart.machine import usable_cores
from headstart.study.jobs import attempt, pack

Function = Callable[..., Any]
RETRIES = 3  # of a job whose process or machine was lost
CONNECT_SECONDS = 10

_reports: Any = None  # of a worker process: the queue that its epochs go to


def result_of(future: Future[Any]) -> Any:
    """Return the result of a job, or raise what ended it."""
    try:
        found = future.result()
    except Exception as error:  # of the engine: those of jobs are results
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise HeadstartError(
            f"a training was lost; it may have run out of memory: {reason}",
            fix="start the study again: it resumes; --jobs 1 needs the least memory",
        ) from error
    if isinstance(found, Exception):
        raise found
    return found


class Executor:
    """Runs jobs. The base class runs each one in this process, when it is submitted."""

    report: Function | None = None

    def __init__(self, report: Function) -> None:
        self.report = report

    def submit(self, fn: Function, *args: Any) -> Future[Any]:
        """Run a job: here at once, so that errors and interrupts are raised here."""
        future = Future[Any]()
        future.set_result(fn(*args))
        return future

    def ship(self, paths: dict[str, str]) -> Any:
        """Return what jobs receive instead of the study's files: here, their paths."""
        return paths

    def events(self) -> list[tuple[Any, ...]]:
        """Return the epochs that jobs elsewhere reported since the last call."""
        return []

    def stop(self) -> None:
        """End all jobs, also those that still run: finished ones are saved already."""


class LocalExecutor(Executor):
    """Run jobs in processes of this machine; `stop` removes their temporary files, too."""

    def __init__(self, jobs: int, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)  # of a driver that was killed, it is still there
        spawn = multiprocessing.get_context("spawn")  # forked threads of PyTorch would hang
        self.report, self._folder, self._queue = _report, folder, spawn.SimpleQueue()
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=spawn, initializer=_start_worker, initargs=(self._queue, folder)
        )

    def submit(self, fn: Function, *args: Any) -> Future[Any]:
        return self._pool.submit(attempt, fn, *args)

    def events(self) -> list[tuple[Any, ...]]:
        found = []
        while not self._queue.empty():
            found.append(self._queue.get())
        return found

    def stop(self) -> None:
        workers = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
            worker.join()
        shutil.rmtree(self._folder, ignore_errors=True)


def _start_worker(reports: Any, folder: Path) -> None:
    global _reports
    _reports, tempfile.tempdir = reports, str(folder)
    for number in (signal.SIGINT, signal.SIGTERM):  # which a group receives: they are the driver's
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _report(*event: Any) -> None:
    _reports.put(event)


@contextmanager
def _connecting(what: str, how: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise HeadstartError(f"{what} cannot be used: {error}", fix=f"start it: {how}") from error


class RayExecutor(Executor):
    """Run jobs as tasks of a Ray cluster, or of one that is started here."""

    def __init__(self, config: StudyConfig) -> None:
        need_packages("ray", "ray")
        self._ray: Any = import_module("ray")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = config.address or os.environ.get("RAY_ADDRESS")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if not address:
            options |= {"num_cpus": usable_cores(), "include_dashboard": False}
        with _connecting(f"Ray at {address or 'local'}", "ray start --head; --address HOST:6379"):
            host, _, port = (address or "").rpartition("/")[2].rpartition(":")
            if port.isdigit():  # Ray itself tries it for minutes
                socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
            if not self._ray.is_initialized():
                self._ray.init(address or "local", **options)
        self._task = self._ray.remote(
            max_retries=RETRIES,
            num_cpus=config.cores or 1,
            memory=config.memory and config.memory * 1e9,
        )(attempt)

    def submit(self, fn: Function, *args: Any) -> Future[Any]:
        return self._task.remote(fn, *args).future()

    def ship(self, paths: dict[str, str]) -> Any:
        """Store the files, once for all jobs: other machines do not have the study's folder."""
        return self._ray.put(pack(paths))

    def stop(self) -> None:
        self._ray.shutdown()  # ends the tasks of this driver


class DaskExecutor(Executor):
    """Run jobs as tasks of a Dask cluster, or of one that is started here."""

    def __init__(self, config: StudyConfig) -> None:
        need_packages("dask", "distributed")
        address = config.address or os.environ.get("DASK_SCHEDULER_ADDRESS")
        here = {
            "n_workers": max(1, usable_cores() // (config.cores or 1)),
            "threads_per_worker": 1,
            "dashboard_address": "127.0.0.1:0",
            "silence_logs": logging.CRITICAL,
            # Ctrl-C is the driver's.
            "preload": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
        }
        with _connecting(f"Dask at {address or 'local'}", "dask scheduler; --address HOST:8786"):
            client = import_module("distributed").Client
            self._client = client(address, timeout=CONNECT_SECONDS, **({} if address else here))
        self._pool = self._client.get_executor(retries=RETRIES, pure=False)

    def submit(self, fn: Function, *args: Any) -> Future[Any]:
        return self._pool.submit(attempt, fn, *args)

    def ship(self, paths: dict[str, str]) -> Any:
        """Make the files the result of a task: unlike scattered data, Dask can restore it."""
        return self._client.submit(pickle.loads, pickle.dumps(pack(paths)), pure=False)

    def stop(self) -> None:
        self._pool.shutdown(wait=False)
        self._client.close()


class SlurmExecutor(Executor):
    """Run jobs on Slurm, which repeats lost ones, by submitit; `--address local` runs them here."""

    def __init__(self, config: StudyConfig, folder: Path) -> None:
        need_packages("slurm", "submitit")
        submitit: Any = import_module("submitit")
        self._folder, self._running = folder, dict[Future[Any], Any]()
        with _connecting("Slurm", "on a login node, or with --address local"):
            self._executor = submitit.AutoExecutor(folder, cluster=config.address or "slurm")
        self._executor.update_parameters(
            name="headstart",
            cpus_per_task=config.cores or 1,
            mem_gb=config.memory,
            timeout_min=config.time_limit or 240,
            slurm_partition=config.partition,
        )

    def submit(self, fn: Function, *args: Any) -> Future[Any]:
        future = Future[Any]()
        with _connecting("Slurm", "with another --partition, --time-limit, --cores or --memory"):
            self._running[future] = self._executor.submit(attempt, fn, *args)
        return future

    def events(self) -> list[tuple[Any, ...]]:
        """Complete the futures of jobs that have ended."""
        for future, job in [*self._running.items()]:
            if job.done():
                del self._running[future]
                try:
                    future.set_result(job.result())
                except Exception as error:  # lost without a result: those of jobs are results
                    future.set_exception(error)
        return []

    def stop(self) -> None:
        for job in self._running.values():
            job.cancel(check=False)
        shutil.rmtree(self._folder, ignore_errors=True)


def make_executor(config: StudyConfig, jobs: int, folder: Path, report: Function) -> Executor:
    """Return the executor that a study asks for; `report` is for jobs in this process."""
    if config.executor == "ray":
        return RayExecutor(config)
    if config.executor == "dask":
        return DaskExecutor(config)
    if config.executor == "slurm":
        return SlurmExecutor(config, folder / "temporary")
    return Executor(report) if jobs == 1 else LocalExecutor(jobs, folder / "temporary")
