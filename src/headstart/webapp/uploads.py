"""Uploads: a stream becomes a file under a name of our own, within limits; its first rows."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any

from headstart.data.columns import Columns, ReadOptions, choose_columns
from headstart.data.readers import open_rows, open_table
from headstart.data.sources import READABLE, SUFFIXES, TABLES, check_kind, find_source
from headstart.errors import HeadstartError
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
    table = open_table(source)
    if source.kind not in TABLES:
        return {"columns": [], "rows": [], "text_column": "", "label_column": ""}
    opened = open_rows(source, ReadOptions(text_column=table.names[0]), all_columns=True)
    rows = []
    for row in islice(opened, SHOWN_ROWS):
        if row.problem is not None and row.problem.code == "encoding":
            raise row.problem
        rows.append([_cell(row.columns.get(name)) for name in table.names[:SHOWN_COLUMNS]])
    try:
        found = choose_columns(table.names, table.sample, ReadOptions())
    except HeadstartError:  # the user has to choose
        found = Columns()
    return {
        "columns": table.names,
        "rows": rows,
        "text_column": found.text,
        "label_column": found.label or "",
    }


def _cell(value: object) -> str:
    words = "" if value is None else " ".join(str(value).split())
    return words if len(words) <= SHOWN_CHARACTERS else words[: SHOWN_CHARACTERS - 1] + "…"


def suffix_of(name: str) -> str:
    """The suffix of a file of predictions for an upload: tables stay tables, text becomes CSV."""
    kind = check_kind(Path(name))[0]
    return {"jsonl": ".jsonl", "json": ".jsonl", "parquet": ".parquet"}.get(kind, ".csv")
