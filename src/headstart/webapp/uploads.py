"""Uploads: a stream becomes a file under a name of our own, within limits; its first rows."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any

from headstart.errors import HeadstartError
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import (
    ReadOptions,
    find_columns,
    find_label_column,
    find_text_column,
)
from headstart.text.reading.sources import READABLE, SUFFIXES, TABLES, check_kind, find_source
from headstart.webapp.workspace import clean_name

MEGABYTE = 1_000_000
SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_CHARACTERS = 5, 12, 160


class TooLargeError(HeadstartError):
    """An upload beyond the limit."""


def file_name(role: str, given: str) -> str:
    """The name under which an upload is kept: its role, and a known suffix.

    Example
    -------
    >>> file_name("data", "../../my reviews.CSV.gz")
    'data.csv.gz'
    """
    shown = clean_name(given)
    kind, gzipped = check_kind(Path(shown))
    suffix = next((end for end, known in SUFFIXES.items() if known == kind), None)
    if suffix is None or (role == "data" and kind not in TABLES):
        raise HeadstartError(
            "a file with labels is a table, and this is none",
            where=shown,
            fix="drop text without labels as the second file; with labels it is a CSV, TSV, JSON "
            "or Parquet file with a column for the text and one for the label"
            if kind == "text"
            else f"give one of these: {READABLE}",
        )
    return f"{role}{suffix}{'.gz' if gzipped else ''}"


async def receive(
    stream: AsyncIterator[bytes], folder: Path, role: str, given: str, *, megabytes: int
) -> dict[str, Any]:
    """Write an upload into `folder`; returns its entry in the study's record."""
    name = file_name(role, given)
    temporary = folder / f".{role}-{token_hex(4)}.part"  # two tabs may send one at once
    size = 0
    try:
        with temporary.open("wb") as file:
            async for block in stream:
                size += len(block)
                if size > megabytes * MEGABYTE:
                    raise TooLargeError(
                        f"the file is larger than {megabytes:,} MB",
                        where=clean_name(given),
                        fix="give a smaller one, or start the app with a higher --upload-mb",
                    )
                file.write(block)
        if not size:
            raise HeadstartError("the file is empty", where=clean_name(given))
        temporary.replace(folder / name)
    finally:
        temporary.unlink(missing_ok=True)
    return {"file": name, "name": clean_name(given), "bytes": size}


def first_rows(path: Path, name: str) -> dict[str, Any]:
    """The columns of a table and its first rows, shortened, as far as they can be read.

    Parameters
    ----------
    path : the upload.
    name : what its owner calls it, for messages.
    """
    source = replace(find_source(path), name=name)
    columns = find_columns(source)
    if not columns:
        return {"columns": [], "rows": [], "text_column": "", "label_column": ""}
    lenient = LenientRows(path, ReadOptions(text_column=columns[0]))
    rows = [
        [_cell(row.columns.get(name)) for name in columns[:SHOWN_COLUMNS]]
        for row in islice(iter(lenient), SHOWN_ROWS)
    ]
    text = _found(find_text_column, columns)
    label = partial(find_label_column, texts=[text] if text else [])
    return {
        "columns": columns,
        "rows": rows,
        "text_column": text,
        "label_column": _found(label, columns),
    }


def _found(find: Callable[[Sequence[str], str | None, str], str], columns: list[str]) -> str:
    """The column that its name tells; empty where a person has to say."""
    try:
        return find(columns, None, "")
    except HeadstartError:
        return ""


def _cell(value: object) -> str:
    words = "" if value is None else " ".join(str(value).split())
    return words if len(words) <= SHOWN_CHARACTERS else words[: SHOWN_CHARACTERS - 1] + "…"


def suffix_of(name: str) -> str:
    """The suffix of a file of predictions for an upload: tables stay tables, text becomes CSV."""
    kind = check_kind(Path(name))[0]
    return {"jsonl": ".jsonl", "json": ".jsonl", "parquet": ".parquet"}.get(kind, ".csv")
