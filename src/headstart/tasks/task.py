"""The base class of tasks: how labelled rows become examples, a loss, metrics and predictions.

A task is five methods (`encode`, `head`, `loss`, `decode`, `metrics`) and small methods about its
rows, most of which have a default. Every network is called as
`model(tokens, segments, token_types)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.row_scores import RowScores
from headstart.model.config import HeadConfig, Pooling
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding
from headstart.text.reading.dataset import Dataset

Rows = TypeVar("Rows")  # labelled rows: training, validation or test
Rows_co = TypeVar("Rows_co", covariant=True)
Output = NDArray[np.float32]
Prediction = dict[str, Any]  # plain values: JSON, CSV, Parquet, HTTP and the page use them


class Parts(Protocol[Rows_co]):
    """Weights are learned on train, settings are selected on validation, test reports once."""

    @property
    def train(self) -> Rows_co: ...

    @property
    def validation(self) -> Rows_co: ...

    @property
    def test(self) -> Rows_co | None: ...


class Task(ABC, Generic[Rows]):
    """One kind of prediction; an instance has one set of labels.

    Attributes
    ----------
    name : str
        The value of `--task`.
    input_names : tuple of str
        What one prediction needs: one text, or two (`texts_per_row`).
    prediction_fields : tuple of str
        The keys of a prediction.
    file_suffixes : tuple of str
        The formats in which predictions are written.
    row_name, class_row_name : str
        The unit of the rows, and of the table of classes, in messages.
    supports_windows : bool
        Whether long texts can be read in windows.
    whole_texts : bool
        Whether a target belongs to a whole text and not to its tokens.
    metric : str
        The main one of `metrics`; higher is better.
    """

    name: ClassVar[str]
    input_names: ClassVar[tuple[str, ...]] = ("text",)
    texts_per_row: ClassVar[int] = 1
    prediction_fields: ClassVar[tuple[str, ...]]
    file_suffixes: ClassVar[tuple[str, ...]]
    row_name: ClassVar[str] = "rows"
    class_row_name: ClassVar[str] = "rows"
    supports_windows: ClassVar[bool] = True
    whole_texts: ClassVar[bool] = False
    metric: str

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    @abstractmethod
    def encode(
        self, rows: Rows, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        """Encode rows as the network reads them."""

    @abstractmethod
    def head(self, preset: Preset, pooling: Pooling | None) -> HeadConfig:
        """Describe the head for a base of this preset; `pooling` overrides the preset's."""

    @abstractmethod
    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        """Compute the loss of each example (B,), not weighted."""

    @abstractmethod
    def decode(self, outputs: Sequence[Output], examples: Examples) -> Any:
        """Turn the network's outputs into scores: one per row, of any number of windows."""

    @abstractmethod
    def metrics(self, scores: Any, rows: Rows, *, temperature: float = 1.0) -> dict[str, float]:
        """Compute named numbers; "loss" (lower is better) and `metric` are among them."""

    @classmethod
    @abstractmethod
    def read(cls, sources: Sequence[str], **how: Any) -> "Parts[Rows]":
        """Read labelled files; `how` is what `text.reading.read.read_dataset` takes."""

    @abstractmethod
    def read_all(self, source: str, **how: Any) -> Rows:
        """Read every row of one file, with this task's labels only."""

    @classmethod
    @abstractmethod
    def from_rows(cls, train: Rows) -> "Task[Rows]":
        """Make the task with the labels of these training rows."""

    def match_labels(self, rows: Rows, where: str) -> Rows:
        """Number the labels of the rows as in this task; other labels are an error."""
        return rows

    @abstractmethod
    def texts(self, rows: Rows) -> Sequence[str]:
        """List all text of the rows, to train a tokenizer on."""

    def row_texts(self, rows: Rows) -> Sequence[str]:
        """List one text per row that identifies it, wherever the row comes from."""
        return self.texts(rows)

    def inspected(self, rows: Rows) -> Dataset:
        """Convert rows to texts with one label each, to be inspected before training."""
        if isinstance(rows, Dataset):
            return rows
        texts = list(self.row_texts(rows))
        return Dataset("rows", texts, [0] * len(texts), (self.row_name,))

    def pick(self, rows: Rows, numbers: Sequence[int]) -> Rows:
        """Select rows by number, in this order."""
        picked: Rows = rows.pick(numbers)  # type: ignore[attr-defined]
        return picked

    @abstractmethod
    def unlabelled(self, inputs: Sequence[Any]) -> Rows:
        """Convert texts, or tuples of two texts, to rows without labels."""

    @abstractmethod
    def predictions(self, scores: Any, rows: Rows, temperature: float = 1.0) -> list[Prediction]:
        """Convert scores to predictions with the keys of `prediction_fields`, one per row."""

    def row_scores(self, scores: Any, rows: Rows) -> dict[str, RowScores]:
        """Compute each row's contribution to each metric that has an interval."""
        return {}

    def intervals(self, scores: Any, rows: Rows) -> dict[str, dict[str, float]]:
        """Compute `value`, `low` and `high` of each metric, over rows."""
        found = self.row_scores(scores, rows)
        return {name: asdict(one.interval()) for name, one in found.items()}

    def report(self, scores: Any, rows: Rows, temperature: float = 1.0) -> dict[str, Any]:
        """Evaluate in full: the metrics, their "intervals", "labels", "classes", "notes" …"""
        metrics = self.metrics(scores, rows, temperature=temperature)
        return {
            **metrics,
            "intervals": self.intervals(scores, rows),
            "labels": list(self.labels),
            "notes": [],
        }

    def trivial(self, train: Rows, rows: Rows) -> tuple[str, Any] | None:
        """Predict without reading: a description, and scores for `rows`."""
        return None

    def fit_temperature(self, validation: Mapping[str, NDArray[Any]]) -> float:
        """Fit the temperature of the probabilities to what `validation_arrays` returned."""
        return 1.0

    @abstractmethod
    def validation_arrays(self, scores: Any, rows: Rows) -> dict[str, NDArray[Any]]:
        """Convert validation scores and labels to the arrays that a run saves."""

    def class_weights(self, rows: Rows, examples: Examples) -> NDArray[np.float32]:
        """Compute weights of the examples with which all classes count the same."""
        raise HeadstartError(
            f"--class-weight is for classes of whole texts, and the task {self.name} has none",
            fix="leave --class-weight out",
        )


def check_pooling(head: HeadConfig, pooling: Pooling | None) -> None:
    """Reject a pooling that was given and that the head does not use."""
    used = getattr(head, "pooling", None)
    if pooling is None or used == pooling:
        return
    why = (
        f"a head for {head.kind} scores single tokens"
        if used is None
        else f"this base's stock head pools with {used}"
    )
    raise HeadstartError(
        f"--pooling {pooling} cannot be used: {why}",
        fix="leave --pooling out" + ("" if used is None else ", or leave --head stock out"),
        code="config",
    )
