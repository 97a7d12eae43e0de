"""The base class of tasks: how labelled rows become examples, a loss, metrics and predictions.

A task is five methods (`encode`, `head`, `loss`, `decode`, `row_scores`) and small methods about
its rows, most of which have a default. Every network is called as
`model(tokens, segments, token_types)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from headstart.config import Pooling
from headstart.data.dataset import Part, Splits, short_label
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import RowScores
from headstart.model.config import HeadConfig
from headstart.model.presets import Preset
from headstart.tasks.examples import Examples, LabelledBatch, Output, TextEncoding

MAX_CELLS = 20_000_000  # rows × classes for which a macro average has an interval
Rows = TypeVar("Rows", bound=Part)  # labelled rows: training, validation or test
Prediction = dict[str, Any]  # plain values: JSON, CSV, HTTP and the page use them


class Task(ABC, Generic[Rows]):
    """One kind of prediction; an instance has one set of labels.

    Attributes
    ----------
    name : str
        The value of `--task`.
    input_names : tuple of str
        What one prediction needs: one text, or two.
    prediction_fields : tuple of str
        The keys of a prediction.
    file_suffixes : tuple of str
        The formats in which predictions are written.
    row_name : str
        The unit of the rows, in messages.
    supports_windows : bool
        Whether long texts can be read in windows.
    whole_texts : bool
        Whether a target belongs to a whole text and not to its tokens.
    metric_names : tuple of str
        The names of `metrics` that curves show, without "loss".
    metric : str
        The main one, by default the first of them; higher is better.
    """

    name: ClassVar[str]
    input_names: ClassVar[tuple[str, ...]] = ("text",)
    prediction_fields: ClassVar[tuple[str, ...]]
    file_suffixes: ClassVar[tuple[str, ...]]
    row_name: ClassVar[str] = "rows"
    supports_windows: ClassVar[bool] = True
    whole_texts: ClassVar[bool] = False
    metric_names: ClassVar[tuple[str, ...]]

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.metric = self.metric_names[0]
        self._numbers = {label: number for number, label in enumerate(labels)}

    @abstractmethod
    def encode(self, rows: Rows, encoding: TextEncoding) -> Examples:
        """Encode rows as the network reads them."""

    @abstractmethod
    def head(self, preset: Preset, pooling: Pooling | None) -> HeadConfig:
        """Describe the head for a base of this preset.

        `pooling` overrides the preset's; heads that score tokens have none, and configs reject it.
        """

    @abstractmethod
    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        """Compute the loss of each example (B,), not weighted."""

    @abstractmethod
    def decode(self, outputs: Sequence[Output], examples: Examples) -> Any:
        """Turn the network's outputs into scores: one per row, of any number of windows."""

    @abstractmethod
    def mean_loss(self, scores: Any, rows: Rows, temperature: float) -> float:
        """Compute the mean loss at a temperature, over what was read."""

    @abstractmethod
    def row_scores(self, scores: Any, rows: Rows) -> dict[str, RowScores]:
        """Compute each row's contribution to each metric that is a ratio of sums over rows."""

    def metrics(self, scores: Any, rows: Rows, *, temperature: float = 1.0) -> dict[str, float]:
        """Compute named numbers; "loss" (lower is better) and `metric` are among them."""
        values = {name: one.value for name, one in self.row_scores(scores, rows).items()}
        return {"loss": self.mean_loss(scores, rows, temperature), **values}

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> "Splits[Rows]":
        """Read labelled files; `how` is what `data.splits.read_dataset` takes."""
        return read_dataset(sources, task=cls.name, **how)

    @classmethod
    def from_rows(cls, train: Rows) -> "Task[Rows]":
        """Make the task with the labels of these training rows."""
        return cls(train.label_names)  # type: ignore[attr-defined]

    def label_numbers(self, names: Sequence[str], where: str) -> list[int]:
        """Find the numbers of labels by name; an unknown label is an error."""
        unknown = [name for name in names if name not in self._numbers]
        if unknown:
            others = ", ".join(map(short_label, unknown[:10]))
            known = ", ".join(map(short_label, self.labels[:10]))
            raise HeadstartError(
                f"the dataset has other labels than the run: {others}; the run knows {known}",
                where=where,
                fix="name the right column with --label-column, or a run of these labels",
                code="label-column",
            )
        return [self._numbers[name] for name in names]

    def match_labels(self, rows: Rows, where: str) -> Rows:
        """Number the labels of the rows as in this task; other labels are an error."""
        return rows  # those of spans have none

    def texts(self, rows: Rows) -> Sequence[str]:
        """List all text of the rows, to train a tokenizer on; two texts of a row are separate."""
        rows_of_texts = ([one] if isinstance(one, str) else one for one in rows.keys)
        return [text for texts in rows_of_texts for text in texts]

    @abstractmethod
    def unlabelled(self, inputs: Sequence[Any]) -> Rows:
        """Convert texts, or tuples of two texts, to rows without labels."""

    @abstractmethod
    def predictions(self, scores: Any, rows: Rows, temperature: float = 1.0) -> list[Prediction]:
        """Convert scores to predictions with the keys of `prediction_fields`, one per row."""

    def intervals(self, scores: Any, rows: Rows) -> dict[str, dict[str, Any]]:
        """Compute `value`, `low`, `high` and `method` of each metric, over rows."""
        return {
            name: asdict(one.interval())
            for name, one in self.row_scores(scores, rows).items()
            if one.total.shape[1] == 1 or one.total.size <= MAX_CELLS
        }

    def report(self, scores: Any, rows: Rows, temperature: float = 1.0) -> dict[str, Any]:
        """Evaluate in full: the metrics, their "intervals", "labels", "classes", "notes" …"""
        return {
            **self.metrics(scores, rows, temperature=temperature),
            "intervals": self.intervals(scores, rows),
            "labels": list(self.labels),
            "notes": self.notes(scores, rows, temperature),
        }

    def notes(self, scores: Any, rows: Rows, temperature: float = 1.0) -> list[str]:
        """Say what is suspicious about the predictions for these rows."""
        return []

    def fit_temperature(self, scores: Any, rows: Rows) -> float:
        """Fit the temperature of the probabilities to validation rows; 1 where there is none."""
        return 1.0

    @abstractmethod
    def trivial(self, train: Rows, rows: Rows) -> tuple[str, Any]:
        """Predict without reading the texts: a description, and scores for `rows`."""
