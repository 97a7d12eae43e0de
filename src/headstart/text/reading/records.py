"""JSON Lines, JSON and Parquet files as records.

JSON goes through Python's own parser: Arrow's cannot read a top-level list, fixes a column's
type after the first block, and names no row of the file when it fails.
"""

import json
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.errors import HeadstartError
from headstart.text.reading.sources import Source
from headstart.text.reading.stream import open_unzipped, read_block, read_checked

Record = dict[str, Any]


def read_lines(source: Source, encoding: str) -> Iterator[str]:
    """Yield the lines of a text file without their ends (line feed, or carriage return + it)."""
    unfinished: list[bytes] = []
    for block in read_checked(source, encoding):
        # Only line feeds end a line: str.splitlines would also cut at rarer characters.
        whole, line_feed, rest = block.rpartition(b"\n")
        if line_feed:
            lines = b"".join([*unfinished, whole]).decode()
            yield from lines.replace("\r\n", "\n").removesuffix("\r").split("\n")
            unfinished = []
        if rest:
            unfinished.append(rest)
    if unfinished:
        yield b"".join(unfinished).decode().removesuffix("\r")


def read_json_lines(source: Source, encoding: str) -> Iterator[tuple[int, Record]]:
    """Yield (line number, record); blank lines are passed over."""
    for number, line in enumerate(read_lines(source, encoding), start=1):
        if line.strip():
            where = f"{source.name}, line {number}"
            yield number, _record(_parse(line, where), where)


def read_json(source: Source, encoding: str) -> Iterator[tuple[int, Record]]:
    """Yield the numbered records of a list, of an object with one list, or of JSON Lines."""
    whole = b"".join(read_checked(source, encoding, lines=False)).decode()
    if not whole.strip():
        return
    try:
        document = json.loads(whole)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and whole.lstrip().startswith("{"):
            yield from read_json_lines(source, encoding)
            return
        raise _unparsable(error, f"{source.name}, line {error.lineno}") from None
    except (ValueError, RecursionError) as error:
        raise _unparsable(error, source.name) from None
    if isinstance(document, dict):
        lists = [key for key, value in document.items() if isinstance(value, list)]
        if len(lists) != 1:
            raise HeadstartError(
                "the JSON file must hold a list of objects, or one object with one such list; "
                f"this object has {len(lists)} lists ({', '.join(lists) or 'none'})",
                where=source.name,
                fix='the form is [{"text": "…", "label": "…"}, …]',
            )
        document = document[lists[0]]
    if not isinstance(document, list):
        raise HeadstartError(
            "the JSON file holds no list of objects",
            where=source.name,
            fix='the form is [{"text": "…", "label": "…"}, …]',
        )
    for number, item in enumerate(document, start=1):
        yield number, _record(item, f"{source.name}, row {number}")


def _parse(line: str, where: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unparsable(error, where) from None


def _unparsable(error: ValueError | RecursionError, where: str) -> HeadstartError:
    what = str(error)  # nested too deeply, or a number of thousands of digits
    if isinstance(error, json.JSONDecodeError):
        what = f"{error.msg} at column {error.colno}"
    return HeadstartError(
        f"this is not valid JSON: {what}",
        where=where,
        fix='JSON Lines (.jsonl) is one object per line: {"text": "…", "label": "…"}',
    )


def _record(value: object, where: str) -> Record:
    if not isinstance(value, dict):
        raise HeadstartError(
            f"an object was expected, this is a {type(value).__name__}",
            where=where,
            fix='the form is {"text": "…", "label": "…"}',
        )
    return value


class ParquetRows:
    """A Parquet file: its columns, its label names if it says them, and its rows in batches."""

    def __init__(self, source: Source) -> None:
        self._file: BinaryIO = open_unzipped(source)
        if source.gzipped:  # Parquet is read from its end: a stream will not do
            self._file = _unzipped_copy(self._file, source)
        try:
            self._parquet = parquet.ParquetFile(self._file)
        except pa.ArrowInvalid as error:
            raise HeadstartError(
                f"the file cannot be read as Parquet: {error}", where=source.name
            ) from error
        self.columns = list(self._parquet.schema_arrow.names)

    def label_names(self, column: str) -> list[str] | None:
        """The names that Hugging Face `datasets` keeps in the file for numbered classes."""
        metadata = self._parquet.schema_arrow.metadata or {}
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features")
        return cast("list[str] | None", ((features or {}).get(column) or {}).get("names"))

    def rows(self, columns: list[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the wanted columns of every row."""
        for batch in self._parquet.iter_batches(batch_size=4096, columns=columns):
            yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _unzipped_copy(file: BinaryIO, source: Source) -> BinaryIO:
    copy = tempfile.TemporaryFile()  # noqa: SIM115 — lives as long as the reader
    while block := read_block(file, source):
        copy.write(block)
    copy.seek(0)
    return cast(BinaryIO, copy)
