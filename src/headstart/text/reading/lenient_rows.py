"""Texts to predict on, row by row: a row that cannot be read is returned with the reason.

ReadOptions for training stops at the first bad row, because silently learning from half a file is
worse. Here every row must have an answer: a broken one keeps its place and says what is wrong,
and bad bytes cost their own line, no other.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from headstart.errors import HeadstartError
from headstart.text.checking.checks import checked_text
from headstart.text.reading.delimited import DELIMITER_NAMES, layout_of
from headstart.text.reading.rows import (
    ReadOptions,
    Row,
    find_pair_columns,
    find_text_column,
    join_pair,
    open_rows,
)
from headstart.text.reading.sources import TABLES, Source, find_source
from headstart.text.reading.stream import (
    BLOCK,
    DAMAGED_GZIP,
    LONGEST_DOCUMENT,
    damaged_gzip,
    decoder_of,
    open_unzipped,
)

_LONGEST_ROW_LINES = 10_000  # a quoted cell with more line breaks is one that is never closed


class LenientLines:
    """Lines without their ends. `share` says how much of the file was read, where known."""

    def __init__(self, source: Source, encoding: str) -> None:
        decoder_of(encoding)  # an unknown one is an error now
        self.source = source
        self.encoding = encoding
        self._read = 0
        self._size = 0 if source.path is None else source.path.stat().st_size

    @property
    def share(self) -> float | None:
        known = self._size and self._read and not self.source.gzipped
        return min(1.0, self._read / self._size) if known else None

    def __iter__(self) -> Iterator[str]:
        """Bytes that are not text become what `checks.checked_text` finds."""
        with open_unzipped(self.source) as binary, self._decoded(binary) as file:
            first = True
            while line := self._line(file, LONGEST_DOCUMENT + 1):
                rest = line
                while rest and not rest.endswith("\n"):  # too long to be a text: pass over it
                    rest = self._line(file, LONGEST_DOCUMENT)
                if not self.source.gzipped:
                    self._read = binary.tell()
                line = line.removeprefix("\ufeff") if first else line
                first = False
                yield line.removesuffix("\n").removesuffix("\r")

    def beginning(self) -> str:
        """As much as shows the habits of the file."""
        with open_unzipped(self.source) as binary, self._decoded(binary) as file:
            try:
                return file.read(BLOCK).removeprefix("\ufeff")
            except DAMAGED_GZIP as error:
                raise damaged_gzip(self.source, error) from error

    def _line(self, file: io.TextIOWrapper, most: int) -> str:
        try:
            return file.readline(most)
        except DAMAGED_GZIP as error:
            raise damaged_gzip(self.source, error) from error

    def _decoded(self, binary: BinaryIO) -> io.TextIOWrapper:
        wide = self.encoding.lower().startswith(("utf-16", "utf-32"))
        errors = "replace" if wide else "surrogateescape"
        return io.TextIOWrapper(binary, self.encoding, errors=errors, newline="\n")


# Number, text, problem, and the columns where they could be read.
_Found = tuple[int, object, str | None, Mapping[str, object] | None]


class LenientRow(NamedTuple):
    """One row: its number from 1, its text as far as it could be read, and what is wrong."""

    number: int
    text: str
    problem: str | None
    columns: Mapping[str, object] = {}  # every column of a table; else the text alone


class LenientRows:
    """The rows of a file, in order. `share` says how much of the file was read, where known."""

    def __init__(self, given: str | Path, options: ReadOptions) -> None:
        self.source = find_source(given)
        self.options = replace(options, keep_columns=True)
        self._text_columns: list[str] = []  # of a CSV or JSON Lines file, once they are known
        if options.pairs and self.source.kind not in TABLES:
            raise HeadstartError(
                "two texts per row were expected, and this has one",
                where=self.source.name,
                fix="give a table (.csv, .tsv, .jsonl, .parquet) with a column for each",
            )
        self.lines = LenientLines(self.source, options.encoding)

    @property
    def share(self) -> float | None:
        return self.lines.share

    def __iter__(self) -> Iterator[LenientRow]:
        if self.source.kind in ("csv", "tsv"):
            rows = self._delimited()
        elif self.source.kind == "jsonl":
            rows = self._json_lines()
        elif self.source.kind == "text":
            rows = ((number, line, None, None) for number, line in enumerate(self.lines, start=1))
        else:
            opened = open_rows(self.source, self.options, labelled=False)
            rows = ((row.number, row.text, None, _columns_of(row)) for row in opened.rows)
        for number, text, problem, columns in rows:
            row = checked_row(number, text, problem)
            yield row._replace(columns=self._kept(row.text, columns))

    def _kept(self, text: str, columns: Mapping[str, object] | None) -> Mapping[str, object]:
        """The row's columns; of a row that cannot be parsed, what stands there as its text."""
        if columns is None:
            return {(self._text_columns or ["text"])[0]: text}
        kept = {
            name: _storable(cell) if isinstance(cell, str) else cell
            for name, cell in columns.items()
        }
        # One text per row is kept as it was checked, and as it is predicted.
        return kept if self.options.pairs else kept | dict.fromkeys(self._text_columns, text)

    def _json_lines(self) -> Iterator[_Found]:
        columns: list[str] = []
        for number, line in enumerate(self.lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (json.JSONDecodeError, UnicodeError) as error:
                yield number, line, f"this is not valid JSON: {error}", None
                continue
            if not isinstance(record, dict):
                yield number, line, "an object was expected", None
                continue
            columns = columns or self._columns(list(record))
            yield number, self._text([record.get(column) for column in columns]), None, record

    def _columns(self, found: list[str]) -> list[str]:
        """The column of the text, or those of the two texts."""
        first, second, name = self.options.text_column, self.options.second_column, self.source.name
        if self.options.pairs:
            self._text_columns = list(find_pair_columns(found, first, second, name))
        else:
            self._text_columns = [find_text_column(found, first, name)]
        return self._text_columns

    def _text(self, cells: Sequence[object]) -> object:
        return join_pair(*cells) if self.options.pairs else cells[0]

    def _delimited(self) -> Iterator[_Found]:
        layout = layout_of(self.lines.beginning(), self.source)
        places = [layout.columns.index(name) for name in self._columns(list(layout.columns))]
        width = len(layout.columns)
        rows = enumerate(_csv_rows(iter(self.lines), layout.delimiter))
        for number, (cells, problem) in rows:
            if number == 0:
                continue  # the header
            if problem is None and len(cells) != width:
                problem = (
                    f"this row has {len(cells)} columns, the header has {width} "
                    f"(delimiter: {DELIMITER_NAMES[layout.delimiter]})"
                )
            if problem is None:
                columns = dict(zip(layout.columns, cells, strict=True))
                yield number, self._text([cells[place] for place in places]), None, columns
            else:
                yield number, layout.delimiter.join(cells), problem, None


def _csv_rows(lines: Iterator[str], delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    """Rows of cells. A quotation mark that is never closed costs its own line, no other."""
    csv.field_size_limit(4 * LONGEST_DOCUMENT)
    waiting = _Waiting(lines)
    while True:
        problem = "a quotation mark opens here and is never closed"
        try:
            for cells in csv.reader(waiting, delimiter=delimiter):
                if waiting.ended:
                    break  # it wanted more lines than there are
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


def _columns_of(row: Row) -> Mapping[str, object] | None:
    if row.columns is not None or row.label is None:
        return row.columns
    return {"text": row.text, "label": row.label}


def checked_row(number: int, text: object, problem: str | None = None) -> LenientRow:
    """A row whose text can be predicted on, or the reason why not."""
    try:
        whole = checked_text(text, lambda: "")
    except HeadstartError as error:
        shown = text if isinstance(text, str) else str(text)
        return LenientRow(number, _storable(shown), problem or _reason(shown, error))
    if problem is None and not whole:
        problem = "the text is empty"
    return LenientRow(number, whole, problem)


def _reason(text: str, error: HeadstartError) -> str:
    escaped = next((c for c in text if "\udc80" <= c <= "\udcff"), None)
    if escaped is not None:
        return f"byte 0x{ord(escaped) - 0xDC00:02X} is not text in this encoding"
    return error.what


def _storable(text: str) -> str:
    """What no file can hold is replaced by �."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")
