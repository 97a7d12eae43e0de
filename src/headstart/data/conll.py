"""CoNLL files: one word and its tag per line, a blank line between sentences.

The word is the first column, the tag the last; columns are separated by tabs or spaces. Comment
lines (`# …`) and `-DOCSTART-` are skipped.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from headstart.data.dataset import Part, Splits, listed, short_label
from headstart.data.sources import Given, Source, find_parts, find_source
from headstart.data.splits import make_splits
from headstart.data.stream import LONGEST_DOCUMENT, Lines, check_text, storable
from headstart.errors import HeadstartError

TAGS_FIX = "one word per line, then a space or tab, its tag last; blank lines between sentences"
TOO_LONG = "the sentence is too long to be one; is there no blank line after it?"


@dataclass(frozen=True)
class Sentences(Part):
    """Tagged sentences: words, and the numbers of their tags in `label_names`."""

    words: list[list[str]]
    tags: list[list[int]]
    label_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def keys(self) -> Sequence[Any]:
        return [" ".join(words) for words in self.words]

    @property
    def targets(self) -> Sequence[Hashable]:
        return [tuple(tags) for tags in self.tags]

    def label_counts(self) -> dict[str, int]:
        counts = Counter(chain.from_iterable(self.tags))
        return {name: counts[number] for number, name in enumerate(self.label_names)}


class SentenceRow(NamedTuple):
    """One sentence; `problem` says why it cannot be used, with its place."""

    number: int
    words: list[str]
    tags: list[str]
    problem: HeadstartError | None

    @property
    def text(self) -> str:
        """The words, with blanks in between."""
        return " ".join(self.words)


class SentenceRows:
    """The sentences of a CoNLL file, in order.

    Parameters
    ----------
    source : a file of any name: the suffix of CoNLL files varies.
    tagged : whether every word must have a tag; without it only the first column is read.
    """

    def __init__(self, source: Given | Source, encoding: str, *, tagged: bool = False) -> None:
        self.source = source if isinstance(source, Source) else find_source(source, "conll")
        self.lines = Lines(self.source, encoding)
        self.tagged = tagged

    @property
    def share(self) -> float | None:
        """How much of the file was read so far, where that is known."""
        return self.lines.share

    def __iter__(self) -> Iterator[SentenceRow]:
        words, tags = list[str](), list[str]()
        problem: HeadstartError | None = None
        sentence, size = 1, 0
        for number, line in enumerate(chain(self.lines, [""]), start=1):
            columns = split_line(line)
            if columns is None or (self.tagged and _has_blank_word(line, columns)):
                continue  # real files have a few blank words, such as a no-break space
            if not columns:
                if words:
                    yield self._row(SentenceRow(sentence, words, tags, problem))
                    sentence += 1
                words, tags, problem, size = [], [], None, 0
            elif size > LONGEST_DOCUMENT:
                problem = self._problem(TOO_LONG, number)
            else:
                problem = problem or self._check_line(line, columns, number)
                words.append(columns[0].strip())
                tags.append(columns[-1].strip())
                size += len(words[-1]) + 1

    def _row(self, row: SentenceRow) -> SentenceRow:
        _, problem = check_text(row.text, self.lines.encoding)
        if row.problem is not None or problem is None:
            return row
        problem.where = self.source.row(row.number)
        return row._replace(words=[storable(word) for word in row.words], problem=problem)

    def _check_line(self, line: str, columns: list[str], number: int) -> HeadstartError | None:
        if not columns[0].strip():
            return self._problem(f"line {number} has no word in its first column", number)
        if self.tagged and (len(columns) < 2 or not columns[-1].strip()):
            return self._problem(f"a word and its tag were expected: {line[:60]!r}", number)
        return None

    def _problem(self, what: str, line: int) -> HeadstartError:
        return HeadstartError(what, where=f"{self.source.name}, line {line}", fix=TAGS_FIX)


def split_line(line: str) -> list[str] | None:
    """Split a line into columns: none at all between sentences, `None` where it is a comment."""
    columns = line.split("\t") if "\t" in line else line.split()
    if not line.strip() or columns[0] == "-DOCSTART-":
        return []
    return None if line.startswith("# ") or columns == ["#"] else columns


def _has_blank_word(line: str, columns: list[str]) -> bool:
    """Whether a line has a tag, and before it a word of nothing but white space."""
    if "\t" in line:
        return len(columns) > 1 and not columns[0].strip() and bool(columns[-1].strip())
    return line[:1].isspace() and len(columns) == 1


def ends_in_tags(given: Given, encoding: str, tags: Collection[str]) -> bool:
    """Whether the lines of a file look like CoNLL's: most of the first end in one of the tags."""
    start = Lines(find_source(given, "conll"), encoding).start
    found = [columns for line in start.split("\n")[:1_000] if (columns := split_line(line))]
    tagged = sum(len(columns) > 1 and columns[-1].strip() in tags for columns in found)
    return tagged > len(found) / 2


def read_sentences(
    sources: Sequence[Given],
    *,
    validation: Given | None = None,
    test: Given | None = None,
    encoding: str = "utf-8",
    seed: int = 0,
    drop_overlap: bool = False,
    **other: Any,
) -> Splits[Sentences]:
    """Read tagged sentences and their splits; `other` settings of tables are not used."""
    files = find_parts(sources, validation=validation, test=test, kind="conll")
    name = ", ".join(Path(source).name for source in sources)
    train = [(file, row) for file in files.train for row in _read_strict(file, encoding)]
    labels = tuple(sorted({tag for _, row in train for tag in row.tags}, key=_order))
    if len(labels) < 2:
        raise HeadstartError(
            f"there is one tag only: {', '.join(labels)}",
            where=", ".join(map(str, sources)),
            fix="the tag is the last column of a line, the word the first",
        )
    held_out = {
        part: make_sentences(name, [(file, row) for row in _read_strict(file, encoding)], labels)
        for part, file in (("validation", files.validation), ("test", files.test))
        if file is not None
    }
    return make_splits(
        make_sentences(name, train, labels),
        held_out.get("validation"),
        held_out.get("test"),
        seed=seed,
        drops_overlap=drop_overlap,
        found=[f"{file.name}: words and tags" for file in files.train],
        notes=files.notes,
        unit="sentences",
    )


def read_tagged(source: Given, label_names: Sequence[str], *, encoding: str = "utf-8") -> Sentences:
    """Read every sentence of one file, with tags that are known already."""
    file = find_source(source, "conll")
    rows = [(file, row) for row in _read_strict(file, encoding)]
    return make_sentences(Path(source).name, rows, tuple(label_names))


def make_sentences(
    name: str, rows: Sequence[tuple[Source, SentenceRow]], label_names: tuple[str, ...]
) -> Sentences:
    """Number the tags of sentences; an unknown tag is an error."""
    numbers = {tag: number for number, tag in enumerate(label_names)}
    for file, row in rows:
        if unknown := [tag for tag in row.tags if tag not in numbers]:
            raise HeadstartError(
                f"the tag {short_label(unknown[0])} does not occur in the training sentences; "
                f"known are {listed(label_names, 20)}",
                where=file.row(row.number),
                fix="correct it, or give the training file examples of it",
            )
    files = [file.name for file, _ in rows]
    return Sentences(
        name,
        [row.words for _, row in rows],
        [[numbers[tag] for tag in row.tags] for _, row in rows],
        label_names,
        rows=[row.number for _, row in rows],
        files=files if len(set(files)) > 1 else [],
    )


def _read_strict(source: Source, encoding: str) -> list[SentenceRow]:
    rows = []
    for row in SentenceRows(source, encoding, tagged=True):
        if row.problem is not None:
            raise row.problem
        rows.append(row)
    if not rows:
        raise HeadstartError("the file holds no sentences", where=source.name, fix=TAGS_FIX)
    return rows


def _order(tag: str) -> tuple[bool, str, str]:
    """Sort O first, then by kind, B before I."""
    return tag != "O", tag.partition("-")[2], tag
