"""What the files of answers have in common: rows that are asked, and writers of their answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from headstart.text.reading.rows import ReadOptions

Answered = tuple[Any, Any]  # a row, and its answer: none where the row has a problem


class Rows(Protocol):
    """Rows with a number, a text and a problem, in order; `share` of them have been read."""

    @property
    def share(self) -> float | None: ...

    def __iter__(self) -> Any: ...


class Writer(Protocol):
    def write(self, answered: Sequence[Answered]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class FileForm:
    """How a run's files look: what is asked, how it is answered, and how that is written."""

    rows: Callable[[str | Path, ReadOptions], Rows]
    answer: Callable[[list[Any]], Sequence[Any]]  # of rows without a problem
    writers: Mapping[str, Callable[[Path], Writer]]  # by the ending of the file's name
    unread: Callable[[Any], int] = lambda answer: 0  # how much of its text was not read


class TextWriter:
    """A text file to which answers are added."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", encoding="utf-8", newline="")

    def close(self) -> None:
        self.file.close()


class JsonLines(TextWriter):
    """One document a row; `document` says what is in it, `number` and `error` aside."""

    def __init__(self, path: Path, document: Callable[[Any, Any], dict[str, Any]]) -> None:
        super().__init__(path)
        self.document = document

    def write(self, answered: Sequence[Answered]) -> None:
        for row, answer in answered:
            content = {"row": row.number, **self.document(row, answer), "error": row.problem}
            self.file.write(json.dumps(content, ensure_ascii=False) + "\n")
