"""What a path or a name stands for, the parts of a dataset, and text files as lines.

Lines are unzipped and decoded in constant memory. Bytes that are not text in the file's encoding do
not end the reading: they become lone surrogates, which `check_text` finds in the row that has them.
"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal

from headstart.errors import HeadstartError

Given = str | Path
Documents = Literal["line", "blank-line", "file"]

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
    ".conll": "conll",
    ".conllu": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".spm": "lab",
}
READABLE = ".csv, .tsv, .jsonl, .json, .txt (each also .gz), .parquet"

# How files of other formats become readable.
CONVERSIONS = {
    ".xlsx": "open it in the spreadsheet program and save it as CSV (UTF-8)",
    ".xls": "open it in the spreadsheet program and save it as CSV (UTF-8)",
    ".ods": "open it in the spreadsheet program and save it as CSV (UTF-8)",
    ".docx": "save it as plain text (.txt, UTF-8)",
    ".pdf": "extract its text into a .txt file first",
    ".zip": "unpack it first",
    ".bz2": "unpack it first, or compress it with gzip",
    ".xz": "unpack it first, or compress it with gzip",
}
PART_WORDS = {
    "train": ("train", "training"),
    # CoNLL's shared tasks call the files testa and testb.
    "validation": ("validation", "valid", "val", "dev", "development", "testa"),
    "test": ("test", "testing", "testb"),
}
LISTED = 6  # file names in a message
UNITS = {  # of the rows, in messages
    **{"text": "line", "jsonl": "line", "lab": "line"},
    **{"conll": "sentence", "squad": "question", "classes": "file"},
}


@dataclass(frozen=True)
class Source:
    """One thing to read from."""

    name: str  # what the user wrote; messages repeat it
    kind: str  # csv, tsv, jsonl, json, parquet, text, conll, squad, lab, classes, embedded or hub
    path: Path = Path()  # of the file, or of the folder of class folders
    gzipped: bool = False
    part: str = "train"  # of a dataset of the Hub
    documents: Documents = "line"  # what one text of plain text is

    def row(self, number: int, line: int | None = None) -> str:
        """Say where a row is: lines of text files, rows of tables, with their first line."""
        place = f"{self.name}, {UNITS.get(self.kind, 'row')} {number}"
        return place if line is None else f"{place} (line {line})"


def find_kind(path: Path) -> tuple[str | None, bool]:
    """Return the kind that a file's name implies, and whether it is gzipped.

    >>> find_kind(Path("reviews.csv.gz"))
    ('csv', True)
    """
    name = path.name.lower()
    return SUFFIXES.get(Path(name.removesuffix(".gz")).suffix), name.endswith(".gz")


def check_kind(path: Path) -> str:
    """Return the kind that a file's name implies; an unknown one is an error."""
    kind, suffix = find_kind(path)[0], path.suffix.lower()
    if kind is None:
        raise HeadstartError(
            f"'{suffix}' files cannot be read" if suffix else "the file's kind is not known",
            where=path,
            fix=CONVERSIONS.get(suffix, f"the name of a file must end in one of {READABLE}"),
        )
    return kind


def find_source(given: Given, kind: str | None = None, *, role: str | None = None) -> Source:
    """Say what one file, name or folder of class folders is; by default its name decides.

    `role` is what the user gave it as, for messages.
    """
    name, path = str(given), Path(given).expanduser()
    if kind is None and name in EMBEDDED_NAMES:
        return Source(name, "embedded")
    if kind is None and name.startswith("hub:"):
        return Source(name, "hub")
    if not path.exists():
        raise HeadstartError(
            f"there is no file or folder '{name}'",
            where=role,
            fix="check the spelling and the folder you are in; "
            f"built-in names are {', '.join(EMBEDDED_NAMES)}; "
            "a dataset on the Hugging Face Hub is written hub:owner/name",
        )
    if path.is_dir():
        if kind is None and find_classes(path):
            return Source(name, "classes", path)
        held = ", ".join(one.name for one in _entries(path)[:LISTED])
        raise HeadstartError(
            f"'{name}' is a folder, but one file is needed here",
            fix=f"name a file ({held or READABLE}); as unlabelled text: --corpus {path}",
        )
    return Source(name, kind or check_kind(path), path, find_kind(path)[1])


def find_sources(given: Given) -> tuple[list[Source], list[str]]:
    """Return the sources of unlabelled text that `given` stands for, and the unread files."""
    folder = Path(given).expanduser()
    if str(given) in EMBEDDED_NAMES or not folder.is_dir():
        return [find_source(given, role="the corpus (of compare and inspect: --corpus)")], []
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not re.search(r"(^|/)\.", file.relative_to(folder).as_posix())
    ]
    sources = [
        Source(str(file), kind, file, find_kind(file)[1])
        for file in files
        if (kind := _text_kind(file)) is not None
    ]
    if not sources:
        raise HeadstartError(
            "the folder contains no readable file", where=given, fix=f"readable are {READABLE}"
        )
    return sources, [str(file) for file in files if _text_kind(file) is None]


def _text_kind(path: Path) -> str | None:
    """Return the kind of a file of a folder of texts; one without a suffix is plain text."""
    return find_kind(path)[0] if path.suffix else "text"


def find_classes(folder: Path) -> dict[str, list[Path]]:
    """List the text files of each class, if the folder is one of `sklearn.datasets.load_files`."""
    classes = {
        one.name: [f for f in _entries(one) if f.is_file() and _text_kind(f) == "text"]
        for one in _entries(folder)
        if one.is_dir() and one.name not in ("unsup", "unlabeled", "unlabelled")
    }
    parts = all(map(part_of, classes))
    return classes if len(classes) > 1 and not parts and all(classes.values()) else {}


def find_parts(
    given: Sequence[Given],
    *,
    validation: Given | None = None,
    test: Given | None = None,
    kind: str | None = None,
) -> tuple[dict[str, list[Source]], list[str]]:
    """Find the sources of each part of a dataset: a folder, a file, a name, or several files.

    Words of a file's name decide, wherever they are: `train.csv`, `reviews_dev.tsv`, `eng.testb`.
    Returns the sources of train, validation and test, possibly none; and notes about what was made
    of a folder or of several files.
    """
    folder = Path(given[0]).expanduser()
    is_folder = len(given) == 1 and _has_files(given[0])
    if is_folder:
        given = [one for one in _entries(folder) if _fits(one, kind)]
    sources = [find_source(one, kind) for one in given]
    found = {part: [one for one in sources if part_of(one.name) == part] for part in PART_WORDS}
    parts = {part: _listed(files) for part, files in found.items() if files}
    notes = [
        "parts by the names of the files: "
        + "; ".join(f"{part} is {names}" for part, names in parts.items())
    ]
    if is_folder and not found["train"]:
        raise HeadstartError(
            f"the folder '{folder}' has no file called train; it contains "
            + (_listed(sources) or "no tables"),
            fix="call the files train, validation (or valid, dev) and test, or name them: "
            "TRAIN --validation FILE --test FILE; or make one subfolder per class; unlabelled "
            f"text is given with --corpus {folder}",
        )
    unnamed = any(part_of(one.name) is None for one in sources)
    if not is_folder and (unnamed or "train" not in parts or len(parts) == 1):
        found = {"train": sources, "validation": [], "test": []}
        notes = [f"{_listed(sources)} are read as one dataset"] if len(given) > 1 else []
    for part, path in {"validation": validation, "test": test}.items():
        if path is not None:
            found[part] = [*([] if is_folder else found[part]), find_source(path, kind)]
    for part, files in found.items():
        # Shards, as the Hugging Face Hub splits large files, are one part.
        stems = [Path(one.name).name.split(".")[0] for one in files]
        shards = all(re.search(r"-\d+-of-\d+$", stem) for stem in stems)
        if len(files) > 1 and not shards and (is_folder or part != "train"):
            raise HeadstartError(
                f"several files could be the {part} part: {_listed(files)}",
                where=folder if is_folder else None,
                fix="name the files: TRAIN --validation FILE --test FILE",
            )
    return found, notes


def part_of(name: Given) -> str | None:
    """Return the part that a file's name implies, if it implies one only.

    >>> part_of("data/reviews_dev.csv"), part_of("reviews.csv"), part_of("test-train.csv")
    ('validation', None, None)
    """
    words = set(re.split(r"[^a-z]+", Path(name).name.lower()))
    found = [part for part, names in PART_WORDS.items() if words & set(names)]
    return found[0] if len(found) == 1 else None


def has_parts(given: str) -> bool:
    """Whether a dataset comes with a test part, so that it is not one file of rows."""
    return given in EMBEDDED_NAMES or given.startswith("hub:") or _has_files(given)


def _has_files(given: Given) -> bool:
    """Whether a dataset is a folder with files, not one with a subfolder per class."""
    folder = Path(given).expanduser()
    return str(given) not in EMBEDDED_NAMES and folder.is_dir() and not find_classes(folder)


def check_outside(folder: Path, given: Iterable[Given]) -> None:
    """Reject writing into a folder that is read: its files would become part of the data."""
    place = folder.expanduser().resolve()
    for one in given:
        read = Path(one).expanduser().resolve()
        if read.is_dir() and (read == place or read in place.parents):
            raise HeadstartError(
                f"this folder is inside '{one}', which is read: the run's files would be read "
                "with it",
                where=folder,
                fix="choose an --out outside of that folder",
            )


def _fits(path: Path, kind: str | None) -> bool:
    """Whether a file, or a folder of class folders, can be a part of this kind of dataset."""
    if path.is_dir():
        return kind is None and bool(find_classes(path))
    found = find_kind(path)[0]
    if kind == "conll":  # their suffixes vary
        return found not in TABLES and not path.name.lower().startswith("readme")
    return found == "json" if kind == "squad" else found in (*TABLES, "lab")


def _entries(folder: Path) -> list[Path]:
    return [one for one in sorted(folder.iterdir()) if not one.name.startswith(".")]


def _listed(sources: Sequence[Source]) -> str:
    names = ", ".join(Path(source.name).name for source in sources[:LISTED])
    return names + (", …" if len(sources) > LISTED else "")


def hash_content(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


# Text files


# A long novel has 3 MB. What is longer than this is not one document but a mistake.
LONGEST_DOCUMENT = 16 << 20
BYTE_ORDER_MARKS = {  # name the encoding, whatever the user gave
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UNDECODABLE = 0xDC00  # a byte b that is not text is the lone surrogate UNDECODABLE + b
ERRORS = "headstart-surrogates"


def _as_surrogates(error: UnicodeError) -> tuple[str, int]:
    """Replace undecodable bytes; like `surrogateescape`, but for every byte and encoding."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    seen = error.object[error.start : error.end]
    return "".join(chr(UNDECODABLE + byte) for byte in seen), error.end


codecs.register_error(ERRORS, _as_surrogates)


@contextmanager
def open_unzipped(source: Source) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    """Open the unzipped bytes of a file."""
    try:
        with gzip.open(source.path) if source.gzipped else source.path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise HeadstartError(
            f"the gzip file is damaged or incomplete ({error})",
            where=source.name,
            fix="copy or download it again; `gzip -t FILE` checks it",
        ) from error


class Lines:
    """The lines of a text file without their ends; every iteration reads the file again.

    A line ends at a line feed, a carriage return or both. A line longer than `LONGEST_DOCUMENT` is
    cut off after that, which `check_text` reports.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self.source, self.encoding = source, encoding
        try:
            io.TextIOWrapper(io.BytesIO(), encoding)  # rejects rot13 and base64
        except LookupError:
            raise HeadstartError(
                f"there is no encoding named '{encoding}'",
                fix="common ones are utf-8, cp1252 (Windows, Western Europe), latin-1, utf-16, "
                "cp1251 (Cyrillic), shift_jis, gb18030, big5",
                code="encoding",
            ) from None

    @cached_property
    def start(self) -> str:
        """The beginning of the file, at most a million characters."""
        with self._open() as file:
            return file.read(1 << 20)

    def __iter__(self) -> Iterator[str]:
        with self._open() as file:
            while line := file.readline(LONGEST_DOCUMENT + 1):
                yield line.removesuffix("\n")
                while line and not line.endswith("\n"):  # the rest of a line that is too long
                    line = file.readline(LONGEST_DOCUMENT)

    def text(self, most: int = 1 << 30) -> str:
        """Read the whole file, up to `most` characters: a small gzip file may be endless."""
        with self._open() as file:
            whole = file.read(most + 1)
        if len(whole) > most:
            raise HeadstartError(
                f"the file is longer than {most >> 20:,} MB, too much to read at once",
                where=self.source.name,
                fix="write it as JSON Lines (.jsonl), one object per line; plain text of a "
                "corpus is read in smaller documents with --documents line or blank-line",
            )
        return whole

    @contextmanager
    def _open(self) -> Iterator[io.TextIOWrapper]:
        """Decode the file; a byte-order mark decides the encoding and is skipped."""
        with open_unzipped(self.source) as unzipped:
            start = unzipped.peek(4)
            marked = (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark))
            yield io.TextIOWrapper(unzipped, next(marked, self.encoding), ERRORS)


def check_text(value: object, encoding: str = "utf-8") -> str:
    """Return the text of a row, or raise what is wrong; the code of a blank one is "empty"."""
    if value in (None, "") or value != value or (isinstance(value, str) and value.isspace()):
        raise HeadstartError("the text is empty", fix="fill it in, or delete the row", code="empty")
    if not isinstance(value, str):
        raise HeadstartError(
            f"the text is not text but a {type(value).__name__} ({str(value)[:40]})",
            fix="choose another column with --text-column NAME",
            code="text-column",
        )
    if "\0" in value:
        raise HeadstartError(
            "a NUL character (U+0000): this is not a text file, or it is in another encoding",
            fix="save it as UTF-8 text, or name its encoding: --encoding utf-16",
            code="encoding",
        )
    if len(value) > LONGEST_DOCUMENT:
        raise too_long()
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = ord(value[error.start])
        if not 0 <= code - UNDECODABLE <= 255:
            raise HeadstartError(
                f"half of a surrogate pair (U+{code:04X}) in the text: no encoding can store it",
                fix="write the whole character; it was probably cut in two",
            ) from None
        raise HeadstartError(
            f"byte 0x{code - UNDECODABLE:02X} is not text in {encoding.upper()}",
            fix="name the file's encoding: --encoding cp1252 if it was made on Windows, otherwise "
            "latin-1, utf-16, cp1251 …",
            code="encoding",
        ) from None
    return value


def too_long() -> HeadstartError:
    """Make the error for one document above the limit."""
    return HeadstartError(
        f"one text here is longer than {LONGEST_DOCUMENT >> 20} MB",
        fix="split it into documents, one per line or row; in a CSV file, look for a quotation "
        "mark that opens just before and is never closed",
    )


def storable(value: Any) -> Any:
    """Replace what no UTF-8 file can hold by �, in a text or in texts."""
    if isinstance(value, list | tuple):
        return type(value)(map(storable, value))
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")
