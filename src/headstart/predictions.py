"""Files of inputs and predictions: read row by row, written in chunks, in constant memory.

Columns of the input stay, and those of the prediction are added. A column of the prediction whose
name the input already has is called `predicted_…`. A row that cannot be read stays in its place,
with the reason in `error`.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.errors import HeadstartError
from headstart.files import check_file, harmless, replacing
from headstart.tasks.spans import Spans
from headstart.tasks.tagging import Tagging
from headstart.tasks.task import Prediction, Task
from headstart.text.checking.checks import LABELS_MARK, checked_text
from headstart.text.reading.conll import LenientSentences, ends_in_tags
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import ReadOptions, split_pair
from headstart.text.reading.sources import kind_by_suffix
from headstart.text.reading.squad import LenientQuestions
from headstart.text.tokenizers.words import split_words

CHUNK_ROWS = 1_024
CHUNK_CHARACTERS = 4_000_000
NO_TAG = "_"  # of a word that was not read, as in CoNLL


@dataclass(frozen=True)
class InputRow:
    """One row of a file: what `Run.predict` takes, or the problem with it."""

    number: int
    given: Any  # a text, a tuple of two texts, or a list of words
    problem: str | None
    columns: Mapping[str, Any]
    id: str = ""

    @property
    def size(self) -> int:
        return len(self.given) if isinstance(self.given, str) else sum(map(len, self.given))


Predicted = tuple[InputRow, Prediction | None]


def check_inputs(task: Task[Any], inputs: Sequence[Any]) -> None:
    """Reject inputs that are not text, empty, or not as many texts as the task needs.

    Parameters
    ----------
    task : Task
    inputs : sequence
        Texts; tuples of two texts for pairs and spans; also lists of words for tagging.
    """
    if isinstance(inputs, str):
        raise HeadstartError("a list of texts is expected, not one text", fix="give [text]")
    names = [name.replace("_", " ") for name in task.input_names]
    for number, given in enumerate(inputs, start=1):
        texts = [" ".join(given)] if task.name == "tagging" and isinstance(given, list) else given
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, Sequence) or len(texts) != len(names):
            form = f"({', '.join(names)})" if len(names) > 1 else "one text"
            raise HeadstartError(
                f"an input of the task {task.name} is {form}",
                where=f"input {number}",
                fix="give a tuple of two texts" if len(names) > 1 else "give a string",
            )
        for name, text in zip(names, texts, strict=True):
            where = f"{name} {number}"
            if not checked_text(text, lambda where=where: where):  # type: ignore[misc]
                raise HeadstartError(f"the {name} is empty", where=where, fix="leave it out")


def group_texts(task: Task[Any], texts: Sequence[str]) -> list[Any]:
    """Group a flat list of texts into inputs of the task: two by two for pairs and spans."""
    if task.texts_per_row == 1:
        return list(texts)
    if len(texts) % 2:
        example = " ".join(f'"the {name.replace("_", " ")}"' for name in task.input_names)
        raise HeadstartError(
            f"this run predicts {task.name}: texts come in pairs, and {len(texts)} "
            f"{'was' if len(texts) == 1 else 'were'} given",
            fix=f"headstart predict RUN {example}",
        )
    return list(zip(texts[::2], texts[1::2], strict=True))


def input_columns(task: Task[Any], given: Any) -> dict[str, Any]:
    """Name the texts of an input."""
    texts = [given] if task.texts_per_row == 1 else given
    return dict(zip(task.input_names, texts, strict=True))


class InputRows:
    """The rows of a file to predict on, in order.

    A file for tagging is CoNLL if its name or its content says so, otherwise texts. One for spans
    is SQuAD's JSON, otherwise a table with a question and a context in each row.
    """

    def __init__(self, task: Task[Any], source: str | Path, options: ReadOptions) -> None:
        path = Path(source).expanduser()
        kind, _ = kind_by_suffix(path)
        self._rows: Any
        self._convert: Callable[[Any], InputRow] = _text_row
        if isinstance(task, Spans) and kind == "json":
            self._rows, self._convert = LenientQuestions(source, options.encoding), _squad_row
        elif isinstance(task, Spans):
            question = options.text_column or "question"
            context = options.second_column or "context"
            named = replace(options, pairs=True, text_column=question, second_column=context)
            self._rows, self._convert = LenientRows(source, named), _question_row
        elif isinstance(task, Tagging) and _is_conll(path, kind, options, task.labels):
            self._rows, self._convert = LenientSentences(source, options.encoding), _conll_row
        else:
            self._rows = LenientRows(source, replace(options, pairs=task.texts_per_row == 2))
            self._convert = _pair_row if task.texts_per_row == 2 else _text_row

    @property
    def share(self) -> float | None:
        """The share of the file that was read, where known."""
        share: float | None = self._rows.share
        return share

    def __iter__(self) -> Iterator[InputRow]:
        return map(self._convert, self._rows)

    def chunks(self) -> Iterator[list[InputRow]]:
        """Group rows into chunks of limited size."""
        chunk: list[InputRow] = []
        size = 0
        for row in self:
            chunk.append(row)
            size += row.size
            if len(chunk) >= CHUNK_ROWS or size >= CHUNK_CHARACTERS:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk


def _is_conll(path: Path, kind: str | None, options: ReadOptions, tags: Sequence[str]) -> bool:
    if ".conll" in [suffix.lower() for suffix in path.suffixes[-2:]]:
        return True
    return kind in ("text", None) and path.is_file() and ends_in_tags(path, options.encoding, tags)


def _text_row(row: Any) -> InputRow:
    return InputRow(row.number, row.text, row.problem, row.columns or {"text": row.text})


def _pair_row(row: Any) -> InputRow:
    return replace(_text_row(row), given=split_pair(row.text))


def _question_row(row: Any) -> InputRow:
    name = str(row.number)
    problem = row.problem if row.text else "the question or its text is empty"
    columns = {"id": name, **row.columns}
    return InputRow(row.number, split_pair(row.text), problem, columns, name)


def _squad_row(row: Any) -> InputRow:
    columns = {"id": row.id, "question": row.question}  # the texts stand in many rows
    return InputRow(row.number, (row.question, row.text), row.problem, columns, row.id)


def _conll_row(row: Any) -> InputRow:
    words = [row.text[start:end] for start, end in row.words]
    return InputRow(row.number, words, row.problem, {"text": row.text})


def check_output(task: Task[Any], source: str | Path, output: Path) -> None:
    """Reject an unknown format, and a file that would overwrite the input."""
    if output.suffix not in task.file_suffixes:
        raise HeadstartError(
            f"predictions of the task {task.name} cannot be written as '{output.suffix}'",
            where=output,
            fix=f"let the name end in {' or '.join(task.file_suffixes)}",
        )
    check_file(output.expanduser())
    given = Path(source).expanduser()
    if not given.exists():
        return
    real, target = given.resolve(), output.expanduser().resolve()
    same = target == real or (target.exists() and target.samefile(real))
    if same or (real.is_dir() and real in target.parents):
        raise HeadstartError(
            "the output would overwrite the input" if same else "the output lies in the input",
            where=output,
            fix="choose another file for --output",
        )


def flat_prediction(task: Task[Any], prediction: Prediction | None) -> dict[str, Any]:
    """Flatten a prediction of classes for tables: the label(s), and p(name) of each class."""
    name = task.prediction_fields[0]
    label = None if prediction is None else prediction[name]
    label = LABELS_MARK.join(label) if isinstance(label, list) else label
    chances = dict.fromkeys(task.labels) if prediction is None else prediction["probabilities"]
    return {name: label, **{f"p({one})": p for one, p in chances.items()}}


@contextmanager
def prediction_file(output: Path, task: Task[Any]) -> Iterator["PredictionFile"]:
    """Open a file for predictions; it replaces `output` in one step when all is written."""
    with replacing(output) as temporary:
        file = PredictionFile(temporary, output.suffix, task)
        try:
            yield file
        finally:
            file.close()


class PredictionFile:
    """Writes rows with their predictions as JSON Lines, CSV, Parquet, CoNLL or SQuAD's JSON."""

    def __init__(self, path: Path, suffix: str, task: Task[Any]) -> None:
        self.path, self.suffix, self.task = path, suffix, task
        self.names: dict[str, str] = {}  # of the prediction's fields in the file
        self.columns: list[str] = []  # of the input: those of the first chunk
        self.types: dict[str, Any] = {}  # of Parquet's columns
        self.ids: set[str] = set()  # of SQuAD's questions
        self.table: Any = None
        self.text = None
        if suffix != ".parquet":
            self.text = path.open("w", encoding="utf-8", newline="")

    def write(self, chunk: Sequence[Predicted]) -> None:
        """Write some rows with their predictions, in order."""
        if self.suffix == ".conll":
            self._write_conll(chunk)
        elif self.suffix == ".json":
            self._write_squad(chunk)
        else:
            self._write_records(chunk)

    def close(self) -> None:
        """Finish the file."""
        if self.table is not None:
            self.table.close()
        if self.text is not None:
            if self.suffix == ".json":
                self.text.write("\n}\n")
            self.text.close()

    def _fields(self, prediction: Prediction | None) -> Mapping[str, Any]:
        if self.suffix != ".jsonl":
            return flat_prediction(self.task, prediction)
        return prediction or dict.fromkeys(self.task.prediction_fields)

    def _write_records(self, chunk: Sequence[Predicted]) -> None:
        if not self.names:
            self._begin(chunk)
        records = []
        for row, prediction in chunk:
            self._check_columns(row)
            fields = {**self._fields(prediction), "error": row.problem}
            named = {self.names[field]: value for field, value in fields.items()}
            records.append({self.names["row"]: row.number, **row.columns, **named})
        if self.suffix == ".parquet":
            self.table.write_table(self._arrow(records))
            return
        assert self.text is not None
        if self.suffix == ".jsonl":
            for record in records:
                self.text.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
            return
        added = set(self.names.values())
        lines = csv.writer(self.text)
        for record in records:
            cells = [(name, record.get(name)) for name in self._header()]
            lines.writerow(harmless(_cell(value, short=name in added)) for name, value in cells)

    def _begin(self, chunk: Sequence[Predicted]) -> None:
        """Decide on the columns from the first chunk, and write the header."""
        self.columns = list(dict.fromkeys(name for row, _ in chunk for name in row.columns))
        for field in ("row", *self._fields(None), "error"):
            name = field
            while name in self.columns:
                name = f"predicted_{name}"
            self.names[field] = name
        if self.suffix == ".csv":
            csv.writer(self.text).writerow(map(harmless, self._header()))  # type: ignore[arg-type]
        if self.suffix == ".parquet":
            texts = (self.task.prediction_fields[0], "error")
            for field, name in self.names.items():
                self.types[name] = pa.string() if field in texts else pa.float64()
            self.types[self.names["row"]] = pa.int64()
            for name in self.columns:
                self.types[name] = _arrow_type([row.columns.get(name) for row, _ in chunk])
            self.types = {name: self.types[name] for name in self._header()}
            self.table = parquet.ParquetWriter(self.path, pa.schema(self.types))

    def _header(self) -> list[str]:
        row, *fields = self.names.values()
        return [row, *self.columns, *fields]

    def _check_columns(self, row: InputRow) -> None:
        """Reject a column that comes too late to be written."""
        late = [name for name in row.columns if name not in self.columns]
        if self.suffix == ".jsonl":  # which may get further columns, but no second one of a name
            late = [name for name in late if name in self.names.values()]
        if late:
            raise HeadstartError(
                f"row {row.number:,} has a column '{late[0]}' that the first rows do not have",
                where=f"row {row.number:,}",
                fix="give every row the same columns, or let the name of --output end in .jsonl",
            )

    def _arrow(self, records: Sequence[Mapping[str, Any]]) -> Any:
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
        return pa.Table.from_arrays(arrays, schema=pa.schema(self.types))

    def _write_conll(self, chunk: Sequence[Predicted]) -> None:
        """Write a word and its tag per line; a comment says why a sentence has no tags."""
        assert self.text is not None
        for row, found in chunk:
            if found is not None:
                tagged = zip(found["words"], found["tags"], strict=True)
                lines = [f"{word}\t{tag or NO_TAG}" for word, tag in tagged]
            else:
                words = row.given
                if isinstance(words, str):
                    words = [words[start:end] for start, end in split_words(words)]
                lines = [f"# row {row.number}: {row.problem}".replace("\n", " ")]
                lines += [f"{word}\t{NO_TAG}" for word in words if word.strip()]
            self.text.write("\n".join(lines) + "\n\n")

    def _write_squad(self, chunk: Sequence[Predicted]) -> None:
        """Write the form of SQuAD's scoring script: `{id: answer}`, with "" for no answer."""
        assert self.text is not None
        for row, found in chunk:
            if row.id in self.ids:
                raise HeadstartError(
                    f"two questions have the id {row.id!r}: this format has one answer per id",
                    where=f"question {row.number}",
                    fix="give each another id, or let the name of --output end in .jsonl",
                )
            answer = "" if found is None else found["answer"] or ""
            key, value = (json.dumps(one, ensure_ascii=False) for one in (row.id, answer))
            self.text.write(f"{',' if self.ids else '{'}\n{key}: {value}")
            self.ids.add(row.id)


def _cell(value: Any, *, short: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and short:
        return f"{value:.6g}"
    if isinstance(value, str | int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _arrow_type(values: Sequence[Any]) -> Any:
    """Choose the type of an input column: numbers and booleans stay, anything else is text."""
    kinds = {type(value) for value in values if value is not None}
    for known, kind in (
        ({bool}, pa.bool_()),
        ({int}, pa.int64()),
        ({int, float}, pa.float64()),
    ):
        if kinds and kinds <= known:
            return kind
    return pa.string()
