"""Training, validation and test rows from files of their own, or cut from the training file.

For what is not a table: tagged sentences and questions. Tables are read by `read.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from headstart.errors import HeadstartError
from headstart.text.checking.splits import split
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.sources import Source

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class FileParts(Generic[Rows]):
    train: Rows
    validation: Rows
    test: Rows | None


def open_file(source: str, kind: Literal["text", "json"], *, fix: str) -> Source:
    path = Path(source).expanduser()
    if not path.is_file():
        raise HeadstartError(f"there is no file '{source}'", fix=fix)
    return Source(source, kind, path, gzipped=path.suffix == ".gz")


def given_parts(
    whole: Rows,
    read: Callable[[str], Rows],
    *,
    validation: str | None,
    test: str | None,
    cut: Callable[[bool], FileParts[Rows]],
) -> FileParts[Rows]:
    """The parts that have files; `cut`, told whether a test part is wanted, makes the others."""
    chooses = None if validation is None else read(validation)
    judges = None if test is None else read(test)
    if chooses is not None:
        return FileParts(whole, chooses, judges)
    parts = cut(judges is None)
    return FileParts(parts.train, parts.validation, parts.test if judges is None else judges)


def cut_parts(
    name: str,
    texts: Sequence[str],
    pick: Callable[[Dataset], Rows],
    *,
    seed: int,
    with_test: bool,
    of: str,
) -> FileParts[Rows]:
    """Parts without a text in common, by the same rules as a table's; `pick` finds their rows."""
    cut = split(Dataset(name, list(texts), [0] * len(texts), ("",)), seed, with_test=with_test)
    if not len(cut.validation):
        raise HeadstartError(
            f"{len(texts)} {of} are too few to cut a validation part from",
            where=name,
            fix=f"give more {of}, or --validation FILE",
        )
    test = None if cut.test is None else pick(cut.test)
    return FileParts(pick(cut.train), pick(cut.validation), test)
