"""Every kind of source as rows of (number, text, label), unchecked and in order."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headstart.errors import HeadstartError
from headstart.text.reading import csv_files, named_sources, records
from headstart.text.reading.sources import Source

# fmt: off
TEXT_NAMES = (
    "text", "texts", "review", "reviews", "review_text", "review_body", "sentence", "sentences",
    "content", "contents", "document", "comment", "comments", "body", "message", "tweet", "post",
    "article", "passage", "utterance", "texte", "avis", "phrase", "commentaire", "contenu",
)
LABEL_NAMES = (
    "label", "labels", "sentiment", "class", "classes", "category", "target", "tag", "intent",
    "topic", "polarity", "rating", "stars", "classe", "catégorie", "étiquette",
)
# Where one column is left beside the text, it is the label, unless it has one of these names.
NO_LABEL_NAMES = (
    "", "id", "ids", "idx", "index", "number", "row", "date", "time", "timestamp", "url", "title",
    "author", "source", "file", "filename", "lang", "language",
)
# Names of the two columns of text pairs.
PAIR_NAMES = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"),
    ("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b"), ("first", "second"),
    ("question1", "question2"), ("question", "answer"), ("query", "document"),
    ("question", "sentence"),
)
# fmt: on


def find_text_column(columns: Sequence[str], wanted: str | None, where: str) -> str:
    """The column that holds the text."""
    if wanted is None and len(columns) == 1:
        return columns[0]
    return _find("text", columns, TEXT_NAMES, wanted, where)


def find_pair_columns(
    columns: Sequence[str], first: str | None, second: str | None, where: str
) -> tuple[str, str]:
    """The two columns whose texts belong together."""
    if first is not None or second is not None:
        return (
            _find("text", columns, TEXT_NAMES, first, where),
            _find("second", columns, (), second, where),
        )
    by_name = {column.strip().casefold(): column for column in columns}
    found = [pair for pair in PAIR_NAMES if by_name.keys() >= set(pair)]
    if len(found) != 1:
        listed = ", ".join(f"'{_shorten(column)}'" for column in columns)
        raise HeadstartError(
            f"no two text columns were found; the columns are {listed}"
            if not found
            else f"several pairs of columns could be the texts: {found}",
            where=where,
            fix="say which ones they are: --text-column NAME --second-column NAME",
            code="second-column",
        )
    return by_name[found[0][0]], by_name[found[0][1]]


def find_label_column(
    columns: Sequence[str], wanted: str | None, where: str, *, texts: Sequence[str] = ()
) -> str:
    """The column that holds the label: by its name, or the only one that is left beside `texts`."""
    if wanted is None and texts:
        match [column for column in columns if column not in texts]:
            case [only] if only.strip().casefold() not in (*NO_LABEL_NAMES, *TEXT_NAMES):
                return only
    return _find("label", columns, LABEL_NAMES, wanted, where)


def _find(
    role: str, columns: Sequence[str], names: Sequence[str], wanted: str | None, where: str
) -> str:
    listed = ", ".join(f"'{_shorten(column)}'" for column in columns) or "none"
    option = f"--{role}-column"
    if wanted is not None:
        found = [column for column in columns if column == wanted]
        if not found:
            raise HeadstartError(
                f"there is no column '{wanted}' ({option}); the columns are {listed}",
                where=where,
                code=f"{role}-column",
            )
    else:
        found = [column for column in columns if column.strip().casefold() in names]
        if not found:
            raise HeadstartError(
                f"no {role} column was found; the columns are {listed}",
                where=where,
                fix=f"say which one it is: {option} NAME; if these are not names but data, "
                "give the file a first row with the names, such as text,label",
                code=f"{role}-column",
            )
    if len(found) > 1:
        unclear = ", ".join(f"'{column}'" for column in found)
        same_name = len(set(found)) == 1
        raise HeadstartError(
            f"several columns could be the {role}: {unclear}; the columns are {listed}",
            where=where,
            fix="give each column a name of its own in the first row"
            if same_name
            else f"say which one it is: {option} NAME",
            code="column-names" if same_name else f"{role}-column",
        )
    return found[0]


def _shorten(name: str, length: int = 40) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


# One of the 66 code points that Unicode keeps for use inside programs: no white space, no letter.
PAIR_MARK = "\ufdd0"


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
            return csv_files.place_of_row(self.source, number, encoding)
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
    """Two texts as one, with a mark between them that neither has: there it becomes a blank.

    So whatever splits, compares and counts texts does the same with pairs of them. Where one is
    missing the pair is empty; what is not text stays as it is, for the check that comes later.
    """
    for half in (first, second):
        if half is not None and not isinstance(half, str):
            return half
        if half is None or not half.strip():
            return ""
    return PAIR_MARK.join(str(half).replace(PAIR_MARK, " ") for half in (first, second))


def split_pair(pair: str) -> tuple[str, str]:
    """The two texts of a pair that `join_pair` made."""
    first, _, second = pair.partition(PAIR_MARK)
    return first, second


def open_rows(
    source: Source, options: ReadOptions, *, labelled: bool, role: str = "train"
) -> SourceRows:
    """Open a source; without `labelled` only the text is read. `role` picks the Hub's split."""
    if source.kind == "embedded":
        pairs = named_sources.read_embedded(source.name)
        return _of_pairs(source, named_sources.CREDITS[source.name], pairs)
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
                code="no-labels",
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
            wanted.append(
                find_label_column(columns, options.label_column, source.name, texts=wanted)
            )
        elif options.keep_columns:
            wanted += [name for name in columns if name not in wanted]
        return wanted

    label_names = None
    numbered: Iterable[tuple[int, tuple[Any, ...]]]
    if source.kind in ("csv", "tsv"):
        layout = csv_files.find_layout(source, options.encoding)
        wanted = choose(list(layout.columns))
        found = f"{csv_files.DELIMITER_NAMES[layout.delimiter]}-separated"
        cells = csv_files.read_delimited(source, layout, wanted, options.encoding)
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
        opened = named_sources.open_hub(source.name)
        split = opened.split(role)
        if split is None:
            raise HeadstartError(f"the dataset has no {role} split", where=source.name)
        wanted = choose(named_sources.columns_of(split))
        found = f"Hugging Face Hub, revision {opened.revision[:12]}"
        label_names = named_sources.label_names_of(split, wanted[-1]) if labelled else None
        numbered = enumerate(named_sources.rows_of(split, wanted), start=1)
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


def find_columns(source: Source, encoding: str = "utf-8") -> list[str]:
    """The names of a table's columns, from its beginning; none where the source is no table."""
    if source.kind in ("csv", "tsv"):
        return list(csv_files.find_layout(source, encoding).columns)
    if source.kind in ("jsonl", "json"):
        read = records.read_json_lines if source.kind == "jsonl" else records.read_json
        return _keys(read(source, encoding))
    return records.ParquetRows(source).columns if source.kind == "parquet" else []


def _keys(numbered: Iterator[tuple[int, records.Record]]) -> list[str]:
    """The keys of the first hundred records, in order of appearance."""
    keys: dict[str, None] = {}
    for _, record in itertools.islice(numbered, 100):
        keys.update(dict.fromkeys(record))
    return list(keys)
