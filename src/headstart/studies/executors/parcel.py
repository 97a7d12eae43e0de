"""What a training reads and writes, as bytes, for machines that do not have the study's folder.

There: tokenizer, bases and counted vectors. Back: the finished training's file and, if it may
become the best one, its run folder, whose texts name the study's own paths again. A machine has the
study's folder if it finds the marker in it.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headstart.files import replacing, write_text
from headstart.studies.outcomes import RunKey, training_file

if TYPE_CHECKING:
    from headstart.studies.context import StudyContext

MARKER = "executor.id"
TEXTS = (".json", ".jsonl", ".md", ".toml")
TOKENIZERS = ("tokenizer.json", "vocabulary.json")  # large, and without any path
NOT_READ = ("checkpoints", "metrics.jsonl")  # of a base: what only its own training needs


def write_marker(folder: Path) -> str:
    """Mark the study's folder with a name that no other has; returns the name."""
    name = uuid.uuid4().hex
    write_text(folder / MARKER, name)
    return name


def forget_marker(folder: Path) -> None:
    (folder / MARKER).unlink(missing_ok=True)


def sees_folder(folder: Path, marker: str) -> bool:
    """Whether this is the folder that was marked, and not another of the same name."""
    try:
        return (folder / MARKER).read_text(encoding="utf-8") == marker
    except OSError:
        return False


def pack(study: StudyContext) -> bytes:
    """Everything that trainings of the study read from files, as an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number, place in enumerate(_places(study)):
            if Path(place).exists():
                archive.add(place, arcname=str(number), filter=_only_what_is_read)
    return buffer.getvalue()


@contextmanager
def unpacked(archive: bytes, study: StudyContext) -> Iterator[StudyContext]:
    """The study in a temporary folder, with the files of the archive in their new places."""
    with tempfile.TemporaryDirectory(prefix="headstart-") as name:
        folder = Path(name)
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            opened.extractall(folder / "inputs", filter="data")
        moved = {place: folder / "inputs" / str(n) for n, place in enumerate(_places(study))}

        def there(place: str) -> str:
            return str(moved[place]) if moved[place].exists() else place

        bases = {name: [there(place) for place in some] for name, some in study.bases.items()}
        yield replace(
            study,
            folder=folder / "study",
            bases=bases,
            tokenizer=there(study.tokenizer),
            vectors=there(study.vectors),
        )


@dataclass(frozen=True)
class Parcel:
    """What a training wrote."""

    run: RunKey
    record: bytes  # its file
    folder: bytes | None  # an archive of its run folder

    @classmethod
    def of_training(cls, run: RunKey, moved: StudyContext, study: StudyContext) -> Parcel:
        """A finished training of the study that was moved to a temporary place."""
        made, archive = moved.run_folder(run), None
        if moved.for_run(run).may_be_best and made.is_dir():
            _move_back(made, moved, study)
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w") as opened:
                opened.add(made, arcname=made.name)
            archive = buffer.getvalue()
        return cls(run, training_file(moved.folder, run).read_bytes(), archive)

    def bring_to(self, study: Path) -> None:
        """Write it into the study's folder; the file that counts comes last."""
        if self.folder is not None:
            with tarfile.open(fileobj=io.BytesIO(self.folder)) as opened:
                opened.extractall(study / "runs", filter="data")
        path = training_file(study, self.run)
        with replacing(path) as temporary:
            temporary.write_bytes(self.record)


def _places(study: StudyContext) -> list[str]:
    """The paths in a fixed order, each once."""
    bases = [place for some in study.bases.values() for place in some]
    return list(dict.fromkeys([study.tokenizer, study.vectors, *bases]))


def _move_back(folder: Path, moved: StudyContext, study: StudyContext) -> None:
    """Let the texts of a run folder name the study's own paths."""
    names = dict(zip(_places(moved), _places(study), strict=True))
    names[str(moved.folder)] = str(study.folder)
    longest_first = sorted(names.items(), key=lambda name: -len(name[0]))  # 1 begins 10
    for path in folder.rglob("*"):
        if path.suffix in TEXTS and path.name not in TOKENIZERS:
            text = path.read_text(encoding="utf-8")
            for now, own in longest_first:
                text = text.replace(now, own if path.suffix == ".md" else json.dumps(own)[1:-1])
            path.write_text(text, encoding="utf-8")


def _only_what_is_read(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(info.name).name in NOT_READ else info
