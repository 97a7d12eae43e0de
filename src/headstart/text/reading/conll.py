"""CoNLL files: one word and its tag a line, a blank line between sentences.

The word is the first column, the tag the last; columns are separated by tabs or blanks. Lines of
comment (`# …` with nothing else to be a tag) and `-DOCSTART-` are passed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.file_parts import FileParts, cut_parts, given_parts, open_file
from headstart.text.reading.records import read_lines
from headstart.text.reading.sources import Source


@dataclass(frozen=True)
class Sentences:
    """Tagged sentences: words, and the numbers of their tags in `label_names`."""

    name: str
    words: list[list[str]]
    tags: list[list[int]]
    label_names: tuple[str, ...]
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.words)


def read_sentences(
    sources: Sequence[str],
    *,
    validation: str | None = None,
    test: str | None = None,
    encoding: str = "utf-8",
    seed: int = 0,
    **other: Any,
) -> FileParts[Sentences]:
    """Tagged sentences and their parts; a part that has no file is cut from the training file."""
    given = [pair for source in sources for pair in _read_file(source, encoding)]
    names = tuple(sorted({tag for _, tags in given for tag in tags}, key=_order))
    if len(names) < 2:
        raise HeadstartError(
            f"there is one tag only: {', '.join(names)}",
            where=", ".join(sources),
            fix="the tag is the last column of a line, the word the first",
        )
    name = ", ".join(Path(source).name for source in sources)
    whole = numbered(name, given, names, name)
    return given_parts(
        whole,
        lambda path: numbered(name, _read_file(path, encoding), names, path),
        validation=validation,
        test=test,
        cut=lambda with_test: _split(whole, seed, with_test=with_test),
    )


def read_tagged(source: str, label_names: Sequence[str], *, encoding: str = "utf-8") -> Sentences:
    """Every sentence of one file, with tags that are known already."""
    return numbered(Path(source).name, _read_file(source, encoding), tuple(label_names), source)


def numbered(
    name: str, pairs: list[tuple[list[str], list[str]]], names: tuple[str, ...], where: str
) -> Sentences:
    numbers = {tag: number for number, tag in enumerate(names)}
    for number, (_, tags) in enumerate(pairs, start=1):
        if unknown := [tag for tag in tags if tag not in numbers]:
            raise HeadstartError(
                f"the tag '{unknown[0]}' does not occur in the training sentences; known are "
                + ", ".join(names[:20]),
                where=f"{where}, sentence {number}",
                fix="correct it, or give the training file examples of it",
            )
    words = [words for words, _ in pairs]
    return Sentences(name, words, [[numbers[tag] for tag in tags] for _, tags in pairs], names)


def columns_of(line: str) -> list[str] | None:
    """The columns of a line: none at all between sentences, `None` where it is a comment."""
    columns = line.split("\t") if "\t" in line else line.split()
    if not line.strip() or columns[0] == "-DOCSTART-":
        return []
    return None if line.startswith("# ") or columns == ["#"] else columns


def open_conll(source: str | Path) -> Source:
    """A file of any name, for what it holds cannot be told by its ending."""
    return open_file(str(source), "text", fix="name a CoNLL file")


def _read_file(source: str, encoding: str) -> list[tuple[list[str], list[str]]]:
    opened = open_conll(source)
    sentences: list[tuple[list[str], list[str]]] = []
    words, tags = list[str](), list[str]()
    for number, line in enumerate([*read_lines(opened, encoding), ""], start=1):
        columns = columns_of(line)
        if columns is None:
            continue
        if not columns:
            if words:
                sentences.append((words, tags))
            words, tags = [], []
        elif len(columns) < 2 or not columns[0].strip() or not columns[-1].strip():
            raise HeadstartError(
                f"a word and its tag were expected: {line[:60]!r}",
                where=f"{source}, line {number}",
                fix="one word a line, then a blank or tab, its tag last; blank lines between "
                "sentences",
            )
        else:
            words.append(columns[0].strip())
            tags.append(columns[-1].strip())
    if not sentences:
        raise HeadstartError("the file holds no sentences", where=source)
    return sentences


def _order(tag: str) -> tuple[bool, str, str]:
    """O first, then by kind, B before I."""
    return tag != "O", tag.partition("-")[2], tag


def _split(whole: Sentences, seed: int, *, with_test: bool) -> FileParts[Sentences]:
    texts = [" ".join(words) for words in whole.words]
    row_of = {text: row for row, text in enumerate(texts)}

    def picked(part: Dataset) -> Sentences:
        rows = [row_of[text] for text in part.texts]
        return Sentences(
            whole.name,
            [whole.words[row] for row in rows],
            [whole.tags[row] for row in rows],
            whole.label_names,
            part.dropped,
        )

    return cut_parts(whole.name, texts, picked, seed=seed, with_test=with_test, of="sentences")
