"""Multi-label classification: any number of labels per text, including none.

Each label is a yes-or-no question of its own, with a sigmoid and a binary cross-entropy, averaged
over the labels. Rows name their labels as a list, or with `|`, `;` or `,` in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import MultiLabelMetrics, multi_label_metrics
from headstart.evaluation.row_scores import RowScores, f1_scores, mean_scores
from headstart.progress import ProgressCallback
from headstart.tasks.classification import Classification
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding
from headstart.text.checking.checks import LABELS_MARK
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.reading.read import read_dataset, read_labelled

CERTAIN = 5.0  # a logit


class MultiLabel(Classification):
    """A part's `label_names` are combinations ("comedy|drama"), the task's labels their parts."""

    name: ClassVar[str] = "multi-label"
    metric = "micro_f1"
    linear = "headstart.baselines.task_baselines:fit_one_vs_rest"

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> Splits:
        return read_dataset(sources, several_labels=True, **how)

    def read_all(self, source: str, **how: Any) -> Dataset:
        return self.fitted(read_labelled(source, (), several_labels=True, **how), source)

    def fitted(self, part: Dataset, where: str) -> Dataset:
        self.matrix(part, where)
        return part

    @classmethod
    def of(cls, train: Dataset) -> "MultiLabel":
        names = sorted({name for combination in train.label_names for name in _parts(combination)})
        if len(names) < 2:
            raise HeadstartError(
                f"the texts have {len(names)} label only; two or more are needed",
                fix="for one yes-or-no question leave --task multi-label out",
            )
        return cls(names)

    def unlabelled(self, texts: Sequence[str]) -> Dataset:
        return Dataset("texts", list(texts), [0] * len(texts), ("",))

    def encode(
        self, part: Dataset, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        examples = super().encode(part, encoding, progress=progress)
        rows = self.matrix(part).astype(np.float32)
        examples.targets[:] = [rows[owner] for owner in examples.owners]
        return examples

    def losses(self, outputs: Tensor, batch: LabelledBatch, *, smoothing: float = 0.0) -> Tensor:
        wanted = batch.targets * (1 - smoothing) + smoothing / 2
        loss = F.binary_cross_entropy_with_logits(outputs.float(), wanted, reduction="none")
        return loss.mean(dim=1)

    def probabilities(
        self, scores: NDArray[np.float64], temperature: float = 1.0
    ) -> NDArray[np.float64]:
        return np.asarray(expit(scores / temperature))

    def fit_temperature(self, validation: Mapping[str, NDArray[Any]]) -> float:
        return 1.0  # each label is a question of its own; one number would not do for all

    def label_of(self, probabilities: Mapping[str, float]) -> str:
        """The labels with a probability of at least one half, separated by blanks."""
        return " ".join(name for name, p in probabilities.items() if p >= 0.5)

    def metrics(self, answers: NDArray[np.float64], part: Dataset) -> dict[str, float]:
        found = self._all_metrics(answers, part)
        return {
            "loss": found.log_loss,
            "micro_f1": found.micro_f1,
            "macro_f1": found.macro_f1,
            "accuracy": found.accuracy.value,
        }

    def evaluation(
        self, answers: NDArray[np.float64], part: Dataset, *, temperature: float = 1.0
    ) -> dict[str, Any]:
        found = {**asdict(self._all_metrics(answers, part)), "labels": list(self.labels)}
        return found | self.intervals(answers, part)

    def row_scores(self, answers: NDArray[np.float64], part: Dataset) -> dict[str, RowScores]:
        true = self.matrix(part)
        predicted = (self.probabilities(answers) >= 0.5).astype(np.int64)
        counts = true * predicted, predicted, true
        return {
            "accuracy": mean_scores((true == predicted).all(axis=1)),
            "micro_f1": f1_scores(*(one.sum(axis=1) for one in counts)),
            "macro_f1": f1_scores(*counts),
        }

    def trivial(self, train: Dataset, part: Dataset) -> tuple[str, NDArray[np.float64]]:
        sets, counts = np.unique(self.matrix(train), axis=0, return_counts=True)
        often = sets[int(counts.argmax())]
        names = [name for name, has in zip(self.labels, often, strict=True) if has]
        scores = np.tile(np.where(often, CERTAIN, -CERTAIN), (len(part), 1))
        return f"most frequent labels: always {' and '.join(names) or 'none'}", scores

    def kept(self, answers: NDArray[np.float64], part: Dataset) -> dict[str, NDArray[Any]]:
        return {"logits": answers, "labels": self.matrix(part)}

    def balanced(self, part: Dataset, examples: Examples) -> NDArray[np.float32]:
        """A text counts as much as the rarest of its labels does."""
        matrix = self.matrix(part)
        counts = np.maximum(matrix.sum(axis=0), 1)
        weight = (matrix * (counts.max() / counts)).max(axis=1)
        weight[weight == 0] = 1.0  # a text without labels
        return (examples.weights * weight[examples.owners]).astype(np.float32)

    def _all_metrics(self, answers: NDArray[np.float64], part: Dataset) -> MultiLabelMetrics:
        return multi_label_metrics(self.probabilities(answers), self.matrix(part), self.labels)

    def matrix(self, part: Dataset, where: str | None = None) -> NDArray[np.int64]:
        """(rows, labels): 1 where the row has the label."""
        places = {name: place for place, name in enumerate(self.labels)}
        combinations = np.zeros((len(part.label_names), len(self.labels)), dtype=np.int64)
        for number, combination in enumerate(part.label_names):
            for name in _parts(combination):
                if name not in places:
                    raise HeadstartError(
                        f"label '{name}' is not one of the run's: "
                        + ", ".join(f"'{label}'" for label in self.labels[:20]),
                        where=where or part.name,
                        fix="correct it, or give the training file examples of it",
                    )
                combinations[number, places[name]] = 1
        return combinations[np.asarray(part.labels, dtype=np.int64)]


def _parts(combination: str) -> list[str]:
    return [name for name in combination.split(LABELS_MARK) if name]
