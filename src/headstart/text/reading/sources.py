"""What a path or a name stands for: its kind, its reader, and whether it is gzipped."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from headstart.errors import HeadstartError


class Reader(ABC):
    """Reads one kind of text that is neither a table nor plain text."""

    description: str  # shown to the user, so that they can check how a file was understood
    suffixes: tuple[str, ...] = ()  # files it reads, such as (".spm",); `.gz` behind it is allowed
    unit = "line"  # what one text is in messages: a line or a row

    def find_parts(self, folder: Path) -> dict[str, Path]:
        """The files of `train` and perhaps `validation` and `test`; empty for other folders."""
        return {}

    @abstractmethod
    def read_texts(self, source: "Source", encoding: str) -> Iterator[str]:
        """Yield the texts of a file, one by one."""

    def read_labelled(self, source: "Source", encoding: str) -> Iterator[tuple[str, str]]:
        """Yield (text, label) pairs; by default the files have no labels."""
        raise HeadstartError(
            f"{self.description} has no labels",
            where=source.name,
            fix="give unlabelled text with --corpus",
            code="no-labels",
        )


@cache
def readers() -> dict[str, Reader]:
    """Return the readers of other kinds of files, by name."""
    from headstart.lab.files import READER  # which imports this module

    return {"lab": READER}


# The kinds that are known here; every other kind is the name of a registered reader.
KINDS = ("csv", "tsv", "jsonl", "json", "parquet", "text", "embedded", "hub")
TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "hub")

EMBEDDED_NAMES = ("rotten-tomatoes", "imdb")

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".txt": "text",
    ".text": "text",
}
READABLE = ".csv, .tsv, .jsonl, .json, .parquet, .txt (each also .gz)"

# What people do have on their disks, and how it becomes something that can be read.
_CONVERSIONS = {
    ".xlsx": "open it in the spreadsheet program and save it as CSV (UTF-8)",
    ".xls": "open it in the spreadsheet program and save it as CSV (UTF-8)",
    ".ods": "open it in the spreadsheet program and save it as CSV (UTF-8)",
    ".docx": "save it as plain text (.txt, UTF-8)",
    ".pdf": "extract its text into a .txt file first",
    ".conll": "tagged sentences are for headstart finetune FILE --task tagging; "
    "other commands read tables",
    ".zip": "unpack it first",
    ".bz2": "unpack it first, or compress it with gzip",
    ".xz": "unpack it first, or compress it with gzip",
}


@dataclass(frozen=True)
class Source:
    """One thing to read from. `name` is what the user wrote and what messages repeat."""

    name: str
    kind: str
    path: Path | None = None
    gzipped: bool = False

    @property
    def file(self) -> Path:
        """The path, for kinds that have one."""
        assert self.path is not None, self
        return self.path

    @property
    def reader(self) -> Reader | None:
        """The registered reader of this kind; None for the kinds that need none."""
        return None if self.kind in KINDS else readers().get(self.kind)

    def row(self, number: int) -> str:
        """Where a row lies, in words: lines in files of lines, rows in tables."""
        if (reader := self.reader) is not None:
            return f"{self.name}, {reader.unit} {number}"
        return f"{self.name}, {'line' if self.kind in ('text', 'jsonl') else 'row'} {number}"


def find_parts(given: str | Path) -> dict[str, Source]:
    """The train, validation and test files of a folder whose form a reader knows, by part."""
    folder = Path(given).expanduser()
    if str(given) in EMBEDDED_NAMES or not folder.is_dir():
        return {}
    for name, reader in readers().items():
        if parts := reader.find_parts(folder):
            return {part: Source(str(path), name, path) for part, path in parts.items()}
    return {}


def has_parts(given: str) -> bool:
    """Whether a dataset brings its own parts, so that its test part can be told from the rest."""
    named = given in EMBEDDED_NAMES or given.startswith("hub:")
    return named or Path(given).expanduser().is_dir()


def find_source(given: str | Path) -> Source:
    """Say what one file or name is. A folder is not one source: see `find_sources`."""
    name = str(given)
    if name in EMBEDDED_NAMES:
        return Source(name, "embedded")
    if name.startswith("hub:"):
        return Source(name, "hub")
    path = Path(given).expanduser()
    if not path.exists():
        raise HeadstartError(
            f"there is no file or folder '{name}'",
            fix="check the spelling and the folder you are in; "
            f"built-in names are {', '.join(EMBEDDED_NAMES)}; "
            "a dataset on the Hugging Face Hub is written hub:owner/name",
        )
    if path.is_dir():
        raise HeadstartError(
            f"'{name}' is a folder, and one file was expected here",
            fix=_fix_for_folder(path),
        )
    kind, gzipped = check_kind(path)
    return Source(name, kind, path, gzipped)


def check_kind(path: Path) -> tuple[str, bool]:
    """The kind that a file's name promises, and whether it is gzipped; an unknown one is an error.

    Example
    -------
    >>> check_kind(Path("reviews.csv.gz"))
    ('csv', True)
    """
    kind, gzipped = kind_by_suffix(path)
    if kind is None:
        suffix = path.suffix.lower()
        raise HeadstartError(
            f"'{suffix}' files cannot be read" if suffix else "the file's kind is not known",
            where=str(path),
            fix=_CONVERSIONS.get(suffix, f"its name must tell its kind: {READABLE}"),
        )
    return kind, gzipped


def open_file(source: str, kind: Literal["text", "json"], *, fix: str) -> Source:
    """A file that is read as `kind` whatever its name ends in."""
    path = Path(source).expanduser()
    if not path.is_file():
        raise HeadstartError(f"there is no file '{source}'", fix=fix)
    return Source(source, kind, path, gzipped=path.suffix == ".gz")


def find_sources(given: str | Path) -> tuple[list[Source], list[str]]:
    """Every source that `given` stands for, and the files of a folder that were left out.

    In a folder, files without a suffix count as plain text: many collections have them.
    """
    path = Path(given).expanduser()
    if str(given) in EMBEDDED_NAMES or not path.is_dir():
        return [find_source(given)], []
    sources, left_out = [], []
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path)
        if not file.is_file() or any(part.startswith(".") for part in inside.parts):
            continue
        kind, gzipped = kind_by_suffix(file)
        if kind is None and not file.suffix:
            kind = "text"
        if kind is None:
            left_out.append(str(file))
        else:
            sources.append(Source(str(file), kind, file, gzipped))
    if not sources:
        raise HeadstartError(
            "the folder holds no readable file", where=str(given), fix=f"readable are {READABLE}"
        )
    return sources, left_out


def check_outside(folder: Path, given: Iterable[str | Path]) -> None:
    """Refuse to write into a folder that is read: its own files would become part of the data."""
    place = folder.expanduser().resolve()
    for one in given:
        read = Path(one).expanduser().resolve()
        if read.is_dir() and (read == place or read in place.parents):
            raise HeadstartError(
                f"this folder lies inside '{one}', which is read: the run's own files would be "
                "read with it",
                where=folder,
                fix="choose an --out outside of it",
            )


def kind_by_suffix(path: Path) -> tuple[str | None, bool]:
    """The kind that a file's name promises, and whether it is gzipped."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    if gzipped:
        suffixes.pop()
    if not suffixes:
        return None, gzipped
    return SUFFIXES.get(suffixes[-1]) or _kind_of_reader(suffixes[-1]), gzipped


def _kind_of_reader(suffix: str) -> str | None:
    return next((n for n, reader in readers().items() if suffix in reader.suffixes), None)


def _fix_for_folder(path: Path) -> str:
    names = sorted(file.name for file in path.iterdir() if kind_by_suffix(file)[0] in TABLES)
    as_corpus = f"as unlabelled text: --corpus {path}"
    if not names:
        return f"name a file with labels ({READABLE}); {as_corpus}"
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    return f"name the files ({shown}): TRAIN --validation FILE --test FILE; {as_corpus}"
