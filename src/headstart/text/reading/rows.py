"""Every kind of source as rows of (number, text, label), unchecked and in order."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from headstart.errors import HeadstartError
from headstart.text.reading import delimited, named, records
from headstart.text.reading.columns import find_label_column, find_pair_columns, find_text_column
from headstart.text.reading.sources import Source

PAIR_MARK = "\x1e"  # the record separator


class Row(NamedTuple):
    """One row as it stands in the source; checks come later."""

    number: int
    text: object
    label: object
    columns: dict[str, object] | None = None  # all of them, where `keep_columns` says so


@dataclass(frozen=True)
class SourceRows:
    """A source opened for reading: what was found in it, and its rows."""

    source: Source
    found: str
    rows: Iterator[Row]
    label_names: list[str] | None = None

    def where(self, number: int, encoding: str) -> str:
        """Where a row lies, for messages."""
        if self.source.kind in ("csv", "tsv"):
            return delimited.place_of_row(self.source, number, encoding)
        return self.source.row(number)


@dataclass(frozen=True)
class ReadOptions:
    """How to read: the columns' names where they are not found by themselves, the encoding."""

    text_column: str | None = None
    label_column: str | None = None
    encoding: str = "utf-8"
    pairs: bool = False  # two texts per row: see `join_pair`
    second_column: str | None = None
    keep_columns: bool = False  # give every column of a table, not only text and label


def join_pair(first: object, second: object) -> object:
    """Two texts as one, with a mark between them that no text has.

    So whatever splits, compares and counts texts does the same with pairs of them. Where one is
    missing the pair is empty; what is not text stays as it is, for the check that comes later.
    """
    for half in (first, second):
        if half is not None and not isinstance(half, str):
            return half
        if half is None or not half.strip():
            return ""
    return f"{first}{PAIR_MARK}{second}"


def split_pair(pair: str) -> tuple[str, str]:
    first, _, second = pair.partition(PAIR_MARK)
    return first, second


def open_rows(
    source: Source, options: ReadOptions, *, labelled: bool, role: str = "train"
) -> SourceRows:
    """Open a source; without `labelled` only the text is read. `role` picks the Hub's split."""
    if source.kind == "embedded":
        pairs = named.read_embedded(source.name)
        return _of_pairs(source, named.CREDITS[source.name], pairs)
    if (reader := source.reader) is not None:
        if labelled:
            pairs = reader.read_labelled(source, options.encoding)
            return _of_pairs(source, f"{reader.description} with labels", pairs)
        texts = reader.read_texts(source, options.encoding)
        return _of_texts(source, reader.description, texts)
    if source.kind == "text":
        if labelled:
            raise HeadstartError(
                "plain text has no labels",
                where=source.name,
                fix="give unlabelled text with --corpus; labelled text as CSV, TSV, JSON Lines "
                "or Parquet with a text and a label column",
            )
        return _of_texts(source, "one text per line", records.read_lines(source, options.encoding))
    return _open_table(source, options, labelled, role)


def _of_pairs(source: Source, found: str, pairs: Iterator[tuple[str, str]]) -> SourceRows:
    return SourceRows(
        source, found, (Row(n, text, label) for n, (text, label) in enumerate(pairs, start=1))
    )


def _of_texts(source: Source, found: str, texts: Iterator[str]) -> SourceRows:
    return SourceRows(source, found, (Row(n, text, None) for n, text in enumerate(texts, start=1)))


def _open_table(source: Source, options: ReadOptions, labelled: bool, role: str) -> SourceRows:
    def choose(columns: list[str]) -> list[str]:
        if options.pairs:
            first, second = options.text_column, options.second_column
            wanted = [*find_pair_columns(columns, first, second, source.name)]
        else:
            wanted = [find_text_column(columns, options.text_column, source.name)]
        if labelled:
            wanted.append(find_label_column(columns, options.label_column, source.name))
        elif options.keep_columns:
            wanted += [name for name in columns if name not in wanted]
        return wanted

    label_names = None
    numbered: Iterable[tuple[int, tuple[Any, ...]]]
    if source.kind in ("csv", "tsv"):
        layout = delimited.find_layout(source, options.encoding)
        wanted = choose(list(layout.columns))
        found = f"{delimited.DELIMITER_NAMES[layout.delimiter]}-separated"
        cells = delimited.read_delimited(source, layout, wanted, options.encoding)
        numbered = enumerate(cells, start=1)
    elif source.kind in ("jsonl", "json"):
        read = records.read_json_lines if source.kind == "jsonl" else records.read_json
        wanted = choose(_keys(read(source, options.encoding)))
        found = "JSON Lines" if source.kind == "jsonl" else "JSON"
        numbered = (
            (number, tuple(record.get(name) for name in wanted))
            for number, record in read(source, options.encoding)
        )
    elif source.kind == "parquet":
        file = records.ParquetRows(source)
        wanted = choose(file.columns)
        found = "Parquet"
        label_names = file.label_names(wanted[-1]) if labelled else None
        numbered = enumerate(file.rows(wanted), start=1)
    else:
        opened = named.open_hub(source.name)
        split = opened.split(role)
        if split is None:
            raise HeadstartError(f"the dataset has no {role} split", where=source.name)
        wanted = choose(named.columns_of(split))
        found = f"Hugging Face Hub, revision {opened.revision[:12]}"
        label_names = named.label_names_of(split, wanted[-1]) if labelled else None
        numbered = enumerate(named.rows_of(split, wanted), start=1)
    texts = [f"'{name}'" for name in wanted[: 2 if options.pairs else 1]]
    columns = f"text: {' and '.join(texts)}" + (f", label: '{wanted[-1]}'" if labelled else "")
    rows = (
        Row(
            n,
            join_pair(cells[0], cells[1]) if options.pairs else cells[0],
            cells[-1] if labelled else None,
            dict(zip(wanted, cells, strict=True)) if options.keep_columns else None,
        )
        for n, cells in numbered
    )
    return SourceRows(source, f"{found}, {columns}", rows, label_names)


def _keys(numbered: Iterator[tuple[int, records.Record]]) -> list[str]:
    """The keys of the first hundred records, in order of appearance."""
    keys: dict[str, None] = {}
    for _, record in itertools.islice(numbered, 100):
        keys.update(dict.fromkeys(record))
    return list(keys)
