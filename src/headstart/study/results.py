"""The results table of a study: measured values, predictions, test rows, and facts about the study.

    values.parquet       one measured value per row: arm, objective, labels, seed, epoch (null for a
                         final value), split, metric, value, seconds since the training began
    predictions.parquet  one row per run and test row: arm, objective, labels, seed, row, gold,
                         predicted, probabilities, score
    rows.parquet         the test rows: row (its number in the user's file), text, gold (label name)
    study.json           `about`: settings, data, machine, pretraining, facts of every run

The driver of a study writes it once; analysis, verdict and report read nothing else.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.arms import CLASS_TASKS
from headstart.errors import HeadstartError
from headstart.files import check_finished, read_object, replacing, write_text

RUN = ("arm", "objective", "labels", "seed")
# The objective is "" for an arm that depends on none; labels are the labelled rows used.
_RUN_FIELDS = list(zip(RUN, (pa.string(), pa.string(), pa.int64(), pa.int64()), strict=True))
SCHEMAS = {
    "values": pa.schema(
        [
            *_RUN_FIELDS,
            ("epoch", pa.int64()),  # from 1; null for a value measured once, at the end
            ("split", pa.string()),  # train, validation or test
            ("metric", pa.string()),
            ("value", pa.float64()),
            ("seconds", pa.float64()),
        ]
    ),
    "predictions": pa.schema(
        [
            *_RUN_FIELDS,
            ("row", pa.int64()),
            ("gold", pa.int64()),  # index of `about["label_names"]`; null without classes
            ("predicted", pa.int64()),
            ("probabilities", pa.list_(pa.float32())),
            ("score", pa.float64()),  # contribution to the metric; null where right or wrong
        ]
    ),
    "rows": pa.schema([("row", pa.int64()), ("text", pa.string()), ("gold", pa.string())]),
}
ABOUT = {
    "dataset": "its name",
    "corpus": "what the base was pretrained on",
    "task": "its name",
    "metric": "the name of the one that is compared",
    "label_names": "of the task",
    "splits": "rows of train, validation, test; of a study in folds, labelled rows",
    "all_labels": "labelled rows that a training could have",
    "command": "that was typed",
    "seeds": "0, 1, …",
    "budgets": "numbers of labels, ascending",
    "arms": "their names, in the order of the study",
    "folds": "of each seed; 1: one test part",
    "selection": 'settings are selected on: "budget" or "none"',
    "shared_test": "whether the test rows are the validation rows, too",
    "warnings": "sentences",
    "cuts": "what was reduced to fit into the minutes",
    "task_texts": "training texts that joined pretraining, without labels",
    "overlap_checked": "what was searched and found, in a sentence",
    "parameters": "objective → the document of `headstart params --json`",
    "pretraining": '{"objective", "points": [{"step", "tokens", "seconds", …}]}',
    "best": "the run that model selection chose: arm, objective, labels, seed",
    "saved": "the run that `best/` holds; empty where none can be saved",
    "versions": "by package",
    "machine": "what the times depend on",
    "minutes": "of computing, in all sessions",
    "facts": "of each run: RUN, seconds, test_seconds, workers, threads, tries; bytes, chosen, …",
}


@dataclass(frozen=True)
class Results:
    """A study as plain data: tables in the forms of `SCHEMAS`, and `ABOUT` has all the rest.

    Every arm has a run with every budget and seed, and the predictions of a run are consecutive
    and in the order of `rows`.
    """

    about: dict[str, Any]
    values: pa.Table
    predictions: pa.Table
    rows: pa.Table

    @cached_property
    def runs(self) -> list[tuple[str, str, int]]:
        """(arm, objective, labels) in the order of the study; each was run with every seed."""
        runs = {run[:3] for run in self._starts}
        return sorted(runs, key=lambda run: (self.about["arms"].index(run[0]), *run))

    def scores(self, arm: str, objective: str, labels: int) -> np.ndarray:
        """Return row scores (seeds, rows): 0 or 1, or numbers whose mean is the metric."""
        names, run = ("gold", "predicted", "score"), (arm, objective, labels)
        gold, predicted, score = (np.array(self._column(name, *run), float) for name in names)
        return np.where(np.isnan(score), gold == predicted, score)

    def probabilities(self, arm: str, objective: str, labels: int) -> np.ndarray:
        """Return the probabilities of all classes as an array (seeds, rows, classes)."""
        return np.array(self._column("probabilities", arm, objective, labels), dtype=np.float64)

    @cached_property
    def gold(self) -> np.ndarray:
        """The gold classes of the test rows as indices, (rows,), of a task with classes."""
        names = {name: index for index, name in enumerate(self.about["label_names"])}
        return np.array([names[name] for name in self.rows["gold"].to_pylist()])

    @cached_property
    def has_classes(self) -> bool:
        """Whether each row has one class, and a probability for each class."""
        return self.about["task"] in CLASS_TASKS

    @cached_property
    def _starts(self) -> dict[tuple[str, str, int, int], int]:
        """Where the predictions of each run begin."""
        starts = list(range(0, len(self.predictions), len(self.rows)))
        runs = self.predictions.select(RUN).take(starts).to_pylist()
        return {tuple(run.values()): start for run, start in zip(runs, starts, strict=True)}

    def _column(self, name: str, *run: str | int) -> list[list[Any]]:
        """Return a column of the predictions by seed and row."""
        starts = [self._starts[*run, seed] for seed in self.about["seeds"]]
        column, count = self.predictions[name], len(self.rows)
        return [column.slice(start, count).to_pylist() for start in starts]


def run_predictions(
    run: Mapping[str, Any],
    rows: Sequence[int] | np.ndarray,
    predictions: np.ndarray,
    gold: np.ndarray | None = None,
) -> pa.Table:
    """Make a run's part of `predictions`, from probabilities or, without `gold`, row scores."""
    columns: dict[str, Any] = {name: [run[name]] * len(rows) for name in RUN} | {"row": rows}
    columns |= dict.fromkeys(("gold", "predicted", "probabilities", "score"), [None] * len(rows))
    if gold is None:
        columns["score"] = predictions
    else:
        columns |= {"gold": gold, "predicted": predictions.argmax(axis=1)}
        columns["probabilities"] = list(predictions.astype(np.float32))
    return pa.table(columns, schema=SCHEMAS["predictions"])


def make_results(
    about: Mapping[str, Any],
    values: Iterable[Mapping[str, Any]],
    predictions: Iterable[pa.Table],
    rows: Iterable[Mapping[str, Any]],
) -> Results:
    """Make the results of a study from plain rows and the tables of `run_predictions`."""
    return Results(
        dict(about),
        pa.Table.from_pylist(list(values), schema=SCHEMAS["values"]),
        pa.concat_tables(predictions).combine_chunks(),
        pa.Table.from_pylist(list(rows), schema=SCHEMAS["rows"]),
    )


def write_results(folder: Path, results: Results) -> None:
    """Write the four files of a study; study.json is the last one, so that it means "complete"."""
    for name in SCHEMAS:
        with replacing(folder / f"{name}.parquet") as temporary:
            parquet.write_table(getattr(results, name), temporary)
    document = json.dumps(results.about, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "study.json", document + "\n")


def read_results(folder: Path) -> Results:
    """Read a study; an unfinished one and a missing or damaged file are errors that say so."""
    check_finished(folder)
    about = read_object(
        folder / "study.json",
        needs=ABOUT,
        fix="name the folder that `headstart compare … --out DIR` wrote",
    )
    return Results(about, *(_read_table(folder, name) for name in SCHEMAS))


def _read_table(folder: Path, name: str) -> pa.Table:
    path = folder / f"{name}.parquet"
    try:
        return parquet.read_table(path, schema=SCHEMAS[name]).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise HeadstartError(
            f"this results table cannot be read: {error}",
            where=path,
            fix="run `headstart compare` again with the same options: it resumes",
        ) from error
