"""The app's folder: studies with their uploads and records, found by ids and never by names.

key, address        the secret that the page's address carries; the address
server/             the lock of the server
studies/ID/         one study
    record.json     its name, its files, what was chosen, its process
    data.csv, …     the uploads, under names of our own
    inspection.json, plan.json    what the commands of these names found
    study/          the folder of `headstart compare`
"""

import json
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from headstart.errors import HeadstartError
from headstart.files import check_folder, read_object, write_text

RECORD, INSPECTION, PLAN = "record.json", "inspection.json", "plan.json"
ID = re.compile(r"[0-9a-f]{12}")
LONGEST_NAME = 120  # characters


def default_folder() -> Path:
    """Where the system keeps a user's data of programs."""
    return user_data_path("headstart", appauthor=False) / "app"


@dataclass
class AppStudy:
    """What is known of a study besides what its commands wrote."""

    folder: Path
    id: str
    name: str  # the user's words: shown, never a path
    created: float
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # data, corpus
    reading: dict[str, Any] = field(default_factory=dict)  # task and columns
    choices: dict[str, Any] = field(default_factory=dict)  # arms, labels, seeds, minutes
    arguments: list[str] = field(default_factory=list)  # of compare, once it was started
    process: dict[str, Any] | None = None  # the latest: pid, started, stopping

    @property
    def study_folder(self) -> Path:
        return self.folder / "study"

    @property
    def report(self) -> Path:
        return self.study_folder / "report.html"

    def path(self, role: str) -> Path:
        """The upload in this role."""
        return self.folder / str(self.files[role]["file"])

    def saved(self, name: str) -> dict[str, Any] | None:
        """What a command found, if it has been run since the last change."""
        path = self.folder / name
        return read_object(path, fix="look at the data again") if path.is_file() else None

    def save(self, name: str, document: dict[str, Any]) -> None:
        write_text(self.folder / name, json.dumps(document, ensure_ascii=False) + "\n")

    def forget(self, *names: str) -> None:
        """What was found no longer holds, because a choice was changed."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def in_plain_names(self, words: str) -> str:
        """A message with the user's file names instead of our paths."""
        for role, file in self.files.items():
            words = words.replace(str(self.path(role)), str(file["name"]))
            words = words.replace(f"{self.id}/{file['file']}", str(file["name"]))
        words = words.replace(f"{self.folder}/", "").replace(str(self.folder), "the study")
        return re.sub(r"predictions/input(\.\w+)+", "the file", words)


class Workspace:
    """The studies of one app folder. One server at a time uses it."""

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.folder = folder
        self.studies_folder = folder / "studies"
        self.studies_folder.mkdir(0o700, parents=True, exist_ok=True)  # private, like the key
        self._lock = threading.RLock()
        for unfinished in self.studies_folder.glob(".new-*"):  # uploads of a server that was killed
            shutil.rmtree(unfinished, ignore_errors=True)

    def key(self) -> str:
        """The secret of this folder, made once."""
        path = self.folder / "key"
        if not path.is_file():
            self.keep_secret("key", secrets.token_urlsafe(24))
        return path.read_text(encoding="utf-8").strip()

    def keep_secret(self, name: str, words: str) -> None:
        """Write a file that only its owner can read."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(words + "\n", encoding="utf-8")

    def new_folder(self) -> tuple[str, Path]:
        """An id, and a folder that `add` turns into a study."""
        made = secrets.token_hex(6)
        folder = self.studies_folder / f".new-{made}"
        folder.mkdir()
        return made, folder

    def add(self, study_id: str, name: str, files: dict[str, dict[str, Any]]) -> AppStudy:
        """Make a study of a new folder whose uploads are whole."""
        folder = self.studies_folder / study_id
        study = AppStudy(folder, study_id, clean_name(name), time.time(), files)
        place = self.studies_folder / f".new-{study_id}"
        _write(study, place)
        place.rename(folder)
        return study

    def find(self, study_id: str) -> AppStudy:
        """The study of an id; everything else is unknown, whatever it looks like."""
        folder = self.studies_folder / study_id
        if not ID.fullmatch(study_id) or not (folder / RECORD).is_file():
            raise UnknownStudyError("there is no such study", fix="it may have been deleted")
        content = read_object(folder / RECORD, fix="delete the study", needs=("name", "created"))
        known = {name: content[name] for name in AppStudy.__dataclass_fields__ if name in content}
        return AppStudy(**{**known, "folder": folder, "id": study_id})

    def all(self) -> list[AppStudy]:
        """Every study, the newest first."""
        folders = [path.name for path in self.studies_folder.iterdir() if ID.fullmatch(path.name)]
        found = []
        for name in folders:
            try:
                found.append(self.find(name))
            except HeadstartError:  # deleted meanwhile, or damaged: the others are shown
                continue
        return sorted(found, key=lambda study: -study.created)

    def change(self, study_id: str, change: Callable[[AppStudy], None]) -> AppStudy:
        """Change a study's record; two tabs come one after the other."""
        with self._lock:
            study = self.find(study_id)
            change(study)
            _write(study, study.folder)
            return study

    def delete(self, study_id: str) -> None:
        """Remove a study with its uploads."""
        with self._lock:
            folder = self.find(study_id).folder
            aside = folder.with_name(f".new-{study_id}")  # gone in one step
            folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)


class UnknownStudyError(HeadstartError):
    """An id that no study has."""


def clean_name(name: str) -> str:
    """A name in one short line: no control characters, nothing of a path."""
    last = re.split(r"[/\\]", name)[-1]
    shown = "".join(c if c.isprintable() else " " for c in last).strip()
    return shown[:LONGEST_NAME] or "unnamed"


def _write(study: AppStudy, folder: Path) -> None:
    content = asdict(study)
    del content["folder"]
    write_text(folder / RECORD, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
