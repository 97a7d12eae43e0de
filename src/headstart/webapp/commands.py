"""Headstart's own commands as processes: what is heavy runs beside the server, not in it."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError

Finished = Callable[[dict[str, Any]], None]
LAST_BYTES = 4_000  # of what a command printed: its latest progress
BROKEN = {
    "what": "the command ended without an answer",
    "where": None,
    "fix": "try again; it may have run out of memory",
    "code": "memory",
}


def command_line(arguments: Sequence[str]) -> list[str]:
    """`headstart ARGUMENTS… --json` with this Python, whatever the shell's path is."""
    # -P: no module of the folder in which the app was started is taken for one of ours.
    return [sys.executable, "-P", "-m", "headstart", *arguments, "--json"]


@dataclass
class CommandJob:
    """A command under way: its latest line of progress, then its error or nothing."""

    process: "subprocess.Popen[bytes]"
    log: Path
    started: float = field(default_factory=time.time)
    ended: float | None = None
    error: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """How far it is, for the page."""
        done = self.ended is not None
        state = "running" if not done else "failed" if self.error else "done"
        seconds = round((self.ended or time.time()) - self.started)
        progress = "" if done else last_line(self.log)
        return {"state": state, "seconds": seconds, "progress": progress, "error": self.error}


class CommandJobs:
    """The short commands of all studies: at most one of each kind for each study."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], CommandJob] = {}
        self._lock = threading.RLock()

    def start(
        self, study_id: str, kind: str, arguments: Sequence[str], folder: Path, finished: Finished
    ) -> None:
        """Run a command; one of this kind that is still running is ended first.

        Parameters
        ----------
        study_id, kind : what it is for.
        arguments : the command and its options.
        folder : where its output is kept while it runs.
        finished : is given the document that it printed.
        """
        with self._lock:
            self.stop(study_id, kind)
            out, log = folder / f".{kind}.out", folder / f".{kind}.log"
            with out.open("wb") as stdout, log.open("wb") as stderr:
                process = subprocess.Popen(
                    command_line(arguments), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
                )
            job = self._jobs[study_id, kind] = CommandJob(process, log)
        waiting = threading.Thread(target=self._wait, args=(job, out, finished), daemon=True)
        waiting.start()

    def document(self, study_id: str, kind: str) -> dict[str, Any] | None:
        """How far a command is; None where there was none since the server began."""
        job = self._jobs.get((study_id, kind))
        return None if job is None else job.document()

    def stop(self, study_id: str, kind: str | None = None) -> None:
        """End the commands of a study and forget them."""
        with self._lock:
            for key in [k for k in self._jobs if k[0] == study_id and kind in (None, k[1])]:
                job = self._jobs.pop(key)
                if job.process.poll() is None:
                    job.process.kill()
                    job.process.wait()

    def stop_all(self) -> None:
        """End everything; for the end of the server."""
        for study_id, _ in list(self._jobs):
            self.stop(study_id)

    def _wait(self, job: CommandJob, out: Path, finished: Finished) -> None:
        job.process.wait()
        with self._lock:
            if job not in self._jobs.values():
                return  # it was ended, and another one may have its files
            try:
                document = read_answer(out)
                job.error = document.get("error") if "error" in document else None
                if job.error is None:
                    finished(document)
            except HeadstartError as error:
                job.error = error.document()
            except OSError:  # the study was deleted, or its disk is full
                job.error = BROKEN
            job.ended = time.time()


def read_answer(path: Path) -> dict[str, Any]:
    """The document that a command printed."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    except ValueError:
        return {"error": BROKEN}


def read_error(path: Path) -> dict[str, Any] | None:
    """The error that a command printed, if it did."""
    if not path.is_file() or not path.stat().st_size:
        return None
    return read_answer(path).get("error")


def last_line(path: Path) -> str:
    """The latest line that a command printed for people."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LAST_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
