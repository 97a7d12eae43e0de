"""The results of a study as plain data, written and read back whole.

    results.csv          one measured value per line, tidy (see `Measure`)
    predictions.parquet  what every run said of every test row, at its best epoch
    test_rows.parquet    the test rows themselves: number, text, label name
    study.json           everything else a reader or a rerun needs (see `Study`)

Nothing here computes; `statistics.py` does, and `report/` shows it. A single training's outcome
is in `outcomes.py`.
"""

import csv
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from headstart.errors import HeadstartError
from headstart.files import check_format, replacing, write_format, write_text
from headstart.studies.outcomes import FINAL, Measure, RunKey

COLUMNS = ("arm", "objective", "labels", "seed", "epoch", "split", "metric", "value", "seconds")


@dataclass(frozen=True)
class Predictions:
    """What one run said of the test rows; labels are indices into `Study.label_names`."""

    run: RunKey
    rows: np.ndarray  # (n,) int64, the `row` of test_rows.parquet
    gold: np.ndarray  # (n,) int64
    predicted: np.ndarray  # (n,) int64
    probabilities: np.ndarray  # (n, classes) float32
    scores: np.ndarray | None = None  # (n,) float64: of tasks without classes, see `right`

    @property
    def right(self) -> np.ndarray:
        """What each row adds to the metric, (n,): right or wrong, or a number whose mean it is."""
        return self.predicted == self.gold if self.scores is None else self.scores


@dataclass(frozen=True)
class TestRow:
    """One labelled row that no training saw."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    row: int
    text: str
    gold: str  # the label's name


@dataclass(frozen=True)
class PretrainingCurve:
    """How the base of one objective came to be.

    A point has step, tokens, seconds, train_loss, held_out_loss, perplexity, bits_per_byte (one
    that was not measured is None); a sample has prompt and text, generated or filled in.
    """

    objective: str
    points: list[dict[str, float | None]]
    samples: list[dict[str, str]]


@dataclass(frozen=True)
class Study:
    """study.json: settings, data, versions, machine; everything but the measured values."""

    dataset: str
    corpus: str  # what the base was pretrained on; "" with none
    label_names: list[str]
    splits: dict[str, int]  # rows of train, validation, test
    command: str  # the exact command line
    seeds: list[int]
    budgets: list[int]  # numbers of labelled rows, ascending
    arms: list[str]
    versions: dict[str, str]
    machine: dict[str, Any]
    minutes: float
    task: str = "classification"
    metric: str = "accuracy"  # what the test rows' numbers are the mean of
    warnings: list[str] = field(default_factory=list)  # of the data check
    task_texts: int = 0  # training texts that joined pretraining, without their labels
    overlap_dropped: int = 0  # documents of the corpus left out because they hold test rows
    overlap_checked: str = ""  # what was looked for and found, in a sentence
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    # ^ objective -> the document of `headstart params --json`
    pretraining: list[PretrainingCurve] = field(default_factory=list)
    all_labels: int = 0  # labelled rows that a training could have; 0 where that is not known
    cuts: list[str] = field(default_factory=list)  # what was left out to fit into the minutes
    selection: str = "validation"  # what chose settings: "budget", "validation", "none"
    shared_test: bool = False  # whether the test rows are the validation rows, too
    best: dict[str, Any] = field(default_factory=dict)  # the run (`RunKey`) that `best/` holds

    @property
    def has_all_labels(self) -> bool:
        """Whether the largest budget is every labelled row of the training part."""
        return self.budgets[-1] >= (self.all_labels or self.splits.get("train", 0))

    @property
    def has_classes(self) -> bool:
        """Whether each row has one class, and a probability for each of them."""
        return self.task in ("classification", "pairs")


def write_measures(folder: Path, measures: Iterable[Measure]) -> None:
    """Write results.csv."""
    with (
        replacing(folder / "results.csv") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for m in measures:
            epoch = "" if m.epoch == FINAL else m.epoch
            run = (m.run.arm, m.run.objective, m.run.labels, m.run.seed)
            writer.writerow((*run, epoch, m.split, m.metric, repr(m.value), f"{m.seconds:.3f}"))


def read_measures(folder: Path) -> list[Measure]:
    """Read results.csv; a line that cannot be read is named with its number."""
    path = _existing(folder, "results.csv")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise HeadstartError(
                f"the columns are {reader.fieldnames}, expected {list(COLUMNS)}", where=path
            )
        measures = []
        for line in reader:
            try:
                measures.append(_measure(line))
            except (TypeError, ValueError) as error:
                raise HeadstartError(
                    f"cannot read this result: {error}",
                    where=f"{path}, line {reader.line_num}",
                    fix="run the study again; it resumes from the runs that are finished",
                ) from error
    return measures


def _measure(line: dict[str, str]) -> Measure:
    run = RunKey(line["arm"], line["objective"], int(line["labels"]), int(line["seed"]))
    epoch = int(line["epoch"]) if line["epoch"] else FINAL
    value, seconds = float(line["value"]), float(line["seconds"])
    return Measure(run, epoch, line["split"], line["metric"], value, seconds)


def write_predictions(folder: Path, predictions: Iterable[Predictions]) -> None:
    """Write predictions.parquet, one row group per run."""
    with (
        replacing(folder / "predictions.parquet") as temporary,
        parquet.ParquetWriter(temporary, _PREDICTIONS) as writer,
    ):
        for said in predictions:
            writer.write_table(_prediction_table(said))


_KEY = ("arm", "objective", "labels", "seed")
_PREDICTIONS = pa.schema(
    [
        ("arm", pa.string()),
        ("objective", pa.string()),
        ("labels", pa.int64()),
        ("seed", pa.int64()),
        ("row", pa.int64()),
        ("gold", pa.int64()),
        ("predicted", pa.int64()),
        ("probabilities", pa.list_(pa.float32())),
        ("score", pa.float64()),  # empty where a row is right or wrong
    ]
)


def _prediction_table(said: Predictions) -> pa.Table:
    count = len(said.rows)
    key = asdict(said.run)
    columns = [pa.array([key[name]] * count, type=_PREDICTIONS.field(name).type) for name in key]
    columns += [pa.array(values) for values in (said.rows, said.gold, said.predicted)]
    columns.append(pa.array(list(said.probabilities), type=pa.list_(pa.float32())))
    columns.append(pa.array([None] * count if said.scores is None else said.scores, pa.float64()))
    return pa.table(columns, schema=_PREDICTIONS)


def read_predictions(folder: Path) -> list[Predictions]:
    """Read predictions.parquet, one `Predictions` per run, rows ascending."""
    table = _read_table(folder, "predictions.parquet")
    table = table.sort_by([(name, "ascending") for name in (*_KEY, "row")])
    keys = list(zip(*(table[name].to_pylist() for name in _KEY), strict=True))
    starts = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    ends = [*starts[1:], len(keys)] if starts else []
    columns = [table[name].to_numpy() for name in ("row", "gold", "predicted")]
    scored = table["score"].to_numpy() if "score" in table.column_names else None
    found = []
    for start, end in zip(starts, ends, strict=True):
        part = slice(start, end)
        probabilities = np.array(table["probabilities"][part].to_pylist(), dtype=np.float32)
        rows, gold, predicted = (column[part] for column in columns)
        scores = scored[part] if scored is not None and not np.isnan(scored[start]) else None
        run = RunKey(*keys[start])
        found.append(Predictions(run, rows, gold, predicted, probabilities, scores))
    return found


def write_test_rows(folder: Path, rows: Iterable[TestRow]) -> None:
    """Write test_rows.parquet."""
    table = pa.Table.from_pylist(
        [asdict(row) for row in rows],
        schema=pa.schema([("row", pa.int64()), ("text", pa.string()), ("gold", pa.string())]),
    )
    with replacing(folder / "test_rows.parquet") as temporary:
        parquet.write_table(table, temporary)


def read_test_rows(folder: Path) -> list[TestRow]:
    """Read test_rows.parquet."""
    table = _read_table(folder, "test_rows.parquet")
    return [TestRow(**line) for line in table.to_pylist()]


def write_study(folder: Path, study: Study) -> None:
    """Write study.json, and the format of the folder beside it."""
    write_format(folder)
    document = json.dumps(asdict(study), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "study.json", document + "\n")


def read_study(folder: Path) -> Study:
    """Read study.json; a name it does not know is an error, as is one that is missing."""
    path = _existing(folder, "study.json")
    check_format(folder)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        parts = [PretrainingCurve(**part) for part in document.pop("pretraining", [])]
        known = {name: value for name, value in document.items() if name not in ("facts", "folds")}
        return Study(**known, pretraining=parts)
    except (TypeError, ValueError, AttributeError) as error:
        raise HeadstartError(f"this is not a study: {error}", where=path) from error


def _read_table(folder: Path, name: str) -> pa.Table:
    path = _existing(folder, name)
    try:
        return parquet.read_table(path)
    except pa.ArrowInvalid as error:
        raise HeadstartError(f"this is no Parquet file: {error}", where=path) from error


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise HeadstartError(
            f"this folder has no {name}",
            where=folder,
            fix="name the folder that `headstart compare … --out DIR` wrote",
        )
    return path
