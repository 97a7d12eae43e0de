"""Classification: one text, one of two or more classes.

The head pools the text's hidden states and scores the classes; the loss is cross-entropy. A long
text is read in windows as long as those of pretraining, and pooled over all of them: the base only
ever sees lengths that it was trained on, and nothing of the text is lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.calibration import at_temperature, fit_temperature
from headstart.evaluation.metrics import classification_metrics, full_evaluation
from headstart.evaluation.row_scores import RowScores, f1_scores, mean_scores
from headstart.model.config import ClassificationConfig, Pooling
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding, encode_texts, left_out
from headstart.tasks.task import Output, Task
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.reading.read import read_dataset, read_labelled

MOST_CELLS = 20_000_000  # rows × classes that a macro average is drawn over


class Classification(Task[Dataset]):
    """One of the classes for each text."""

    name: ClassVar[str] = "classification"
    whole_texts: ClassVar[bool] = True
    metric = "accuracy"
    linear = "headstart.baselines.task_baselines:fit_tfidf"

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> Splits:
        return read_dataset(sources, **how)

    def read_all(self, source: str, **how: Any) -> Dataset:
        return read_labelled(source, self.labels, **how)

    def fitted(self, part: Dataset, where: str) -> Dataset:
        if part.label_names == self.labels:
            return part
        if unknown := [name for name in part.label_names if name not in self.labels]:
            raise HeadstartError(
                f"the dataset has other labels than the run: {_listed(unknown)}; the run knows "
                f"{_listed(self.labels)}",
                where=where,
                fix="name the right column with --label-column, or a run of these labels",
                code="label-column",
            )
        numbers = [self.labels.index(name) for name in part.label_names]
        return replace(
            part, labels=[numbers[label] for label in part.labels], label_names=self.labels
        )

    @classmethod
    def of(cls, train: Dataset) -> "Classification":
        return cls(train.label_names)

    def texts(self, part: Dataset) -> Sequence[str]:
        return part.texts

    def row_texts(self, part: Dataset) -> Sequence[str]:
        return part.texts

    def unlabelled(self, texts: Sequence[str]) -> Dataset:
        """Texts to predict, in the form of labelled ones."""
        return Dataset("texts", list(texts), [0] * len(texts), self.labels)

    def head(self, preset: Preset, pooling: Pooling | None) -> ClassificationConfig:
        usual = preset.classification(len(self.labels))
        if pooling is None or pooling == usual.pooling:
            return usual
        return ClassificationConfig(
            classes=usual.classes, pooling=pooling, dense=usual.dense, dropout=usual.dropout
        )

    def encode(
        self, part: Dataset, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        ids = encode_texts(part.texts, encoding, progress)
        windows = [[encoding.framed(part) for part in encoding.parts(one)] for one in ids]
        several = any(len(parts) > 1 for parts in windows)
        return Examples(
            tokens=[np.concatenate(parts) for parts in windows],
            owners=np.arange(len(ids)),
            targets=list(part.labels),
            weights=weights_of(part),
            cut=left_out(ids, encoding),
            windows=[np.array([len(p) for p in parts]) for parts in windows] if several else None,
        )

    def losses(self, outputs: Tensor, batch: LabelledBatch, *, smoothing: float = 0.0) -> Tensor:
        return F.cross_entropy(
            outputs.float(), batch.targets, reduction="none", label_smoothing=smoothing
        )

    def join(self, outputs: Sequence[Output], examples: Examples) -> NDArray[np.float64]:
        """The scores of each text: (rows, classes)."""
        return np.asarray(outputs, dtype=np.float64)

    def probabilities(
        self, scores: NDArray[np.float64], temperature: float = 1.0
    ) -> NDArray[np.float64]:
        """The probability of each class: (rows, classes), from scores of that shape."""
        return at_temperature(scores, temperature)

    def label_of(self, probabilities: Mapping[str, float]) -> str:
        """The predicted label, from the probability of each class by name."""
        return max(probabilities, key=probabilities.__getitem__)

    def metrics(self, answers: NDArray[np.float64], part: Dataset) -> dict[str, float]:
        found = classification_metrics(self.probabilities(answers), part.labels, self.labels)
        return {
            "loss": found.log_loss,
            "accuracy": found.accuracy.value,
            "macro_f1": found.macro_f1,
        }

    def evaluation(
        self, answers: NDArray[np.float64], part: Dataset, *, temperature: float = 1.0
    ) -> dict[str, Any]:
        found = full_evaluation(answers, part.labels, part.texts, self.labels, temperature)
        return found | self.intervals(answers, part)

    def fit_temperature(self, validation: Mapping[str, NDArray[Any]]) -> float:
        return fit_temperature(validation["logits"], validation["labels"])

    def row_scores(self, answers: NDArray[np.float64], part: Dataset) -> dict[str, RowScores]:
        true, predicted = np.asarray(part.labels), answers.argmax(axis=1)
        found = {"accuracy": mean_scores(true == predicted)}
        if len(part) * len(self.labels) <= MOST_CELLS:
            wanted, given = np.eye(len(self.labels))[true], np.eye(len(self.labels))[predicted]
            found["macro_f1"] = f1_scores(wanted * given, given, wanted)
        return found

    def trivial(self, train: Dataset, part: Dataset) -> tuple[str, NDArray[np.float64]]:
        counts = np.bincount(train.labels, minlength=len(self.labels))
        scores = np.tile(np.log((counts + 1) / (counts + 1).sum()), (len(part), 1))
        return f"majority class: always '{self.labels[int(counts.argmax())]}'", scores

    def kept(self, answers: NDArray[np.float64], part: Dataset) -> dict[str, NDArray[Any]]:
        return {"logits": answers, "labels": np.asarray(part.labels, dtype=np.int64)}

    def balanced(self, part: Dataset, examples: Examples) -> NDArray[np.float32]:
        labels = np.asarray(part.labels)
        present, counts = np.unique(labels, return_counts=True)
        weight = np.zeros(len(self.labels))
        weight[present] = len(labels) / (len(present) * counts)
        return (examples.weights * weight[labels[examples.owners]]).astype(np.float32)


def weights_of(part: Dataset) -> NDArray[np.float32]:
    """How much each text counts in training: what the rows say, or all the same."""
    given = [1.0] * len(part) if part.weights is None else part.weights
    return np.array(given, dtype=np.float32)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:10]) + (", …" if len(names) > 10 else "")
