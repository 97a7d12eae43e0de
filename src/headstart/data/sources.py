"""What a path or a name stands for: its kind, the parts of a dataset, and a hash of its content."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from headstart.errors import HeadstartError

Given = str | Path

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
READABLE = ".csv, .tsv, .jsonl, .json, .parquet, .txt (each also .gz)"

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
SHARD = re.compile(r"-\d+-of-\d+$")  # as the Hugging Face Hub splits large files
UNLABELLED = ("unsup", "unlabeled", "unlabelled")  # folders of texts without a class
LAB_FILES = {"train": "train", "validation": "valid", "test": "test"}
LISTED = 6  # file names in a message


@dataclass(frozen=True)
class Source:
    """One thing to read from.

    Parameters
    ----------
    name : what the user wrote; messages repeat it.
    kind : csv, tsv, jsonl, json, parquet, text, conll, squad, lab, classes, embedded or hub.
    path : the file, or the folder of class folders; none for names.
    gzipped : whether the file is compressed.
    """

    name: str
    kind: str
    path: Path | None = None
    gzipped: bool = False

    @property
    def file(self) -> Path:
        """The path, for kinds that have one."""
        assert self.path is not None, self
        return self.path

    def row(self, number: int, line: int | None = None) -> str:
        """Say where a row is: lines of text files, rows of tables, with their first line."""
        units = {"text": "line", "jsonl": "line", "lab": "line"}
        units |= {"conll": "sentence", "squad": "question", "classes": "file"}
        place = f"{self.name}, {units.get(self.kind, 'row')} {number}"
        return place if line is None else f"{place} (line {line})"


class PartSources(NamedTuple):
    """The sources of each part; parts without one are split off the training rows.

    `notes` say in words what was made of a folder or of several files.
    """

    train: list[Source]
    validation: Source | None = None
    test: Source | None = None
    notes: tuple[str, ...] = ()


def find_kind(path: Path) -> tuple[str | None, bool]:
    """Return the kind that a file's name implies, and whether it is gzipped.

    Example
    -------
    >>> find_kind(Path("reviews.csv.gz"))
    ('csv', True)
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    if gzipped:
        suffixes.pop()
    return (SUFFIXES.get(suffixes[-1]) if suffixes else None), gzipped


def check_kind(path: Path) -> tuple[str, bool]:
    """Return what `find_kind` returns; an unknown kind is an error."""
    kind, gzipped = find_kind(path)
    if kind is None:
        suffix = path.suffix.lower()
        raise HeadstartError(
            f"'{suffix}' files cannot be read" if suffix else "the file's kind is not known",
            where=path,
            fix=CONVERSIONS.get(suffix, f"its name must end in its kind: {READABLE}"),
        )
    return kind, gzipped


def find_source(given: Given, kind: str | None = None) -> Source:
    """Say what one file, name or folder of class folders is.

    Parameters
    ----------
    given : a path, an embedded name or `hub:owner/name`.
    kind : the kind to read it as, whatever its name ends in; by default its name decides.
    """
    name, path = str(given), Path(given).expanduser()
    if kind is None and name in EMBEDDED_NAMES:
        return Source(name, "embedded")
    if kind is None and name.startswith("hub:"):
        return Source(name, "hub")
    if not path.exists():
        raise HeadstartError(
            f"there is no file or folder '{name}'",
            fix="check the spelling and the folder you are in; "
            f"built-in names are {', '.join(EMBEDDED_NAMES)}; "
            "a dataset on the Hugging Face Hub is written hub:owner/name",
        )
    if path.is_dir():
        if kind is None and find_classes(path):
            return Source(name, "classes", path)
        raise HeadstartError(
            f"'{name}' is a folder, and one file was expected here",
            fix=f"name a file ({_listed(_entries(path))}); as unlabelled text: --corpus {path}",
        )
    if kind is not None:
        return Source(name, kind, path, path.suffix.lower() == ".gz")
    found, gzipped = check_kind(path)
    return Source(name, found, path, gzipped)


def find_sources(given: Given) -> tuple[list[Source], list[str]]:
    """Return every source of unlabelled text that `given` stands for, and the unread files.

    In a folder, files without a suffix count as plain text: many collections have them.
    """
    folder = Path(given).expanduser()
    if str(given) in EMBEDDED_NAMES or not folder.is_dir():
        return [find_source(given)], []
    sources, unread = [], []
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if hidden or not file.is_file():
            continue
        kind, gzipped = find_kind(file)
        if kind is None and not file.suffix:
            kind = "text"
        if kind is None:
            unread.append(str(file))
        else:
            sources.append(Source(str(file), kind, file, gzipped))
    if not sources:
        raise HeadstartError(
            "the folder holds no readable file", where=given, fix=f"readable are {READABLE}"
        )
    return sources, unread


def find_classes(folder: Path) -> dict[str, list[Path]]:
    """List the text files of each class, where a folder has one subfolder per class.

    That is the layout of `sklearn.datasets.load_files`. Any other folder has no classes.
    """
    folders = [one for one in _entries(folder) if one.is_dir() and one.name not in UNLABELLED]
    classes: dict[str, list[Path]] = {}
    for one in folders:
        files = [file for file in _entries(one) if file.is_file()]
        classes[one.name] = [f for f in files if find_kind(f)[0] == "text" or not f.suffix]
    parts = all(part_of(name) for name in classes)
    if len(classes) < 2 or parts or not all(classes.values()):
        return {}
    return classes


def find_parts(
    given: Sequence[Given],
    *,
    validation: Given | None = None,
    test: Given | None = None,
    kind: str | None = None,
) -> PartSources:
    """Find the sources of each part of a dataset.

    Words of a file's name decide, wherever they are: `train.csv`, `reviews_dev.tsv`, `eng.testb`.

    Parameters
    ----------
    given : a folder, a file, a name, or several files.
    validation, test : files that were given for these parts.
    kind : "conll" or "squad": the files are read as this, whatever their names end in.
    """
    options = {"validation": validation, "test": test}
    folder = Path(given[0]).expanduser()
    if len(given) == 1 and str(given[0]) not in EMBEDDED_NAMES and folder.is_dir():
        found, notes = _parts_of_folder(folder, kind)
    else:
        found, notes = _parts_of_files(given, kind)
    for part, path in options.items():
        if path is not None and found.get(part) and len(given) > 1:
            raise HeadstartError(
                f"there are two {part} files: {found[part][0].name} and {path}",
                fix=f"give one of them; --{part} names one file",
            )
        if path is not None:
            found[part] = [find_source(path, kind)]
    for part in ("validation", "test"):
        if len(found.get(part, [])) > 1:
            raise _several(folder, part, found[part])
    only = {part: next(iter(found.get(part, [])), None) for part in ("validation", "test")}
    return PartSources(found["train"], only["validation"], only["test"], notes)


def part_of(name: Given) -> str | None:
    """Return the part that a file's name implies, if it implies one only.

    Example
    -------
    >>> part_of("data/reviews_dev.csv"), part_of("reviews.csv"), part_of("test-train.csv")
    ('validation', None, None)
    """
    words = set(re.split(r"[^a-z]+", Path(name).name.lower()))
    found = [part for part, names in PART_WORDS.items() if words & set(names)]
    return found[0] if len(found) == 1 else None


def has_parts(given: str) -> bool:
    """Whether a dataset comes with a test part, so that it is not one file of rows."""
    if given in EMBEDDED_NAMES or given.startswith("hub:"):
        return True
    folder = Path(given).expanduser()
    return folder.is_dir() and not find_classes(folder)


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
                fix="choose an --out outside of it",
            )


def _parts_of_folder(
    folder: Path, kind: str | None
) -> tuple[dict[str, list[Source]], tuple[str, ...]]:
    if kind is None and (folder / "train.label").is_file():
        files = {part: folder / f"{name}.review.spm" for part, name in LAB_FILES.items()}
        found = {part: [Source(str(f), "lab", f)] for part, f in files.items() if f.is_file()}
        if "train" in found:
            return found, ()
    if kind is None and (classes := find_classes(folder)):
        names = _listed([Path(name) for name in classes])
        return {"train": [Source(str(folder), "classes", folder)]}, (
            f"one subfolder per class: {len(classes)} classes ({names}), one text per file",
        )
    fitting = [one for one in _entries(folder) if _fits(one, kind)]
    found = {part: [] for part in PART_WORDS}
    for one in fitting:
        if part := part_of(one):
            found[part].append(find_source(one, kind))
    train = found["train"]
    if not train:
        holds = f"; it holds {_listed(fitting)}" if fitting else "; it holds nothing readable"
        raise HeadstartError(
            f"'{folder}' is a folder, and no file in it is called train{holds}",
            fix="call the files train, validation (or valid, dev) and test, or name them: "
            "TRAIN --validation FILE --test FILE; or make one subfolder per class; unlabelled "
            f"text is given with --corpus {folder}",
        )
    if len(train) > 1 and not all(_is_shard(one.file) for one in train):
        raise _several(folder, "train", train)
    return found, (_part_names(found),)


def _parts_of_files(
    given: Sequence[Given], kind: str | None
) -> tuple[dict[str, list[Source]], tuple[str, ...]]:
    sources = [find_source(one, kind) for one in given]
    if len(sources) == 1:
        return {"train": sources}, ()
    by_part: dict[str | None, list[Source]] = {}
    for source in sources:
        by_part.setdefault(part_of(source.name), []).append(source)
    single = all(len(by_part.get(part, [])) < 2 for part in ("validation", "test"))
    if None not in by_part and "train" in by_part and len(by_part) > 1 and single:
        found = {part: list(files) for part, files in by_part.items() if part is not None}
        return found, (_part_names(found),)
    names = ", ".join(Path(source.name).name for source in sources)
    note = (
        f"{names} are read as one dataset; to keep them apart: TRAIN --validation FILE --test FILE"
    )
    return {"train": sources}, (note,)


def _fits(path: Path, kind: str | None) -> bool:
    """Whether a file, or a folder of class folders, can be a part of this kind of dataset."""
    if path.is_dir():
        return kind is None and bool(find_classes(path))
    found = find_kind(path)[0]
    if kind == "squad":
        return found == "json"
    if kind == "conll":  # their suffixes vary
        return found not in TABLES and not path.name.lower().startswith("readme")
    return found in TABLES


def _entries(folder: Path) -> list[Path]:
    return [one for one in sorted(folder.iterdir()) if not one.name.startswith(".")]


def _is_shard(path: Path) -> bool:
    return SHARD.search(path.name.split(".")[0]) is not None


def _listed(paths: Sequence[Path]) -> str:
    names = ", ".join(path.name for path in paths[:LISTED])
    return (names or READABLE) + (", …" if len(paths) > LISTED else "")


def _part_names(found: dict[str, list[Source]]) -> str:
    names = {part: _listed([one.file for one in files]) for part, files in found.items() if files}
    parts = "; ".join(f"{part} is {name}" for part, name in names.items())
    return f"parts by the names of the files: {parts}"


def _several(folder: Path, part: str, sources: list[Source]) -> HeadstartError:
    return HeadstartError(
        f"several files could be the {part} part: {_listed([one.file for one in sources])}",
        where=folder,
        fix="name the files: TRAIN --validation FILE --test FILE",
    )


def hash_content(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
