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

from headstart.errors import HeadstartError
from headstart.files import check_format, replacing, write_format, write_text

RUN = ("arm", "objective", "labels", "seed")
_RUN_FIELDS = [
    ("arm", pa.string()),
    ("objective", pa.string()),  # "" for an arm that depends on none
    ("labels", pa.int64()),  # labelled rows used
    ("seed", pa.int64()),
]
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
DEFAULTS: dict[str, Any] = {
    "corpus": "",  # what the base was pretrained on
    "task": "classification",
    "metric": "accuracy",
    "splits": {},  # rows of train, validation, test
    "all_labels": 0,  # labelled rows that a training could have; 0: unknown
    "folds": 1,  # of each seed; 1: one test part
    "selection": "budget",  # settings are selected on: "budget" or "none"
    "shared_test": False,  # whether the test rows are the validation rows, too
    "warnings": [],
    "cuts": [],  # what was reduced to fit into the minutes
    "task_texts": 0,  # training texts that joined pretraining, without labels
    "overlap_checked": "",  # what was searched and found, in a sentence
    "parameters": {},  # objective -> the document of `headstart params --json`
    "pretraining": [],  # {"objective", "points": [{"step", "tokens", "seconds", …}], "samples"}
    "best": {},  # the run that `best/` holds: arm, objective, labels, seed
    "versions": {},
    "machine": {},
    "minutes": 0.0,
    "facts": [],  # of each run: RUN and seconds, test_seconds, workers, threads, bytes, chosen, …
}
REQUIRED = ("dataset", "label_names", "command", "seeds", "budgets", "arms")


@dataclass(frozen=True)
class Results:
    """A study as plain data.

    Parameters
    ----------
    about : dict
        Everything but the measured numbers; its names are `REQUIRED` and `DEFAULTS`.
    values, predictions, rows : pyarrow.Table
        See `SCHEMAS`. The predictions of a run are consecutive and in the order of `rows`.
    """

    about: dict[str, Any]
    values: pa.Table
    predictions: pa.Table
    rows: pa.Table

    @cached_property
    def runs(self) -> dict[tuple[str, str, int], list[int]]:
        """(arm, objective, labels) → seeds with predictions, both in order of the study."""
        found: dict[tuple[str, str, int], list[int]] = {}
        order = {arm: place for place, arm in enumerate(self.about["arms"])}
        for run in sorted(self._slices, key=lambda run: (order.get(run[0], len(order)), *run)):
            found.setdefault(run[:3], []).append(run[3])
        return found

    def scores(
        self, arm: str, objective: str, labels: int, seeds: Sequence[int] | None = None
    ) -> np.ndarray:
        """Return each row's contribution to the metric as an array (seeds, rows).

        0 or 1 where a row is wrong or right; otherwise numbers whose mean is the metric.
        """
        chosen = self.runs[arm, objective, labels] if seeds is None else seeds
        return np.array(
            [self._score[self._slices[arm, objective, labels, seed]] for seed in chosen]
        )

    def probabilities(self, arm: str, objective: str, labels: int) -> np.ndarray:
        """Return the probabilities of all classes as an array (seeds, rows, classes)."""
        slices = [
            self._slices[arm, objective, labels, s] for s in self.runs[arm, objective, labels]
        ]
        parts = [self.predictions["probabilities"][part].to_pylist() for part in slices]
        return np.asarray(parts, dtype=np.float64)

    @cached_property
    def gold(self) -> np.ndarray:
        """The gold classes of the test rows as indices, (rows,); empty without classes."""
        names = {name: index for index, name in enumerate(self.about["label_names"])}
        gold = self.rows["gold"].to_pylist()
        return np.array([names[name] for name in gold]) if set(gold) <= set(names) else np.zeros(0)

    @cached_property
    def has_classes(self) -> bool:
        """Whether each row has one class, and a probability for each class."""
        return self.about["task"] in ("classification", "pairs")

    @cached_property
    def _slices(self) -> dict[tuple[str, str, int, int], slice]:
        table = self.predictions.select(RUN)
        if len(table) == 0:
            return {}
        codes = np.array([column.dictionary_encode().combine_chunks().indices for column in table])
        starts = [0, *(np.flatnonzero((codes[:, 1:] != codes[:, :-1]).any(0)) + 1).tolist()]
        keys = [tuple(row.values()) for row in table.take(starts).to_pylist()]
        ends = [*starts[1:], len(table)]
        return {key: slice(*part) for key, *part in zip(keys, starts, ends, strict=True)}

    @cached_property
    def _score(self) -> np.ndarray:
        names = ("gold", "predicted", "score")
        gold, predicted, score = (self.predictions[name].to_numpy().astype(float) for name in names)
        return np.where(np.isnan(score), gold == predicted, score)


def run_predictions(
    run: Mapping[str, Any],
    rows: Sequence[int] | np.ndarray,
    *,
    gold: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
    scores: np.ndarray | None = None,
) -> pa.Table:
    """Make the part of `predictions` that one run adds.

    Parameters
    ----------
    run : mapping
        arm, objective, labels, seed.
    rows : sequence of int
        Numbers of all test rows, in the order of `Results.rows`.
    gold, probabilities : arrays (rows,) and (rows, classes)
        For tasks with one class per row.
    scores : array (rows,)
        For the other tasks: what each row adds to the metric.
    """
    count = len(rows)
    empty = [None] * count
    columns: dict[str, Any] = {name: [run[name]] * count for name in RUN}
    columns["row"] = np.asarray(rows, dtype=np.int64)
    columns |= {"gold": empty, "predicted": empty, "probabilities": empty, "score": empty}
    if scores is not None:
        columns["score"] = np.asarray(scores, dtype=np.float64)
    else:
        assert gold is not None
        assert probabilities is not None
        columns["gold"] = np.asarray(gold, dtype=np.int64)
        columns["predicted"] = probabilities.argmax(axis=1).astype(np.int64)
        columns["probabilities"] = list(np.asarray(probabilities, dtype=np.float32))
    return pa.table(columns, schema=SCHEMAS["predictions"])


def make_results(
    about: Mapping[str, Any],
    values: Iterable[Mapping[str, Any]],
    predictions: Iterable[pa.Table],
    rows: Iterable[Mapping[str, Any]],
) -> Results:
    """Make the results of a study from plain rows and the tables of `run_predictions`."""
    parts = [SCHEMAS["predictions"].empty_table(), *predictions]
    return Results(
        {**DEFAULTS, **about},
        pa.Table.from_pylist(list(values), schema=SCHEMAS["values"]),
        pa.concat_tables(parts).combine_chunks(),
        pa.Table.from_pylist(list(rows), schema=SCHEMAS["rows"]),
    )


def write_results(folder: Path, results: Results) -> None:
    """Write the four files of a study; study.json is the last one, so that it means "complete"."""
    for name in SCHEMAS:
        with replacing(folder / f"{name}.parquet") as temporary:
            parquet.write_table(getattr(results, name), temporary)
    write_format(folder)
    document = json.dumps(results.about, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "study.json", document + "\n")


def read_results(folder: Path) -> Results:
    """Read a study; a missing or damaged file is an error that names it."""
    path = _existing(folder, "study.json")
    check_format(folder)
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in REQUIRED if name not in about]
    except (TypeError, ValueError) as error:
        raise HeadstartError(f"this is not a study: {error}", where=path) from error
    if missing:
        raise HeadstartError(f"this is not a study: no {', '.join(missing)}", where=path)
    return Results({**DEFAULTS, **about}, *(_read_table(folder, name) for name in SCHEMAS))


def _read_table(folder: Path, name: str) -> pa.Table:
    path = _existing(folder, f"{name}.parquet")
    try:
        return parquet.read_table(path, schema=SCHEMAS[name]).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise HeadstartError(
            f"this results table cannot be read: {error}",
            where=path,
            fix="run `headstart compare` again with the same options; finished jobs are reused",
        ) from error


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise HeadstartError(
            f"this folder has no {name}",
            where=folder,
            fix="name the folder that `headstart compare … --out DIR` wrote",
        )
    return path
