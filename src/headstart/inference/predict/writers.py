"""Writers of predictions: the columns of the input are kept, and those of the answer added.

An answer's column whose name the input already has is called `predicted_…`: nothing is lost.
"""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.errors import HeadstartError
from headstart.files import harmless

Answered = tuple[Any, Any]  # a row and its answer; None where the row has a problem
Kept = Callable[[Any], Mapping[str, Any]]  # the columns of a row
Fields = Callable[[Any], Mapping[str, Any]]  # the fields of an answer, or of None


class Writer(Protocol):
    """Receives rows with their answers, in order."""

    def write(self, answered: Sequence[Answered]) -> None: ...

    def close(self) -> None: ...


class TextWriter:
    """A text file to which answers are added."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", encoding="utf-8", newline="")

    def close(self) -> None:
        self.file.close()


class RecordWriter(ABC):
    """One record per row: `row`, the input's columns, the answer's fields, `error`.

    Which columns there are is decided by the first rows that are written.
    """

    any_columns = False  # whether later rows may bring further columns

    def __init__(self, kept: Kept, fields: Fields) -> None:
        self.kept = kept
        self.fields = fields
        self.columns: list[str] | None = None
        self.names: dict[str, str] = {}  # of the answer's fields in the file

    def write(self, answered: Sequence[Answered]) -> None:
        """Write some rows with their answers."""
        kept = [self.kept(row) for row, _ in answered]
        if self.columns is None:
            self.columns = list(dict.fromkeys(name for columns in kept for name in columns))
            for field in ("row", *self.fields(None), "error"):
                self.names[field] = _free_name(field, self.columns)
            self.begin(kept)
        records = []
        for (row, answer), columns in zip(answered, kept, strict=True):
            self._check(row.number, columns)
            answered_fields = {**self.fields(answer), "error": row.problem}
            named = {self.names[field]: value for field, value in answered_fields.items()}
            records.append({self.names["row"]: row.number, **columns, **named})
        self.write_records(records)

    def begin(self, kept: Sequence[Mapping[str, Any]]) -> None:
        """Called before the first records, when the columns are known."""
        return

    @abstractmethod
    def write_records(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Write records; columns of the input that a row lacks are missing in its record."""

    @property
    def header(self) -> list[str]:
        """All columns in order."""
        middle = [name for field, name in self.names.items() if field not in ("row", "error")]
        return [self.names["row"], *(self.columns or []), *middle, self.names["error"]]

    def _check(self, number: int, columns: Mapping[str, Any]) -> None:
        """A column that comes too late is refused rather than lost."""
        late = [name for name in columns if name not in (self.columns or [])]
        if self.any_columns:
            late = [name for name in late if name in self.names.values()]
        if late:
            raise HeadstartError(
                f"row {number:,} has a column '{late[0]}' that the first rows do not have",
                where=f"row {number:,}",
                fix="give every row the same columns"
                + ("" if self.any_columns else ", or let the name of --output end in .jsonl"),
            )


class JsonLines(RecordWriter):
    """One JSON document per line."""

    any_columns = True

    def __init__(self, path: Path, kept: Kept, fields: Fields) -> None:
        super().__init__(kept, fields)
        self.file = path.open("w", encoding="utf-8", newline="")

    def write_records(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self.file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")

    def close(self) -> None:
        self.file.close()


class Csv(RecordWriter):
    """Comma-separated, with a header; numbers with six digits.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """

    def __init__(self, path: Path, kept: Kept, fields: Fields) -> None:
        super().__init__(kept, fields)
        self.file = path.open("w", encoding="utf-8", newline="")
        self.rows = csv.writer(self.file)

    def begin(self, kept: Sequence[Mapping[str, Any]]) -> None:
        self.rows.writerow(harmless(name) for name in self.header)

    def write_records(self, records: Sequence[Mapping[str, Any]]) -> None:
        answers = set(self.names.values())
        for record in records:
            cells = ((name, record.get(name)) for name in self.header)
            self.rows.writerow(
                harmless(_cell(value, short=name in answers)) for name, value in cells
            )

    def close(self) -> None:
        self.file.close()


class Parquet(RecordWriter):
    """Columns of the input keep their type if it is a number or text; others become JSON."""

    def __init__(self, path: Path, kept: Kept, fields: Fields) -> None:
        super().__init__(kept, fields)
        self.path = path
        self.file: Any = None
        self.types: dict[str, Any] = {}

    def begin(self, kept: Sequence[Mapping[str, Any]]) -> None:
        for name in self.header:
            self.types[name] = pa.float64()  # probabilities
        for field in ("row", "label", "error"):
            if field in self.names:
                self.types[self.names[field]] = pa.int64() if field == "row" else pa.string()
        for name in self.columns or []:
            self.types[name] = _type_of([columns.get(name) for columns in kept])
        self.file = parquet.ParquetWriter(self.path, pa.schema(self.types))

    def write_records(self, records: Sequence[Mapping[str, Any]]) -> None:
        arrays = []
        for name, kind in self.types.items():
            values = [record.get(name) for record in records]
            if kind == pa.string():
                values = [None if value is None else _cell(value) for value in values]
            try:
                arrays.append(pa.array(values, kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise HeadstartError(
                    f"column '{name}' holds values of several types: {error}",
                    fix="let the name of --output end in .jsonl or .csv",
                ) from None
        self.file.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(self.types)))

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def _free_name(field: str, taken: Sequence[str]) -> str:
    while field in taken:
        field = f"predicted_{field}"
    return field


def _cell(value: Any, *, short: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and short:
        return f"{value:.6g}"
    if isinstance(value, str | int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _type_of(values: Sequence[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {bool}:
        return pa.bool_()
    if kinds and kinds <= {int}:
        return pa.int64()
    if kinds and kinds <= {int, float}:
        return pa.float64()
    return pa.string()
