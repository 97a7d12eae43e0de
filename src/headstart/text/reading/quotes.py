"""Quotation marks that swallow rows: one opens a cell, is not closed, and the next one in the file
ends it. The rows between become one text, and a parser does not mind.

Two things give such a cell away. The mark that closes it is followed by more text, which a closing
mark never is; or its lines look like rows: as many cells as the header has, with a value that the
lines of this file are known to have in that column.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from headstart.text.reading.stream import LONGEST_DOCUMENT

SWALLOWED = "a quotation mark opens here and swallows whole rows: it is not closed on its line"
SWALLOWED_FIX = (
    'close it, or write the quotation mark twice inside quotes: ""; a text that does hold such '
    "lines can be given as JSON Lines"
)
_LONGEST_ROW_LINES = 10_000  # a quoted cell with more line breaks is one that is never closed
_MOST_VALUES = 1_000  # a column with more is no column of labels


@dataclass(frozen=True)
class RowShape:
    """What a line that is a row looks like."""

    delimiter: str
    width: int  # cells of the header
    values: tuple[frozenset[str], ...]  # of each column, those that recur; none where few do

    def looks_like_row(self, cells: Sequence[str]) -> bool:
        """Whether cells are as many as a row's, one of them with a value of its column."""
        if len(cells) != self.width or self.width == 1:
            return False
        known = (cell.strip() in some for cell, some in zip(cells, self.values, strict=True))
        return self.delimiter == "\t" or any(known)  # texts have commas, but hardly tabs

    def swallows(self, lines: Sequence[str]) -> bool:
        """Whether a row of these lines, each with its end, is really several rows."""
        if len(lines) < 2:
            return False
        try:
            list(csv.reader(lines, delimiter=self.delimiter, strict=True))
        except csv.Error:
            return True  # text behind the mark that closes
        *whole, opened = next(csv.reader(lines[:1], delimiter=self.delimiter))
        first = [*whole, *opened.rstrip("\r\n").split(self.delimiter)]
        inner = (_cells(line, self.delimiter) for line in lines[1:-1])
        return all(self.looks_like_row(cells) for cells in chain([first], inner))


def row_shape(start: str, delimiter: str, width: int) -> RowShape:
    """Learn what rows look like from the lines at the start of a file.

    Lines, not rows: where a mark swallows rows, each of their lines still shows its cells.
    """
    counts: list[Counter[str]] = [Counter() for _ in range(width)]
    for line in start.splitlines()[1:]:
        cells = _cells(line, delimiter)
        if len(cells) == width:
            for column, cell in zip(counts, cells, strict=True):
                column[cell.strip()] += 1
    return RowShape(delimiter, width, tuple(_recurring(column) for column in counts))


def find_swallowed(lines: Iterable[str], shape: RowShape) -> tuple[int, int] | None:
    """The first row that swallows others, as (row number, line number); the header is row 0."""
    row, number = -1, 0
    waiting = iter(lines)
    for line in waiting:
        number += 1
        if line.strip("\r\n"):
            row += 1
        if line.count('"') % 2 == 0:
            continue  # whatever opens on this line closes on it
        taken = [line]
        try:
            next(csv.reader(_remembered(taken, waiting), delimiter=shape.delimiter))
        except (csv.Error, StopIteration):
            return None  # too long for a cell: the real reading has the message
        if shape.swallows(taken):
            return row, number
        number += len(taken) - 1
    return None


def lenient_csv_rows(
    lines: Iterator[str], shape: RowShape
) -> Iterator[tuple[list[str], str | None]]:
    """Rows of cells. A quotation mark that is not closed costs its own line, no other."""
    csv.field_size_limit(4 * LONGEST_DOCUMENT)
    waiting = _Waiting(lines)
    while True:
        problem = "a quotation mark opens here and is never closed"
        try:
            for cells in csv.reader(waiting, delimiter=shape.delimiter):
                if waiting.ended:
                    break  # it wanted more lines than there are
                if shape.swallows([f"{line}\n" for line in waiting.taken]):
                    problem = SWALLOWED
                    break
                if cells:
                    yield cells, None
                waiting.taken.clear()
            else:
                return
        except csv.Error as error:
            problem = f"this row cannot be read as CSV: {error}"
        broken = waiting.taken[0]
        waiting.give_back()
        yield [broken], problem


class _Waiting:
    """Lines for the csv module, which can be given back when a row turns out to have no end."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines = lines
        self.taken: list[str] = []  # of the row that is being read
        self.returned: list[str] = []
        self.ended = False
        self._size = 0

    def __iter__(self) -> "_Waiting":
        return self

    def __next__(self) -> str:
        too_long = len(self.taken) >= _LONGEST_ROW_LINES or self._size > LONGEST_DOCUMENT
        if self.taken and too_long:
            self.ended = True
            raise StopIteration
        line = self.returned.pop() if self.returned else next(self.lines, None)
        if line is None:
            self.ended = True
            raise StopIteration
        self.taken.append(line)
        self._size = len(line) + (self._size if len(self.taken) > 1 else 0)
        return line + "\n"

    def give_back(self) -> None:
        """All lines of the endless row but its first come again."""
        self.returned.extend(reversed(self.taken[1:]))
        self.taken.clear()
        self.ended, self._size = False, 0


def _remembered(taken: list[str], more: Iterator[str]) -> Iterator[str]:
    yield taken[0]
    for line in more:
        taken.append(line)
        yield line


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _recurring(column: Counter[str]) -> frozenset[str]:
    """The values of a column of labels; none for a column in which nearly every value is new."""
    few = len(column) <= min(_MOST_VALUES, column.total() // 2)
    return frozenset(value for value, count in column.items() if value and count > 1 and few)
