"""Sentences to be tagged, one by one: their words, whether they have tags already or not.

A sentence that cannot be read keeps its place and says what is wrong, as in `loose_rows`.
"""

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from headstart.text.reading.conll import columns_of, open_conll
from headstart.text.reading.loose_lines import LooseLines
from headstart.text.reading.loose_rows import LooseRow, checked_row
from headstart.text.reading.stream import LONGEST_DOCUMENT
from headstart.text.tokenizers.words import Places

TOO_LONG = "the sentence is too long to be one; is there no blank line behind it?"


class LooseSentence(NamedTuple):
    """A text and where its words stand in it; `problem` says why it cannot be tagged."""

    number: int
    text: str
    problem: str | None
    words: Places


class LooseSentences:
    """The sentences of a CoNLL file, in order. Only the first column is read."""

    def __init__(self, given: str | Path, encoding: str) -> None:
        self.lines = LooseLines(open_conll(given), encoding)

    @property
    def share(self) -> float | None:
        return self.lines.share

    def __iter__(self) -> Iterator[LooseSentence]:
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
    beginning = LooseLines(open_conll(given), encoding).beginning()
    found = [columns for line in beginning.split("\n")[:1_000] if (columns := columns_of(line))]
    tagged = sum(len(columns) > 1 and columns[-1].strip() in tags for columns in found)
    return tagged > len(found) / 2


def _sentence(row: LooseRow, words: list[str]) -> LooseSentence:
    places: Places = []
    start = 0
    for word in words:
        places.append((start, start + len(word)))
        start += len(word) + 1
    return LooseSentence(row.number, row.text, row.problem, places)
