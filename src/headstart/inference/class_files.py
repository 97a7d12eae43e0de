"""Files of texts and of their classes: a label and probabilities a row, as CSV, JSON or Parquet."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.inference.answer_files import Answered, FileForm, JsonLines, TextWriter
from headstart.inference.predict import predict
from headstart.run_folder import Run
from headstart.text.reading.lenient_rows import LenientRows


def class_files(run: Run) -> FileForm:
    pairs = run.task is not None and run.task.name == "pairs"
    return FileForm(
        rows=lambda source, how: LenientRows(source, replace(how, pairs=pairs)),
        answer=lambda rows: predict(run, [row.text for row in rows]),
        writers={
            ".csv": partial(_Csv, labels=run.labels),
            ".jsonl": partial(JsonLines, document=_document),
            ".parquet": partial(_Parquet, labels=run.labels),
        },
    )


def _document(row: Any, answer: Any) -> dict[str, Any]:
    return {
        "text": row.text,
        "label": None if answer is None else answer.label,
        "probabilities": None if answer is None else answer.probabilities,
    }


def _columns(labels: tuple[str, ...]) -> list[str]:
    return ["row", "text", "label", *(f"p({name})" for name in labels), "error"]


class _Csv(TextWriter):
    def __init__(self, path: Path, labels: tuple[str, ...]) -> None:
        super().__init__(path)
        self.labels = labels
        self.rows = csv.writer(self.file)
        self.rows.writerow(_columns(labels))

    def write(self, answered: Sequence[Answered]) -> None:
        for row, answer in answered:
            found = [""] * len(self.labels)
            if answer is not None:
                found = [f"{p:.6g}" for p in answer.probabilities.values()]
            label = "" if answer is None else answer.label
            self.rows.writerow([row.number, row.text, label, *found, row.problem or ""])


class _Parquet:
    def __init__(self, path: Path, labels: tuple[str, ...]) -> None:
        self.labels = labels
        kinds = [pa.int64(), pa.string(), pa.string(), *[pa.float64()] * len(labels), pa.string()]
        self.schema = pa.schema(list(zip(_columns(labels), kinds, strict=True)))
        self.file = parquet.ParquetWriter(path, self.schema)

    def close(self) -> None:
        self.file.close()

    def write(self, answered: Sequence[Answered]) -> None:
        columns: list[list[Any]] = [
            [row.number for row, _ in answered],
            [row.text for row, _ in answered],
            [None if answer is None else answer.label for _, answer in answered],
            *(
                [None if answer is None else answer.probabilities[name] for _, answer in answered]
                for name in self.labels
            ),
            [row.problem for row, _ in answered],
        ]
        arrays = [pa.array(c, t) for c, t in zip(columns, self.schema.types, strict=True)]
        self.file.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
