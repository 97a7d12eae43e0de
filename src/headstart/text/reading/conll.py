"""CoNLL files: one word and its tag per line, a blank line between sentences.

The word is the first column, the tag the last; columns are separated by tabs or spaces. Comment
lines (`# …` with nothing else to be a tag) and `-DOCSTART-` are skipped. `read_sentences` is
strict, for training; `LenientSentences` returns every sentence, with its problem, for prediction.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from headstart.data.words import Places
from headstart.errors import HeadstartError
from headstart.text.checking.splits import (
    FileParts,
    cut_parts,
    given_parts,
    without_conflicts,
)
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.lenient_rows import LenientLines, LenientRow, checked_row
from headstart.text.reading.part_files import find_part_files, is_other_text
from headstart.text.reading.records import read_lines
from headstart.text.reading.sources import Source, open_file
from headstart.text.reading.stream import LONGEST_DOCUMENT


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

    def pick(self, rows: Sequence[int]) -> "Sentences":
        """The sentences of these numbers, in this order."""
        words, tags = [self.words[row] for row in rows], [self.tags[row] for row in rows]
        return replace(self, words=words, tags=tags)


def read_sentences(
    sources: Sequence[str],
    *,
    validation: str | None = None,
    test: str | None = None,
    encoding: str = "utf-8",
    seed: int = 0,
    drop_overlap: bool = False,
    **other: Any,
) -> FileParts[Sentences]:
    """Tagged sentences and their parts; a part without a file is cut from the training file."""
    files = find_part_files(sources, validation=validation, test=test, suits=is_other_text)
    given = [pair for source in files.train for pair in _read_file(source, encoding)]
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
        validation=files.validation,
        test=files.test,
        notes=files.notes,
        cut=lambda with_test: _split(whole, seed, with_test=with_test),
        texts=lambda part: [" ".join(words) for words in part.words],
        pick=Sentences.pick,
        drops_overlap=drop_overlap,
    )


def read_tagged(source: str, label_names: Sequence[str], *, encoding: str = "utf-8") -> Sentences:
    """Every sentence of one file, with tags that are known already."""
    return numbered(Path(source).name, _read_file(source, encoding), tuple(label_names), source)


def numbered(
    name: str, pairs: list[tuple[list[str], list[str]]], names: tuple[str, ...], where: str
) -> Sentences:
    """Sentences with the numbers of their tags in `names`; an unknown tag is an error."""
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


def _has_blank_word(line: str, columns: list[str]) -> bool:
    """Whether a line has a tag, and before it a word of nothing but white space."""
    if "\t" in line:
        return len(columns) > 1 and not columns[0].strip() and bool(columns[-1].strip())
    return line[0].isspace() and len(columns) == 1


def open_conll(source: str | Path) -> Source:
    """A file of any name: the suffix of CoNLL files varies."""
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
        elif _has_blank_word(line, columns):
            continue  # real files have a few, such as a no-break space
        elif len(columns) < 2 or not columns[-1].strip():
            raise HeadstartError(
                f"a word and its tag were expected: {line[:60]!r}",
                where=f"{source}, line {number}",
                fix="one word per line, then a space or tab, its tag last; blank lines between "
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
    rows, conflicting = without_conflicts(texts, [tuple(tags) for tags in whole.tags])
    whole, texts = whole.pick(rows), [texts[row] for row in rows]
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

    parts = cut_parts(whole.name, texts, picked, seed=seed, with_test=with_test, of="sentences")
    if not conflicting:
        return parts
    dropped = {**parts.train.dropped, "conflicting": conflicting}
    return replace(parts, train=replace(parts.train, dropped=dropped))


TOO_LONG = "the sentence is too long to be one; is there no blank line behind it?"


class LenientSentence(NamedTuple):
    """A text and where its words stand in it; `problem` says why it cannot be tagged."""

    number: int
    text: str
    problem: str | None
    words: Places


class LenientSentences:
    """The sentences of a CoNLL file, in order. Only the first column is read."""

    def __init__(self, given: str | Path, encoding: str) -> None:
        self.lines = LenientLines(open_conll(given), encoding)

    @property
    def share(self) -> float | None:
        return self.lines.share

    def __iter__(self) -> Iterator[LenientSentence]:
        words: list[str] = []
        problem: str | None = None
        sentence, size = 1, 0
        for number, line in enumerate(chain(self.lines, [""]), start=1):
            columns = columns_of(line)
            if columns and size > LONGEST_DOCUMENT:
                problem = TOO_LONG
            elif columns:
                words.append(columns[0].strip())
                size += len(words[-1]) + 1
                if not words[-1]:
                    problem = f"line {number} has no word in its first column"
            elif columns is not None and words:
                yield _sentence(checked_row(sentence, " ".join(words), problem), words)
                words, problem, size = [], None, 0
                sentence += 1


def ends_in_tags(given: str | Path, encoding: str, tags: Collection[str]) -> bool:
    """Whether the lines of a file look like CoNLL's: most of the first end in one of the tags."""
    beginning = LenientLines(open_conll(given), encoding).beginning()
    found = [columns for line in beginning.split("\n")[:1_000] if (columns := columns_of(line))]
    tagged = sum(len(columns) > 1 and columns[-1].strip() in tags for columns in found)
    return tagged > len(found) / 2


def _sentence(row: LenientRow, words: list[str]) -> LenientSentence:
    places: Places = []
    start = 0
    for word in words:
        places.append((start, start + len(word)))
        start += len(word) + 1
    return LenientSentence(row.number, row.text, row.problem, places)
