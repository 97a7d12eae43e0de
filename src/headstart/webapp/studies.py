"""The app's folder: studies with their uploads, found by ids and never by names.

server/               the lock of the server
studies/ID/           one study
    record.json       its name, its files and its settings
    files/            the uploads; commands run in it, so that messages name them as the user does
    inspect.json, …   what the commands printed
    study/            the folder of `headstart compare`
    predictions/      an uploaded file, and next to the folder predictions.csv

Commands of Headstart are processes, which any later server finds, shows and stops. A job has three
files: `KIND.json` is what the command printed, its result or its error; `KIND.log` has its
messages; `KIND.job` has the pid and the creation time of the process, because the system reuses
pids.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import psutil
from starlette.concurrency import run_in_threadpool

from headstart.data.sources import check_kind, find_source, open_unzipped
from headstart.errors import HeadstartError
from headstart.files import check_folder, read_object, write_json, write_text
from headstart.serve.http import too_large

RECORD = "record.json"
ID = re.compile(r"[0-9a-f]{12}")
_children: list["subprocess.Popen[bytes]"] = []  # which must be waited for when they have ended


def command_line(arguments: Sequence[str]) -> list[str]:
    """Return `headstart ARGUMENTS… --json` with this Python, whatever the shell's path is."""
    # -P: no module of the current folder is taken for one of ours.
    return [sys.executable, "-P", "-m", "headstart", *arguments, "--json"]


@dataclass(frozen=True)
class Job:
    """One command of a study, whose files are in its folder."""

    folder: Path
    kind: str  # inspect, plan, study or predict

    @property
    def output(self) -> Path:
        return self.folder / f"{self.kind}.json"

    @property
    def record(self) -> Path:
        return self.folder / f"{self.kind}.job"

    def start(self, arguments: Sequence[str], cwd: Path) -> None:
        """Run a command in a separate session: it continues when the server ends."""
        self.forget()
        _children[:] = [one for one in _children if one.poll() is None]
        with self.output.open("wb") as out, (self.folder / f"{self.kind}.log").open("wb") as log:
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
        with suppress(psutil.NoSuchProcess):
            if not at_once and not record["stopping"]:
                process.send_signal(signal.SIGINT)
                self._write({**record, "stopping": True})
                return
            for one in [*process.children(recursive=True), process]:
                with suppress(psutil.NoSuchProcess):
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
            return dict(json.loads(self.record.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    def _write(self, record: dict[str, Any]) -> None:
        write_text(self.record, json.dumps(record) + "\n")


@dataclass
class AppStudy:
    """A study in the app; its id is the name of its folder."""

    folder: Path
    name: str  # in the user's words; shown, never a path
    created: float
    files: dict[str, str]  # the uploads by role, data or corpus
    preview: dict[str, Any]  # what `preview.py` found
    settings: dict[str, Any] = field(default_factory=dict)  # of `StudyConfig`, as chosen

    @property
    def files_folder(self) -> Path:
        return self.folder / "files"

    @property
    def study_folder(self) -> Path:
        return self.folder / "study"

    @property
    def best(self) -> Path:
        """The classifier that the study saved."""
        return self.study_folder / "best"

    @property
    def task(self) -> str:
        """The task that was chosen, or that the file implies."""
        return str(self.settings.get("task") or self.preview["tasks"][0])

    def job(self, kind: str) -> Job:
        return Job(self.folder, kind)

    def state(self) -> str:
        """Return new, inspected, planned, running, stopping, stopped, failed or finished."""
        if job := self.job("study").document():
            return "finished" if job["state"] == "done" else str(job["state"])
        for kind, state in (("plan", "planned"), ("inspect", "inspected")):
            if (self.job(kind).document() or {}).get("state") == "done":
                return state
        return "new"

    def save(self) -> None:
        content = asdict(self)
        del content["folder"]
        write_json(self.folder / RECORD, content)


class Studies:
    """The studies of one app folder. One server at a time uses it."""

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.folder = folder / "studies"
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        for unfinished in self.folder.iterdir():
            if not (unfinished / RECORD).exists():  # of a server that was killed
                shutil.rmtree(unfinished, ignore_errors=True)

    def find(self, study_id: str) -> AppStudy:
        """Return the study with an id; anything else is an error."""
        folder = self.folder / study_id
        if not ID.fullmatch(study_id) or not (folder / RECORD).is_file():
            raise HeadstartError(
                "there is no such study", fix="it may have been deleted", code="unknown-study"
            )
        names = [one.name for one in fields(AppStudy)][1:]
        content = read_object(folder / RECORD, fix="delete the study", needs=names)
        return AppStudy(folder, **{name: content[name] for name in names})

    def all(self) -> list[AppStudy]:
        """Return every study, the newest first."""
        found = []
        for path in self.folder.iterdir():
            with suppress(HeadstartError):  # deleted meanwhile, or damaged: the others are shown
                found.append(self.find(path.name))
        return sorted(found, key=lambda study: -study.created)

    def delete(self, study: AppStudy) -> None:
        """Remove a study with its uploads; its commands are ended."""
        for kind in ("inspect", "plan", "predict"):
            study.job(kind).forget()
        (study.folder / RECORD).unlink()  # gone in one step
        shutil.rmtree(study.folder, ignore_errors=True)


def shown_name(given: str) -> str:
    """Return a name in one short line: no control characters, nothing of a path."""
    last = re.split(r"[/\\]", given)[-1]
    shown = "".join(c if c.isprintable() else " " for c in last).strip()
    return shown[-120:] or "unnamed"


def file_name(given: str) -> str:
    """Return the name under which an upload is saved: the user's, in a safe form.

    Example
    -------
    >>> file_name("../../hub:my reviews.CSV.gz")
    'hub_my reviews.CSV.gz'
    """
    shown = shown_name(given)
    check_kind(Path(shown))
    plain = re.sub(r"[^\w .()-]", "_", shown)
    # The disk counts bytes, and a command takes a name that starts with a hyphen for an option.
    return plain.encode()[-200:].decode(errors="ignore").lstrip(" .-")


async def save_upload(stream: AsyncIterator[bytes], path: Path, most: int) -> None:
    """Write an upload block by block; its size is limited, also when it is decompressed."""
    size = 0
    with path.open("wb") as file:
        async for block in stream:
            size += len(block)
            if size > most:
                raise too_large(most, path.name)
            file.write(block)
    await run_in_threadpool(_check_size, path, most)


def _check_size(path: Path, most: int) -> None:
    size = 0
    with open_unzipped(replace(find_source(path), name=path.name)) as file:
        while block := file.read(1 << 20):
            size += len(block)
            if size > most:
                raise too_large(most, path.name)
    if not size:
        raise HeadstartError("the file is empty", where=path.name)
