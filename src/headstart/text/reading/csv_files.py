"""CSV and TSV files, read by Arrow block by block; delimiter and header are looked up first."""

import csv
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as arrow_csv

from headstart.errors import HeadstartError
from headstart.text.reading.quotes import SWALLOWED, SWALLOWED_FIX, find_swallowed, row_shape
from headstart.text.reading.sources import Source
from headstart.text.reading.stream import (
    BLOCK,
    LONGEST_DOCUMENT,
    CheckedFile,
    read_checked,
    too_long,
)

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True)
class Layout:
    """What the first lines of a delimited file say about it."""

    delimiter: str
    columns: tuple[str, ...]


def find_layout(source: Source, encoding: str) -> Layout:
    """Find the delimiter by the header, and among several by how many rows agree with it."""
    start = next(read_checked(source, encoding, lines=False), b"").decode("utf-8", "ignore")
    return layout_of(start, source)


def layout_of(start: str, source: Source) -> Layout:
    """The layout that the beginning of a file shows."""
    if not start.strip():
        raise HeadstartError("the file is empty", where=source.name)
    choices = "\t" if source.kind == "tsv" else "".join(DELIMITER_NAMES)
    layouts = [_layout(start, delimiter) for delimiter in choices]
    _, best = max(layouts, key=lambda scored: scored[0])
    return best


def _layout(start: str, delimiter: str) -> tuple[tuple[bool, float, int], Layout]:
    # The last row of the block may be cut; a hundred rows show the habit of the file.
    csv.field_size_limit(LONGEST_DOCUMENT)
    rows = [row for row in itertools.islice(_parse(start, delimiter), 100) if row]
    header, body = tuple(rows[0]), rows[1:-1] or rows[1:]
    agreeing = sum(len(row) == len(header) for row in body) / max(1, len(body))
    return (len(header) > 1, agreeing, len(header)), Layout(delimiter, header)


def _parse(text: str, delimiter: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    except csv.Error:
        return  # only a look at the start: the real reading has the message


def read_delimited(
    source: Source, layout: Layout, columns: list[str], encoding: str
) -> Iterator[tuple[str, ...]]:
    """Yield the wanted columns of every row, as strings."""
    _refuse_swallowed_rows(source, layout, encoding)
    done = 0
    # Arrow wants a row to fit into two blocks and keeps several of them: start with small ones.
    for block_size in (BLOCK, LONGEST_DOCUMENT):
        try:
            rows = _read_blocks(source, layout, columns, encoding, block_size)
            for row in itertools.islice(rows, done, None):
                done += 1
                yield row
            return
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block_size == LONGEST_DOCUMENT:
                raise _explain(source, layout, encoding, done, error) from error


def _refuse_swallowed_rows(source: Source, layout: Layout, encoding: str) -> None:
    """Arrow reads several rows as one where quotation marks say so: look before it does."""
    csv.field_size_limit(LONGEST_DOCUMENT)
    start = next(read_checked(source, encoding, lines=False), b"").decode("utf-8", "ignore")
    shape = row_shape(start, layout.delimiter, len(layout.columns))
    found = find_swallowed(_lines(source, encoding), shape)
    if found is not None:
        row, line = found
        raise HeadstartError(
            SWALLOWED, where=f"{source.name}, row {row} (line {line})", fix=SWALLOWED_FIX
        )


def _read_blocks(
    source: Source, layout: Layout, columns: list[str], encoding: str, block_size: int
) -> Iterator[tuple[str, ...]]:
    reader = arrow_csv.open_csv(
        CheckedFile(source, encoding),
        read_options=arrow_csv.ReadOptions(block_size=block_size, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
        ),
    )
    for batch in reader:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _explain(
    source: Source, layout: Layout, encoding: str, done: int, error: pa.ArrowInvalid
) -> HeadstartError:
    """Arrow's message lacks the place, so the file is gone through once more to find it."""
    if "straddling" in str(error):
        return too_long(_place(source, done + 1, encoding, layout))
    delimiter = DELIMITER_NAMES[layout.delimiter]
    width = len(layout.columns)
    for number, line, row in _numbered(source, encoding, layout):
        if row is None:
            return too_long(f"{source.name}, row {number} (line {line})")
        if len(row) != width:
            unclosed = any("\n" in cell for cell in row)
            return HeadstartError(
                f"this row has {len(row)} {'column' if len(row) == 1 else 'columns'}, the header "
                f"has {width} ({', '.join(layout.columns)}; delimiter: {delimiter})",
                where=f"{source.name}, row {number} (line {line})",
                fix="look for a quotation mark that opens here and is never closed"
                if unclosed
                else f"a text that contains the delimiter ({delimiter}) or a line break must "
                'stand in "quotation marks"',
            )
    return HeadstartError(f"the file cannot be read as CSV: {error}", where=source.name)


def place_of_row(source: Source, number: int, encoding: str) -> str:
    """Where row `number` lies, with its line: quoted line breaks make the two differ."""
    return _place(source, number, encoding, find_layout(source, encoding))


def _place(source: Source, wanted: int, encoding: str, layout: Layout) -> str:
    for number, line, _ in _numbered(source, encoding, layout):
        if number == wanted:
            return f"{source.name}, row {wanted} (line {line})"
    return f"{source.name}, row {wanted}"


def _numbered(
    source: Source, encoding: str, layout: Layout
) -> Iterator[tuple[int, int, list[str] | None]]:
    """Yield (row number, first line of the row, cells); row 1 is the one under the header.

    A row with an endless cell comes without its cells, and is the last.
    """
    csv.field_size_limit(LONGEST_DOCUMENT)
    reader = csv.reader(_lines(source, encoding), delimiter=layout.delimiter)
    number, line = -1, 1
    try:
        for row in reader:
            if row:
                number += 1
            if row and number > 0:
                yield number, line, row
            line = reader.line_num + 1
    except csv.Error:
        yield number + 1, line, None


def _lines(source: Source, encoding: str) -> Iterator[str]:
    """The lines of a file, with their ends."""
    file = io.BufferedReader(_Readable(source, encoding))
    return io.TextIOWrapper(file, encoding="utf-8", newline="")


class _Readable(CheckedFile):
    """`CheckedFile` with the one method that Python's own buffering asks for."""

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
