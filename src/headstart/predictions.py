"""Files of inputs and predictions: read row by row, written in chunks, in constant memory.

Columns of the input stay, and those of the prediction are added. A column of the prediction whose
name the input already has is called `predicted_…`. A row that cannot be read stays in its place,
with the reason in `error`.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from headstart.data.columns import ReadOptions
from headstart.data.dataset import LABELS_MARK
from headstart.data.readers import Row, Rows, open_rows
from headstart.data.sources import check_text, find_kind, find_source, storable
from headstart.data.words import split_words
from headstart.errors import HeadstartError
from headstart.files import check_file, escape_formula
from headstart.tasks.task import Prediction, Task

NO_TAG = "_"  # of a word that was not read, as in CoNLL
Predicted = tuple[Row, Prediction | None]


def check_inputs(task: Task[Any], inputs: Sequence[Any]) -> None:
    """Reject inputs that are not what the task needs: texts, tuples of two, or lists of words."""
    if isinstance(inputs, str):
        raise HeadstartError("a list of texts is expected, not one text", fix="give [text]")
    names = [name.replace("_", " ") for name in task.input_names]
    for number, given in enumerate(inputs, start=1):
        texts = given if len(names) > 1 else [given]
        if task.name == "tagging" and isinstance(given, list):
            texts = [" ".join(given)]
        if not isinstance(texts, list | tuple) or len(texts) != len(names):
            raise HeadstartError(
                f"an input of the task {task.name} is ({', '.join(names)})",
                where=f"input {number}",
                fix="give a tuple of two texts",
            )
        for name, text in zip(names, texts, strict=True):
            try:
                check_text(text)
            except HeadstartError as problem:
                what = f"the {name} is empty" if problem.code == "empty" else problem.what
                raise HeadstartError(what, where=f"{name} {number}", fix=problem.fix) from None


def check_output(task: Task[Any], source: str | Path, output: Path) -> None:
    """Reject an unknown format, and a file that would overwrite the input."""
    if output.suffix not in task.file_suffixes:
        raise HeadstartError(
            f"predictions of the task {task.name} cannot be written as '{output.suffix}'",
            where=output,
            fix=f"let the name end in {' or '.join(task.file_suffixes)}",
        )
    target, given = output.expanduser().resolve(), Path(source).expanduser().resolve()
    check_file(target)
    same = given.exists() and target.exists() and target.samefile(given)
    if same or (given.is_dir() and given in target.parents):
        raise HeadstartError(
            "the output would overwrite the input" if same else "the output lies in the input",
            where=output,
            fix="choose another file for --output",
        )


def group_texts(task: Task[Any], texts: Sequence[str]) -> list[Any]:
    """Group a flat list of texts into inputs of the task: two by two for pairs and spans."""
    if len(task.input_names) == 1:
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
    texts = [given] if len(task.input_names) == 1 else given
    return dict(zip(task.input_names, texts, strict=True))


def open_inputs(task: Task[Any], source: str | Path, options: ReadOptions) -> Rows:
    """Open a file to predict on: for tagging texts or CoNLL, for spans SQuAD's JSON or a table."""
    path = Path(source).expanduser()
    kind, read_as = find_kind(path)[0], None
    if task.name == "spans" and kind == "json":
        read_as = "squad"
    elif task.name == "spans":
        question, context = options.text_column or "question", options.second_column or "context"
        options = replace(options, text_column=question, second_column=context)
    elif task.name == "tagging" and kind is None and path.is_file():
        read_as = "conll"
    return open_rows(find_source(source, read_as), options, pairs=len(task.input_names) == 2)


def write_predictions(
    path: Path,
    suffix: str,
    task: Task[Any],
    chunks: Iterator[list[Predicted]],
    more: Sequence[str] = (),
) -> None:
    """Write chunks of rows with their predictions, in order, as .jsonl, .csv or .conll.

    `more` are fields of the predictions that are not the task's.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        if suffix == ".conll":
            file.writelines(map(_conll_block, chain.from_iterable(chunks)))
            return
        names, records = _records(task, suffix, chunks, more)
        if suffix == ".jsonl":
            file.writelines(_json(record) + "\n" for record in records)
            return
        lines = csv.writer(file)
        lines.writerow(map(escape_formula, names))
        for record in records:
            lines.writerow(_cell(record.get(name)) for name in names)


def _conll_block(predicted: Predicted) -> str:
    """Write a word and its tag per line; a comment says why a sentence has no tags."""
    row, found = predicted
    if found is not None:
        tagged = zip(found["words"], found["tags"], strict=True)
        lines = [f"{word}\t{tag or NO_TAG}" for word, tag in tagged]
    else:
        words = row.words or [row.text[start:end] for start, end in split_words(row.text)]
        lines = [f"# row {row.number}: {problem_of(row)}".replace("\n", " ")]
        lines += [f"{word}\t{NO_TAG}" for word in words if word.strip()]
    return "\n".join(lines) + "\n\n"


def _records(
    task: Task[Any], suffix: str, chunks: Iterator[list[Predicted]], more: Sequence[str]
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return the names of columns, and a record per row: number, input, prediction, `error`."""
    first = next(chunks)
    inputs = list(dict.fromkeys(name for row, _ in first for name in row.columns))
    names: dict[str, str] = {}  # of the fields that are added, in the file
    for field in ("row", *_fields(task, suffix, None, more), "error"):
        names[field] = field
        while names[field] in inputs:
            names[field] = f"predicted_{names[field]}"

    def record(row: Row, prediction: Prediction | None) -> dict[str, Any]:
        late = row.columns.keys() - set(inputs)
        if late and (suffix != ".jsonl" or late & set(names.values())):
            raise HeadstartError(
                f"row {row.number:,} has a column '{min(late)}' that the first rows do not have",
                where=f"row {row.number:,}",
                fix="give every row the same columns, or let the name of --output end in .jsonl",
            )
        # Without what no UTF-8 file can hold.
        columns = {name: storable(value) for name, value in row.columns.items()}
        fields = {**_fields(task, suffix, prediction, more), "error": problem_of(row)}
        added = {names[field]: value for field, value in fields.items()}
        return {names["row"]: row.number, **columns, **added}

    records = (record(*one) for one in chain(first, chain.from_iterable(chunks)))
    return [names["row"], *inputs, *list(names.values())[1:]], records


def problem_of(row: Row) -> str | None:
    """Return why a row has no prediction."""
    return None if row.problem is None else row.problem.what


def _fields(
    task: Task[Any], suffix: str, prediction: Prediction | None, more: Sequence[str]
) -> dict[str, Any]:
    """List the fields of a prediction; in tables the label(s), and p(name) of each class."""
    if suffix == ".jsonl":
        return prediction or dict.fromkeys([*task.prediction_fields, *more])
    name = task.prediction_fields[0]
    found = prediction or {name: None, "probabilities": dict.fromkeys(task.labels)}
    label = found[name]
    if isinstance(label, list):
        label = LABELS_MARK.join(label)
    probabilities = {f"p({one})": p for one, p in found["probabilities"].items()}
    return {name: label, **probabilities, **{one: found.get(one) for one in more}}


def _cell(value: Any) -> Any:
    if isinstance(value, int | float | None):
        return value
    return escape_formula(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
