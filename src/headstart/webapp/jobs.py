"""Commands of Headstart as processes, which any later server finds, shows and stops.

A job has three files: `KIND.json` is what the command printed, its result or its error; `KIND.log`
has its messages; `KIND.job` says which process it is. A pid is used again by the system, so that
the time of its creation is compared, too.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headstart.files import write_text

_children: list["subprocess.Popen[bytes]"] = []  # which must be waited for when they have ended


def command_line(arguments: Sequence[str]) -> list[str]:
    """Return `headstart ARGUMENTS… --json` with this Python, whatever the shell's path is."""
    # -P: no module of the current folder is taken for one of ours.
    return [sys.executable, "-P", "-m", "headstart", *arguments, "--json"]


@dataclass(frozen=True)
class Job:
    """One command of a study.

    Parameters
    ----------
    folder : where its files are.
    kind : which command it is: inspect, plan, study or predict.
    """

    folder: Path
    kind: str

    @property
    def output(self) -> Path:
        return self.folder / f"{self.kind}.json"

    @property
    def record(self) -> Path:
        return self.folder / f"{self.kind}.job"

    def start(self, arguments: Sequence[str], cwd: Path) -> None:
        """Run a command in a session of its own: it goes on when the server ends."""
        self.forget()
        _children[:] = [one for one in _children if one.poll() is None]
        log_file = self.folder / f"{self.kind}.log"
        with self.output.open("wb") as out, log_file.open("wb") as log:
            process = subprocess.Popen(
                command_line(arguments),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                cwd=cwd,
                start_new_session=True,
            )
        _children.append(process)
        created = psutil.Process(process.pid).create_time()
        self._write({"pid": process.pid, "created": created, "stopping": False})

    def stop(self, *, at_once: bool = False) -> None:
        """Let the command save what it has and end; asked again, or `at_once`, kill it."""
        process, record = self._process(), self._read()
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            if not at_once and not record["stopping"]:
                process.send_signal(signal.SIGINT)
                self._write({**record, "stopping": True})
                return
            for one in [*process.children(recursive=True), process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            process.wait(10)

    def forget(self) -> None:
        """End the command and delete what it found."""
        self.stop(at_once=True)
        for path in (self.record, self.output):
            path.unlink(missing_ok=True)

    @property
    def is_running(self) -> bool:
        return self._process() is not None

    def document(self) -> dict[str, Any] | None:
        """Return its state (running, stopping, stopped, failed or done) with result or error."""
        record = self._read()
        if not record:
            return None
        if self.is_running:
            return {
                "state": "stopping" if record["stopping"] else "running",
                "seconds": round(time.time() - record["created"]),
            }
        try:
            printed = json.loads(self.output.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # it was stopped or killed
            return {"state": "stopped"}
        if "error" in printed:
            return {"state": "failed", "error": printed["error"]}
        return {"state": "done", "result": printed}

    def _process(self) -> psutil.Process | None:
        """Return the process that was written down, if it is still that one."""
        record = self._read()
        try:
            process = psutil.Process(record["pid"])
            same = abs(process.create_time() - record["created"]) < 1
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except (KeyError, psutil.Error):  # there was none, it has ended, or it is another user's
            return None

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.record.read_text(encoding="utf-8"))
            return found
        except (OSError, ValueError):
            return {}

    def _write(self, record: dict[str, Any]) -> None:
        write_text(self.record, json.dumps(record) + "\n")
