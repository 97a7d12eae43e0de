"""Classes of whole texts: one per text, one per pair of texts, or any number per text.

The head pools the text's hidden states and scores the classes. A long text is read in windows as
long as those of pretraining, and pooled over all of them: the base sees only lengths that it was
trained on, and the whole text is read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import confusion_matrix
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor

from headstart.config import Pooling
from headstart.data.dataset import Dataset, as_text, split_labels
from headstart.evaluation import metrics
from headstart.evaluation.calibration import (
    CERTAINTY,
    CERTAINTY_NOTE,
    Floats,
    at_temperature,
    fit_temperature,
    log_loss,
    measure_calibration,
)
from headstart.model.config import ClassificationConfig
from headstart.model.presets import Preset
from headstart.tasks.task import (
    Examples,
    Ids,
    LabelledBatch,
    Output,
    Prediction,
    Task,
    TextEncoding,
)

CERTAIN = 5.0  # a logit
THRESHOLD = 0.5  # a label is predicted from this probability on


class Classification(Task[Dataset]):
    """One of the classes for each text; scores are logits (rows, classes)."""

    name: ClassVar[str] = "classification"
    prediction_fields: ClassVar[tuple[str, ...]] = ("label", "probability", "probabilities")
    file_suffixes: ClassVar[tuple[str, ...]] = (".csv", ".jsonl")
    whole_texts: ClassVar[bool] = True
    metric_names: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1")

    def match_labels(self, rows: Dataset, where: str) -> Dataset:
        numbers = self.label_numbers(rows.label_names, where)
        labels = [numbers[label] for label in rows.labels]
        return replace(rows, labels=labels, label_names=self.labels)

    def unlabelled(self, inputs: Sequence[Any]) -> Dataset:
        return Dataset("texts", list(inputs), [0] * len(inputs), self.labels)

    def head(self, preset: Preset, pooling: Pooling | None) -> ClassificationConfig:
        usual = preset.classification(len(self.labels))
        return usual if pooling is None else replace(usual, pooling=pooling)

    def encode(self, rows: Dataset, encoding: TextEncoding) -> Examples:
        ids, truncates = encoding.encode(rows.texts), encoding.long == "truncate"
        return Examples(
            tokens=[encoding.windows(one) for one in ids],
            owners=np.arange(len(ids)),
            targets=list(rows.labels),
            weights=row_weights(rows),
            cut=sum(len(one) > encoding.room for one in ids) if truncates else 0,
        )

    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        return F.cross_entropy(outputs.float(), batch.targets, reduction="none")

    def decode(self, outputs: Sequence[Output], examples: Examples) -> Floats:
        return np.asarray(outputs, dtype=np.float64)

    def probabilities(self, scores: Floats, temperature: float = 1.0) -> Floats:
        """Compute the probability of each class (rows, classes) from scores of that shape."""
        return at_temperature(scores, temperature)

    def predictions(
        self, scores: Floats, rows: Dataset, temperature: float = 1.0
    ) -> list[Prediction]:
        rows_of_p = self.probabilities(scores, temperature).tolist()
        return [self.prediction(dict(zip(self.labels, p, strict=True))) for p in rows_of_p]

    def prediction(self, probabilities: dict[str, float]) -> Prediction:
        """Make the prediction for a row from the probabilities of its labels."""
        label = max(probabilities, key=probabilities.__getitem__)
        return {"label": label, "probability": probabilities[label], "probabilities": probabilities}

    def report(self, scores: Floats, rows: Dataset, temperature: float = 1.0) -> dict[str, Any]:
        probabilities = self.probabilities(scores, temperature)
        predicted, numbers = probabilities.argmax(axis=1), np.arange(len(self.labels))
        mistakes = [
            {
                **rows.place(one["row"]),
                "text": as_text(rows.texts[one["row"]]),
                "true": self.labels[one["true"]],
                "predicted": self.labels[one["predicted"]],
                "confidence": one["confidence"],
            }
            for one in metrics.confident_mistakes(probabilities, rows.labels)
        ]
        confusion = confusion_matrix(rows.labels, predicted, labels=numbers)
        counts = confusion.diagonal(), confusion.sum(axis=0), confusion.sum(axis=1)
        return {
            **Task.report(self, scores, rows, temperature),
            "calibration": measure_calibration(scores, rows.labels, temperature),
            "confusion": confusion.tolist(),
            "classes": metrics.class_table(self.labels, *counts),
            "mistakes": mistakes,
        }

    def notes(self, scores: Floats, rows: Dataset, temperature: float = 1.0) -> list[str]:
        p = self.probabilities(scores, temperature)
        certain = p.size and (np.maximum(p, 1 - p) >= CERTAINTY).all()
        return [CERTAINTY_NOTE] if certain else []

    def row_scores(self, scores: Floats, rows: Dataset) -> dict[str, metrics.RowScores]:
        classes = np.arange(len(self.labels))
        wanted = np.asarray(rows.labels)[:, None] == classes  # (rows, classes)
        given = scores.argmax(axis=1)[:, None] == classes
        correct = wanted & given
        return {
            "accuracy": metrics.mean_scores(correct.any(axis=1)),
            "macro_f1": metrics.f1_scores(correct, given, wanted),
        }

    def trivial(self, train: Dataset, rows: Dataset) -> tuple[str, Floats]:
        counts = np.bincount(train.labels, minlength=len(self.labels))
        scores = np.tile(np.log((counts + 1) / (counts + 1).sum()), (len(rows), 1))
        return f"majority class: always '{self.labels[int(counts.argmax())]}'", scores

    def mean_loss(self, scores: Floats, rows: Dataset, temperature: float) -> float:
        return log_loss(self.probabilities(scores, temperature), np.asarray(rows.labels))

    def fit_temperature(self, scores: Floats, rows: Dataset) -> float:
        return fit_temperature(scores, rows.labels)

    def class_weights(self, rows: Dataset, examples: Examples) -> NDArray[np.float32]:
        """Compute weights with which all classes, or combinations of labels, count the same."""
        weight = compute_sample_weight("balanced", rows.labels)
        return (examples.weights * weight[examples.owners]).astype(np.float32)


class Pairs(Classification):
    """One of the classes for each pair of texts, read as `<begin> A <separator> B <end>`."""

    name: ClassVar[str] = "pairs"
    input_names: ClassVar[tuple[str, ...]] = ("text", "second_text")
    supports_windows: ClassVar[bool] = False  # a window could hold only one of the two texts

    def unlabelled(self, inputs: Sequence[Any]) -> Dataset:
        return super().unlabelled([tuple(pair) for pair in inputs])

    def encode(self, rows: Dataset, encoding: TextEncoding) -> Examples:
        between = encoding.between
        room = encoding.room - len(between)
        ids = encoding.encode(self.texts(rows))
        tokens, types, cut = list[list[Ids]](), list[Ids](), 0
        for pair in zip(ids[::2], ids[1::2], strict=True):
            first, second = fit_pair(*pair, room)
            cut += len(first) + len(second) < sum(map(len, pair))
            whole = encoding.framed(np.concatenate([first, between, second]))
            token_types = np.zeros(len(whole), dtype=np.int64)
            token_types[len(whole) - len(second) - len(encoding.after) :] = 1
            tokens.append([whole])
            types.append(token_types)
        return Examples(
            tokens=tokens,
            owners=np.arange(len(tokens)),
            targets=list(rows.labels),
            weights=row_weights(rows),
            token_types=types,
            cut=cut,
        )


class MultiLabel(Classification):
    """A set of labels for each text, which may be empty.

    Each label has a sigmoid and a binary cross-entropy, averaged over the labels. `label_names` of
    its rows are combinations ("comedy|drama"); the task's labels are their parts.
    """

    name: ClassVar[str] = "multi-label"
    prediction_fields: ClassVar[tuple[str, ...]] = ("labels", "probabilities")
    metric_names: ClassVar[tuple[str, ...]] = ("micro_f1", "macro_f1", "accuracy")

    @classmethod
    def from_rows(cls, train: Dataset) -> "MultiLabel":
        return cls(sorted({name for one in train.label_names for name in split_labels(one)}))

    def match_labels(self, rows: Dataset, where: str) -> Dataset:
        self.matrix(rows, where)
        return rows

    def encode(self, rows: Dataset, encoding: TextEncoding) -> Examples:
        targets = list(self.matrix(rows).astype(np.float32))
        return replace(super().encode(rows, encoding), targets=targets)

    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            outputs.float(), batch.targets, reduction="none"
        ).mean(dim=1)

    def probabilities(self, scores: Floats, temperature: float = 1.0) -> Floats:
        return np.asarray(expit(scores / temperature))

    def prediction(self, probabilities: dict[str, float]) -> Prediction:
        chosen = [name for name, p in probabilities.items() if p >= THRESHOLD]
        return {"labels": chosen, "probabilities": probabilities}

    def mean_loss(self, scores: Floats, rows: Dataset, temperature: float) -> float:
        p = self.probabilities(scores, temperature)
        # A label is a problem of two classes: (cells, 2) probabilities give an ordinary log-loss.
        cells = np.stack([1 - p, p], axis=-1).reshape(-1, 2)
        return log_loss(cells, self.matrix(rows).ravel())

    def report(self, scores: Floats, rows: Dataset, temperature: float = 1.0) -> dict[str, Any]:
        true, given = self.matrix(rows), self.probabilities(scores, temperature) >= THRESHOLD
        counts = (true * given).sum(axis=0), given.sum(axis=0), true.sum(axis=0)
        return {
            **Task.report(self, scores, rows, temperature),
            "classes": metrics.class_table(self.labels, *counts),
        }

    def row_scores(self, scores: Floats, rows: Dataset) -> dict[str, metrics.RowScores]:
        true = self.matrix(rows)
        predicted = (self.probabilities(scores) >= THRESHOLD).astype(np.int64)
        counts = true * predicted, predicted, true
        return {
            "micro_f1": metrics.f1_scores(*(one.sum(axis=1) for one in counts)),
            "macro_f1": metrics.f1_scores(*counts),
            "accuracy": metrics.mean_scores((true == predicted).all(axis=1)),
        }

    def trivial(self, train: Dataset, rows: Dataset) -> tuple[str, Floats]:
        sets, counts = np.unique(self.matrix(train), axis=0, return_counts=True)
        often = sets[int(counts.argmax())]
        names = [name for name, has in zip(self.labels, often, strict=True) if has]
        scores = np.tile(np.where(often, CERTAIN, -CERTAIN), (len(rows), 1))
        return f"most frequent labels: always {' and '.join(names) or 'none'}", scores

    def fit_temperature(self, scores: Floats, rows: Dataset) -> float:
        return 1.0  # one number would not calibrate every label

    def matrix(self, rows: Dataset, where: str | None = None) -> NDArray[np.int64]:
        """Make the indicator matrix (rows, labels): 1 where the row has the label."""
        combinations = np.zeros((len(rows.label_names), len(self.labels)), dtype=np.int64)
        for number, combination in enumerate(rows.label_names):
            labels = split_labels(combination)
            combinations[number, self.label_numbers(labels, where or rows.name)] = 1
        return combinations[np.asarray(rows.labels, dtype=np.int64)]


def row_weights(rows: Dataset) -> NDArray[np.float32]:
    """List the weight of each text in training; 1 where the rows have none."""
    return np.array(rows.weights or [1.0] * len(rows), dtype=np.float32)


def fit_pair(first: Ids, second: Ids, room: int) -> tuple[Ids, Ids]:
    """Cut two texts so that both fit into `room`; the longer one is cut first."""
    half = room // 2
    return (first[: max(half, room - len(second))], second[: max(room - half, room - len(first))])
