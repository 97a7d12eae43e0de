"""What every task defines: how labelled rows become examples, outputs a loss, and a metric.

The network runs the same way for all of them: `model(tokens, segments, token_types)`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headstart.evaluation.row_scores import RowScores
from headstart.model.config import HeadConfig, Pooling
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding
from headstart.text.reading.dataset import Dataset

Part = TypeVar("Part")  # labelled rows: training, validation or test
Part_co = TypeVar("Part_co", covariant=True)
Output = NDArray[np.float32]


class Parts(Protocol[Part_co]):
    """Weights are learned on train, settings are chosen on validation, test reports once."""

    @property
    def train(self) -> Part_co: ...

    @property
    def validation(self) -> Part_co: ...

    @property
    def test(self) -> Part_co | None: ...


class Task(ABC, Generic[Part]):
    """One kind of prediction; an instance belongs to one set of labels.

    `predictor` says how rows are read for prediction, predicted and written: a subclass of
    `headstart.inference.predict.predictor.Predictor`, or where it is found, as `module:name`.
    """

    name: ClassVar[str]
    windows: ClassVar[bool] = True  # whether long texts can be read in windows
    whole_texts: ClassVar[bool] = False  # whether a target is of a whole text, not of its tokens
    metric: str  # the main one of `metrics`
    predictor: ClassVar[Any] = "headstart.inference.predict.classes:ClassPredictor"
    texts_per_row: ClassVar[int] = 1  # 2 where a row is a pair of texts
    row_name: ClassVar[str] = "rows"  # what is counted, in messages
    class_row_name: ClassVar[str] = "rows"  # what the per-class table counts
    linear: ClassVar[Any] = None  # a linear baseline's `fit`, or where it is found: `module:name`

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    @classmethod
    @abstractmethod
    def read(cls, sources: Sequence[str], **how: Any) -> "Parts[Part]":
        """Read labelled files; `how` is what `text.reading.read.read_dataset` takes."""

    @abstractmethod
    def read_all(self, source: str, **how: Any) -> Part:
        """Every row of one file, with this task's labels and no others."""

    def fitted(self, part: Part, where: str) -> Part:
        """Rows with this task's labels, numbered as here; other labels are an error."""
        return part

    @classmethod
    @abstractmethod
    def of(cls, train: Part) -> "Task[Part]":
        """The task with the labels of these training rows."""

    @abstractmethod
    def texts(self, part: Part) -> Sequence[str]:
        """All text of the rows, to train a tokenizer on."""

    def row_texts(self, part: Part) -> Sequence[str]:
        """What each row is known by: one text per row, the same wherever the row comes from."""
        return self.texts(part)

    def inspected(self, part: Part) -> Dataset:
        """The rows as texts with one label each, to be looked at before training."""
        if isinstance(part, Dataset):
            return part
        texts = list(self.row_texts(part))
        return Dataset("rows", texts, [0] * len(texts), (self.row_name,))

    def pick(self, part: Part, rows: Sequence[int]) -> Part:
        """These rows of a part, in this order."""
        picked: Part = part.pick(rows)  # type: ignore[attr-defined]
        return picked

    @abstractmethod
    def head(self, preset: Preset, pooling: Pooling | None) -> HeadConfig:
        """The head for a base of this preset; `pooling` overrides the preset's."""

    @abstractmethod
    def encode(
        self, part: Part, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        """The rows as the network reads them."""

    @abstractmethod
    def losses(self, outputs: Tensor, batch: LabelledBatch, *, smoothing: float = 0.0) -> Tensor:
        """The loss of each example (B), not yet weighted."""

    @abstractmethod
    def join(self, outputs: Sequence[Output], examples: Examples) -> Any:
        """One answer per row of the dataset, from the network's outputs for its examples."""

    @abstractmethod
    def metrics(self, answers: Any, part: Part) -> dict[str, float]:
        """Named numbers, among them "loss" (lower is better) and `metric` (higher is better)."""

    def evaluation(self, answers: Any, part: Part, *, temperature: float = 1.0) -> dict[str, Any]:
        """The full evaluation of answers; `temperature` is the run's."""
        return {**self.metrics(answers, part), **self.intervals(answers, part)}

    def row_scores(self, answers: Any, part: Part) -> dict[str, RowScores]:
        """What each row adds to each metric; those that are not here have no interval."""
        return {}

    def intervals(self, answers: Any, part: Part) -> dict[str, dict[str, float]]:
        """Each metric as `value`, `low` and `high`, over rows."""
        scores = self.row_scores(answers, part)
        return {name: asdict(one.interval()) for name, one in scores.items()}

    def trivial(self, train: Part, part: Part) -> tuple[str, Any] | None:
        """What is answered without reading, in words, and such answers for the rows of `part`."""
        return None

    def fit_temperature(self, validation: Mapping[str, NDArray[Any]]) -> float:
        """The temperature for this task's probabilities, from what `kept` returned; 1 is none."""
        return 1.0

    @abstractmethod
    def kept(self, answers: Any, part: Part) -> dict[str, NDArray[Any]]:
        """The answers for validation as a run keeps them, with the true ones."""

    @abstractmethod
    def balanced(self, part: Part, examples: Examples) -> NDArray[np.float32]:
        """Weights of the examples with which all classes count the same."""
