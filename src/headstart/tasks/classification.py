"""Classification: one text, one of two or more classes.

The head pools the text's hidden states and scores the classes; the loss is cross-entropy. A long
text is read in windows as long as those of pretraining, and pooled over all of them: the base sees
only lengths that it was trained on, and the whole text is read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.calibration import (
    CERTAINTY_NOTE,
    at_temperature,
    is_certain,
    log_loss,
    measure_calibration,
)
from headstart.evaluation.metrics import class_table, confident_mistakes
from headstart.evaluation.row_scores import RowScores, f1_scores, mean_scores
from headstart.model.config import ClassificationConfig, Pooling
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding, count_cut, encode_texts
from headstart.tasks.task import Output, Prediction, Task
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.reading.read import read_dataset, read_labelled

Floats = NDArray[np.float64]


class Classification(Task[Dataset]):
    """One of the classes for each text. Scores are logits (rows, classes)."""

    name: ClassVar[str] = "classification"
    prediction_fields: ClassVar[tuple[str, ...]] = ("label", "probability", "probabilities")
    file_suffixes: ClassVar[tuple[str, ...]] = (".csv", ".jsonl", ".parquet")
    whole_texts: ClassVar[bool] = True
    has_temperature: ClassVar[bool] = True
    metric_names: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1")
    metric = "accuracy"
    read_settings: ClassVar[dict[str, Any]] = {}  # of `read_dataset` and `read_labelled`

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> Splits:
        return read_dataset(sources, **cls.read_settings, **how)

    def read_all(self, source: str, **how: Any) -> Dataset:
        rows = read_labelled(source, self.labels, **self.read_settings, **how)
        return self.match_labels(rows, source)

    @classmethod
    def from_rows(cls, train: Dataset) -> "Classification":
        return cls(train.label_names)

    def match_labels(self, rows: Dataset, where: str) -> Dataset:
        if rows.label_names == self.labels:
            return rows
        if unknown := [name for name in rows.label_names if name not in self.labels]:
            raise HeadstartError(
                f"the dataset has other labels than the run: {_listed(unknown)}; the run knows "
                f"{_listed(self.labels)}",
                where=where,
                fix="name the right column with --label-column, or a run of these labels",
                code="label-column",
            )
        numbers = [self.labels.index(name) for name in rows.label_names]
        labels = [numbers[label] for label in rows.labels]
        return replace(rows, labels=labels, label_names=self.labels)

    def texts(self, rows: Dataset) -> Sequence[str]:
        return rows.texts

    def row_texts(self, rows: Dataset) -> Sequence[str]:
        return rows.texts

    def row_classes(self, rows: Dataset) -> tuple[list[int], tuple[str, ...]]:
        return rows.labels, rows.label_names

    def unlabelled(self, inputs: Sequence[Any]) -> Dataset:
        return Dataset("texts", list(inputs), [0] * len(inputs), self.labels)

    def head(self, preset: Preset, pooling: Pooling | None) -> ClassificationConfig:
        usual = preset.classification(len(self.labels))
        return usual if pooling is None else replace(usual, pooling=pooling)

    def encode(
        self, rows: Dataset, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        ids = encode_texts(rows.texts, encoding, progress)
        windows = [encoding.windows(one) for one in ids]
        lengths = [np.array(list(map(len, parts))) for parts in windows]
        framing = len(encoding.before) + len(encoding.after)
        read = [int(one.sum()) - framing * len(one) for one in lengths]
        several = any(len(parts) > 1 for parts in windows)
        return Examples(
            tokens=[np.concatenate(parts) for parts in windows],
            owners=np.arange(len(ids)),
            targets=list(rows.labels),
            weights=row_weights(rows),
            cut=count_cut([len(one) for one in ids], read),
            windows=lengths if several else None,
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
        found = []
        for row in self.probabilities(scores, temperature):
            named = dict(zip(self.labels, row.tolist(), strict=True))
            label = max(named, key=named.__getitem__)
            found.append({"label": label, "probability": named[label], "probabilities": named})
        return found

    def mean_loss(self, scores: Floats, rows: Dataset, temperature: float) -> float:
        return log_loss(self.probabilities(scores, temperature), np.asarray(rows.labels))

    def report(self, scores: Floats, rows: Dataset, temperature: float = 1.0) -> dict[str, Any]:
        probabilities = self.probabilities(scores, temperature)
        predicted, numbers = probabilities.argmax(axis=1), np.arange(len(self.labels))
        mistakes = [
            {
                "row": one["row"] + 1,
                "text": rows.texts[one["row"]],
                "true": self.labels[one["true"]],
                "predicted": self.labels[one["predicted"]],
                "confidence": one["confidence"],
            }
            for one in confident_mistakes(probabilities, rows.labels)
        ]
        return {
            **Task.report(self, scores, rows, temperature),
            "calibration": measure_calibration(scores, rows.labels, temperature),
            "confusion": confusion_matrix(rows.labels, predicted, labels=numbers).tolist(),
            "classes": class_table(rows.labels, predicted, self.labels),
            "mistakes": mistakes,
            "notes": [CERTAINTY_NOTE] if is_certain(probabilities) else [],
        }

    def row_scores(self, scores: Floats, rows: Dataset) -> dict[str, RowScores]:
        classes = np.arange(len(self.labels))
        wanted = np.asarray(rows.labels)[:, None] == classes  # (rows, classes)
        given = scores.argmax(axis=1)[:, None] == classes
        correct = wanted & given
        return {
            "accuracy": mean_scores(correct.any(axis=1)),
            "macro_f1": f1_scores(correct, given, wanted),
        }

    def trivial(self, train: Dataset, rows: Dataset) -> tuple[str, Floats]:
        counts = np.bincount(train.labels, minlength=len(self.labels))
        scores = np.tile(np.log((counts + 1) / (counts + 1).sum()), (len(rows), 1))
        return f"majority class: always '{self.labels[int(counts.argmax())]}'", scores

    def validation_arrays(self, scores: Floats, rows: Dataset) -> dict[str, NDArray[Any]]:
        return {"logits": scores, "labels": np.asarray(rows.labels, dtype=np.int64)}

    def class_weights(self, rows: Dataset, examples: Examples) -> NDArray[np.float32]:
        labels = np.asarray(rows.labels)
        present, counts = np.unique(labels, return_counts=True)
        weight = np.zeros(len(self.labels))
        weight[present] = len(labels) / (len(present) * counts)
        return (examples.weights * weight[labels[examples.owners]]).astype(np.float32)


def row_weights(rows: Dataset) -> NDArray[np.float32]:
    """List the weight of each text in training; 1 where the rows have none."""
    given = [1.0] * len(rows) if rows.weights is None else rows.weights
    return np.array(given, dtype=np.float32)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:10]) + (", …" if len(names) > 10 else "")
