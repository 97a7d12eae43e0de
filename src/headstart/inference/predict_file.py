"""Predictions for a file of any size: a chunk of rows at a time, each answered in its place."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.inference.predict import Prediction, predict
from headstart.run_folder import Run
from headstart.text.loose_rows import LooseRow, LooseRows
from headstart.text.rows import Reading

CHUNK_ROWS = 1_024
CHUNK_CHARACTERS = 4_000_000
SUFFIXES = (".csv", ".jsonl", ".parquet")
Answer = tuple[LooseRow, Prediction | None]
Progress = Callable[[int, int | None], None]


def predict_file(
    run: Run,
    source: str | Path,
    output: Path,
    *,
    how: Reading | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write an answer for every row of `source`, in its order; returns what happened.

    A row that cannot be judged has an empty answer and the reason in the column `error`.
    """
    rows = LooseRows(source, how or Reading())
    done, bad = 0, list[dict[str, Any]]()
    with _writer(output, run.labels) as writer:
        for chunk in _chunks(rows):
            answers = _answer(run, chunk)
            writer.write(answers)
            done += len(chunk)
            bad += [
                {"row": row.number, "error": row.problem}
                for row in chunk
                if row.problem is not None
            ][: max(0, 20 - len(bad))]
            if progress is not None:
                share = rows.share
                progress(done, None if not share else max(done, round(done / share)))
        summary = {"rows": done, "bad_rows": writer.bad, "bad": bad, "output": str(output)}
        if not done:
            raise HeadstartError("the file holds no rows", where=source)
    return summary


def _chunks(rows: Iterable[LooseRow]) -> Iterator[list[LooseRow]]:
    chunk: list[LooseRow] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.text)
        if len(chunk) >= CHUNK_ROWS or size >= CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _answer(run: Run, chunk: list[LooseRow]) -> list[Answer]:
    good = [row.text for row in chunk if row.problem is None]
    found = iter(predict(run, good))
    return [(row, next(found) if row.problem is None else None) for row in chunk]


class _Writer(Protocol):
    bad: int

    def write(self, answers: list[Answer]) -> None: ...


@contextmanager
def _writer(output: Path, labels: tuple[str, ...]) -> Iterator[_Writer]:
    """A file that is whole or absent; its kind is in its name."""
    if output.suffix not in SUFFIXES:
        raise HeadstartError(
            f"predictions cannot be written as '{output.suffix}'",
            where=output,
            fix=f"let the name end in {', '.join(SUFFIXES)}",
        )
    with replacing(output) as temporary:
        if output.suffix == ".parquet":
            with _Parquet(temporary, labels) as writer:
                yield writer
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                yield (_Csv if output.suffix == ".csv" else _JsonLines)(file, labels)


def _columns(labels: tuple[str, ...]) -> list[str]:
    return ["row", "text", "label", *(f"p({name})" for name in labels), "error"]


class _Csv:
    def __init__(self, file: Any, labels: tuple[str, ...]) -> None:
        self.bad = 0
        self.labels = labels
        self.file = csv.writer(file)
        self.file.writerow(_columns(labels))

    def write(self, answers: list[Answer]) -> None:
        for row, answer in answers:
            self.bad += answer is None
            found = [""] * len(self.labels)
            if answer is not None:
                found = [f"{p:.6g}" for p in answer.probabilities.values()]
            label = "" if answer is None else answer.label
            self.file.writerow([row.number, row.text, label, *found, row.problem or ""])


class _JsonLines:
    def __init__(self, file: Any, labels: tuple[str, ...]) -> None:
        self.bad = 0
        self.file = file

    def write(self, answers: list[Answer]) -> None:
        for row, answer in answers:
            self.bad += answer is None
            content = {
                "row": row.number,
                "text": row.text,
                "label": None if answer is None else answer.label,
                "probabilities": None if answer is None else answer.probabilities,
                "error": row.problem,
            }
            self.file.write(json.dumps(content, ensure_ascii=False) + "\n")


class _Parquet:
    def __init__(self, path: Path, labels: tuple[str, ...]) -> None:
        self.bad = 0
        self.labels = labels
        kinds = [pa.int64(), pa.string(), pa.string(), *[pa.float64()] * len(labels), pa.string()]
        self.schema = pa.schema(list(zip(_columns(labels), kinds, strict=True)))
        self.file = parquet.ParquetWriter(path, self.schema)

    def __enter__(self) -> "_Parquet":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, answers: list[Answer]) -> None:
        self.bad += sum(answer is None for _, answer in answers)
        columns: list[list[Any]] = [
            [row.number for row, _ in answers],
            [row.text for row, _ in answers],
            [None if answer is None else answer.label for _, answer in answers],
            *(
                [None if answer is None else answer.probabilities[name] for _, answer in answers]
                for name in self.labels
            ),
            [row.problem for row, _ in answers],
        ]
        arrays = [pa.array(c, t) for c, t in zip(columns, self.schema.types, strict=True)]
        self.file.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
