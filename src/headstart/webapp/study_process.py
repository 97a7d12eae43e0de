"""A study as a process of its own: started, found again after a restart of the server, stopped.

It runs in a session of its own, so that neither the end of the server nor a closed terminal ends
it. Before anything is signalled, pid and start time are compared with those that were written down:
a pid is used again by the system, both together are not.
"""

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil

from headstart.errors import HeadstartError
from headstart.webapp.commands import command_line, read_error
from headstart.webapp.workspace import AppStudy, Workspace

ANSWER, LOG = "answer.json", "log.txt"


class StudyConflictError(HeadstartError):
    """What cannot be done now, because something else is under way."""


class StudyProcesses:
    """Starts and stops the studies of a workspace, one at a time."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.RLock()

    def start(self, study_id: str, arguments: list[str]) -> None:
        """Begin or resume a study. A study that is running stays as it is."""
        with self._lock:
            study = self.workspace.find(study_id)
            if self.is_running(study):
                return
            for other in self.workspace.all():
                if self.is_running(other):
                    raise StudyConflictError(
                        f"another study is running: {other.name}",
                        fix="wait until it is done, or stop it first: two at once would both be "
                        "slow, and their times wrong",
                    )
            folder = study.folder
            with (folder / ANSWER).open("wb") as out, (folder / LOG).open("ab") as log:
                process = subprocess.Popen(
                    command_line(arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=log,
                    start_new_session=True,
                )
            self._children[process.pid] = process
            seen = {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}

            def record(one: AppStudy) -> None:
                one.arguments = arguments
                one.process = {**seen, "stopping": False, "since": time.time()}

            self.workspace.change(study_id, record)

    def is_running(self, study: AppStudy) -> bool:
        """Whether the study's process is alive."""
        return self._find(study.process) is not None

    @contextlib.contextmanager
    def at_rest(self, study_id: str) -> Iterator[AppStudy]:
        """A study that does not run, and is not started within the block."""
        with self._lock:
            study = self.workspace.find(study_id)
            if self.is_running(study):
                raise StudyConflictError("this study is running", fix="stop it first")
            yield study

    def stop(self, study_id: str) -> None:
        """Let a study save what it has and end; asked again, end it at once."""
        with self._lock:
            study = self.workspace.find(study_id)
            process = self._find(study.process)
            if process is None or study.process is None:
                return
            if study.process.get("stopping"):
                end_at_once(process)
                return
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGINT)

            def record(one: AppStudy) -> None:
                if one.process is not None:
                    one.process["stopping"] = True

            self.workspace.change(study_id, record)

    def state(self, study: AppStudy) -> tuple[str, dict[str, Any] | None]:
        """Where a study that was started stands, and its error if it failed."""
        if self.is_running(study):
            assert study.process is not None
            return ("stopping" if study.process.get("stopping") else "running"), None
        if study.process is None:
            return "new", None
        error = read_error(study.folder / ANSWER)
        if error is not None:
            return "failed", error
        return ("finished" if study.report.is_file() else "stopped"), None

    def _find(self, seen: dict[str, Any] | None) -> psutil.Process | None:
        """The process that was written down, if it is still that one."""
        if not seen:
            return None
        child = self._children.get(seen["pid"])
        if child is not None and child.poll() is not None:
            self._children.pop(seen["pid"], None)  # reaped: its pid is free now
            return None
        try:
            process = psutil.Process(seen["pid"])
            same = abs(process.create_time() - seen["started"]) < 1
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:  # it has ended, or is another user's
            return None


def end_at_once(process: psutil.Process) -> None:
    """Kill a process and those that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
