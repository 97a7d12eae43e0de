"""Which part of a dataset a file is, by its name: train, validation or test.

A folder with such files is a dataset, and so are several files that are named together. Words of
the name decide, wherever they stand: `train.csv`, `reviews_dev.tsv`, `eng.testb`, `dev-v2.0.json`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.text.reading.sources import EMBEDDED_NAMES, TABLES, kind_by_suffix

WORDS = {
    "train": ("train", "training"),
    # CoNLL's shared tasks call the files testa and testb.
    "validation": ("validation", "valid", "val", "dev", "development", "testa"),
    "test": ("test", "testing", "testb"),
}
_SHARD = re.compile(r"-\d+-of-\d+$")  # as the Hugging Face Hub cuts large files


@dataclass(frozen=True)
class PartFiles:
    """The files of each part; parts without one are cut from the training files.

    `notes` say in words what was made of several files.
    """

    train: list[str]
    validation: str | None = None
    test: str | None = None
    notes: tuple[str, ...] = ()


def part_of(path: str | Path) -> str | None:
    """The part that a file's name tells, if it tells one and no other.

    Example
    -------
    >>> part_of("data/reviews_dev.csv"), part_of("reviews.csv"), part_of("test-train.csv")
    ('validation', None, None)
    """
    words = set(re.split(r"[^a-z]+", Path(path).name.lower()))
    found = [part for part, names in WORDS.items() if words & set(names)]
    return found[0] if len(found) == 1 else None


def is_table(path: Path) -> bool:
    """Whether the name is that of a CSV, TSV, JSON or Parquet file."""
    return kind_by_suffix(path)[0] in TABLES


def is_other_text(path: Path) -> bool:
    """Whether it may be a file of words and tags, whose suffix varies."""
    return not is_table(path) and not path.name.lower().startswith("readme")


def find_part_files(
    given: Sequence[str | Path],
    *,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    suits: Callable[[Path], bool] = is_table,
) -> PartFiles:
    """The files of each part of a dataset.

    Parameters
    ----------
    given : a folder, a file, or several files.
    validation, test : files that were given for these parts.
    suits : whether a file of a folder is of the kind that is read.

    Returns
    -------
    PartFiles
    """
    folder = Path(given[0]).expanduser()
    options = {"validation": validation, "test": test}
    if len(given) == 1 and str(given[0]) not in EMBEDDED_NAMES and folder.is_dir():
        return _in_folder(folder, options, suits)
    parts: dict[str, list[str]] = {"train": list(map(str, given)), "validation": [], "test": []}
    notes: tuple[str, ...] = ()
    if len(given) > 1:
        by_name = _by_name([Path(one) for one in given])
        if by_name is not None:
            parts, notes = by_name, (_in_words(by_name),)
        elif not all(_SHARD.search(_stem(Path(one))) for one in given):
            notes = (_pooled(given, options),)
    for part, path in options.items():
        if path is not None and parts[part]:
            raise HeadstartError(
                f"there are two {part} files: {parts[part][0]} and {path}",
                fix=f"leave one of them out; --{part} names one file",
            )
        parts[part] += [] if path is None else [str(path)]
    return PartFiles(parts["train"], _only(parts, "validation"), _only(parts, "test"), notes)


def _in_folder(
    folder: Path, options: dict[str, str | Path | None], suits: Callable[[Path], bool]
) -> PartFiles:
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and suits(file)]
    named = [file for file in files if part_of(file) and not file.name.startswith(".")]
    found: dict[str, list[str]] = {part: [] for part in WORDS}
    for file in named:
        found[part_of(file) or ""].append(str(file))
    if not found["train"]:
        listed = ", ".join(file.name for file in files[:6]) + (", …" if len(files) > 6 else "")
        raise HeadstartError(
            f"'{folder}' is a folder, and no file in it is called train"
            + (f"; it holds {listed}" if files else "; it holds nothing that is read here"),
            fix="call the files train, validation (or valid, dev) and test, or name them: "
            f"TRAIN --validation FILE --test FILE; unlabelled text is given with --corpus {folder}",
        )
    if len(found["train"]) > 1 and not all(_SHARD.search(_stem(Path(f))) for f in found["train"]):
        raise _several(folder, "train", found["train"])
    for part, path in options.items():
        found[part] = found[part] if path is None else [str(path)]
    for part in ("validation", "test"):
        if len(found[part]) > 1:
            raise _several(folder, part, found[part])
    notes = (_in_words(found),)
    return PartFiles(found["train"], _only(found, "validation"), _only(found, "test"), notes)


def _by_name(files: list[Path]) -> dict[str, list[str]] | None:
    """Files by part, where every name tells one and there is more than training text."""
    parts = [part_of(file) for file in files]
    if None in parts or "train" not in parts or set(parts) == {"train"}:
        return None
    found: dict[str, list[str]] = {part: [] for part in WORDS}
    for file, part in zip(files, parts, strict=True):
        found[part or ""].append(str(file))
    for part in ("validation", "test"):
        if len(found[part]) > 1:
            return None
    return found


def _only(parts: dict[str, list[str]], part: str) -> str | None:
    return parts[part][0] if parts[part] else None


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _several(folder: Path, part: str, files: list[str]) -> HeadstartError:
    listed = ", ".join(Path(file).name for file in files[:6])
    return HeadstartError(
        f"several files of the folder could be the {part} part: {listed}",
        where=folder,
        fix="name the files: TRAIN --validation FILE --test FILE",
    )


def _in_words(parts: dict[str, list[str]]) -> str:
    names = {part: ", ".join(Path(f).name for f in files) for part, files in parts.items() if files}
    return "parts by the names of the files: " + "; ".join(
        f"{part} is {name}" for part, name in names.items()
    )


def _pooled(given: Sequence[str | Path], options: dict[str, str | Path | None]) -> str:
    listed = ", ".join(Path(str(one)).name for one in given)
    cut = [part for part, path in options.items() if path is None]
    if options["validation"] is not None or not cut:
        return f"{listed} are read as one training file"
    return (
        f"{listed} are read as one dataset, and {' and '.join(cut)} cut from all of them; to keep "
        "them apart: TRAIN --validation FILE --test FILE"
    )
