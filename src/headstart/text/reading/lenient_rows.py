"""Texts to predict on, row by row: a row that cannot be read is returned with the reason.

ReadOptions for training stops at the first bad row, because silently learning from half a file is
worse. Here every row must have an answer: a broken one keeps its place and says what is wrong,
and bad bytes cost their own line, no other.
"""

import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple

from headstart.errors import HeadstartError
from headstart.text.checking.checks import checked_text
from headstart.text.reading.csv_files import DELIMITER_NAMES, layout_of
from headstart.text.reading.quotes import lenient_csv_rows, row_shape
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
    read_block,
)


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
                while rest and not rest.endswith(
                    self._line_end
                ):  # too long to be a text: pass over it
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
        return io.TextIOWrapper(binary, self.encoding, errors=errors, newline=self._line_end)

    @cached_property
    def _line_end(self) -> str:
        """A line feed; a carriage return in files of old Macs, which have no other."""
        wide = self.encoding.lower().startswith(("utf-16", "utf-32"))
        with open_unzipped(self.source) as binary:
            start = read_block(binary, self.source)
        alone = b"\r" in start and b"\n" not in start and not wide
        return "\r" if alone and self.source.kind in ("csv", "tsv") else "\n"


_FIRST_ROWS = 100  # of a JSON Lines file: they show which columns there are

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
        found: dict[str, None] = {}  # the names of the first rows' columns
        for line in itertools.islice(self.lines, _FIRST_ROWS):
            record, _ = _record(line)
            found.update(dict.fromkeys(record or ()))
        columns = self._columns(list(found)) if found else []
        for number, line in enumerate(self.lines, start=1):
            if not line.strip():
                continue
            record, problem = _record(line)
            if record is None:
                yield number, line, problem, None
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
        beginning = self.lines.beginning()
        layout = layout_of(beginning, self.source)
        places = [layout.columns.index(name) for name in self._columns(list(layout.columns))]
        width = len(layout.columns)
        shape = row_shape(beginning, layout.delimiter, width)
        rows = enumerate(lenient_csv_rows(iter(self.lines), shape))
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


def _record(line: str) -> tuple[dict[str, object] | None, str]:
    """The object of a line, or what is wrong with it: nested too deeply, endless numbers, …"""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, f"this is not valid JSON: {error}"
    return (record, "") if isinstance(record, dict) else (None, "an object was expected")


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
