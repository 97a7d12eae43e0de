"""Multi-label classification: any number of labels per text, including none.

Each label has its own sigmoid and binary cross-entropy, averaged over the labels. Rows name their
labels as a list, or with `|`, `;` or `,` in between.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.calibration import CERTAINTY_NOTE, is_certain, log_loss
from headstart.evaluation.metrics import class_table
from headstart.evaluation.row_scores import RowScores, f1_scores, mean_scores
from headstart.progress import ProgressCallback
from headstart.tasks.classification import Classification, Floats
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding
from headstart.tasks.task import Prediction, Task
from headstart.text.checking.checks import LABELS_MARK
from headstart.text.reading.dataset import Dataset

CERTAIN = 5.0  # a logit
THRESHOLD = 0.5  # a label is predicted from this probability on


class MultiLabel(Classification):
    """A set of labels for each text.

    `label_names` of its rows are combinations ("comedy|drama"); the task's labels are their parts.
    """

    name: ClassVar[str] = "multi-label"
    prediction_fields: ClassVar[tuple[str, ...]] = ("labels", "probabilities")
    has_temperature: ClassVar[bool] = False  # one number would not calibrate every label
    metric_names: ClassVar[tuple[str, ...]] = ("micro_f1", "macro_f1", "accuracy")
    metric = "micro_f1"
    read_settings: ClassVar[dict[str, Any]] = {"several_labels": True}

    @classmethod
    def from_rows(cls, train: Dataset) -> "MultiLabel":
        names = sorted({name for one in train.label_names for name in _parts(one)})
        if len(names) < 2:
            raise HeadstartError(
                f"the texts have {len(names)} label only; two or more are needed",
                fix="for one yes-or-no question leave --task multi-label out",
            )
        return cls(names)

    def match_labels(self, rows: Dataset, where: str) -> Dataset:
        self.matrix(rows, where)
        return rows

    def unlabelled(self, inputs: Sequence[Any]) -> Dataset:
        return Dataset("texts", list(inputs), [0] * len(inputs), ("",))

    def encode(
        self, rows: Dataset, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        examples = super().encode(rows, encoding, progress=progress)
        targets = self.matrix(rows).astype(np.float32)
        examples.targets[:] = [targets[owner] for owner in examples.owners]
        return examples

    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        loss = F.binary_cross_entropy_with_logits(outputs.float(), batch.targets, reduction="none")
        return loss.mean(dim=1)

    def probabilities(self, scores: Floats, temperature: float = 1.0) -> Floats:
        return np.asarray(expit(scores / temperature))

    def predictions(
        self, scores: Floats, rows: Dataset, temperature: float = 1.0
    ) -> list[Prediction]:
        found = []
        for row in self.probabilities(scores, temperature):
            named = dict(zip(self.labels, row.tolist(), strict=True))
            chosen = [name for name, p in named.items() if p >= THRESHOLD]
            found.append({"labels": chosen, "probabilities": named})
        return found

    def mean_loss(self, scores: Floats, rows: Dataset, temperature: float) -> float:
        p = self.probabilities(scores, temperature)
        # A label is a problem of two classes: (cells, 2) probabilities give an ordinary log-loss.
        cells = np.stack([1 - p, p], axis=-1).reshape(-1, 2)
        return log_loss(cells, self.matrix(rows).ravel())

    def report(self, scores: Floats, rows: Dataset, temperature: float = 1.0) -> dict[str, Any]:
        p = self.probabilities(scores, temperature)
        return {
            **Task.report(self, scores, rows, temperature),
            "classes": class_table(self.matrix(rows), p >= THRESHOLD, self.labels),
            "notes": [CERTAINTY_NOTE] if is_certain(np.stack([p, 1 - p], axis=-1)) else [],
        }

    def row_scores(self, scores: Floats, rows: Dataset) -> dict[str, RowScores]:
        true = self.matrix(rows)
        predicted = (self.probabilities(scores) >= THRESHOLD).astype(np.int64)
        counts = true * predicted, predicted, true
        return {
            "micro_f1": f1_scores(*(one.sum(axis=1) for one in counts)),
            "macro_f1": f1_scores(*counts),
            "accuracy": mean_scores((true == predicted).all(axis=1)),
        }

    def trivial(self, train: Dataset, rows: Dataset) -> tuple[str, Floats]:
        sets, counts = np.unique(self.matrix(train), axis=0, return_counts=True)
        often = sets[int(counts.argmax())]
        names = [name for name, has in zip(self.labels, often, strict=True) if has]
        scores = np.tile(np.where(often, CERTAIN, -CERTAIN), (len(rows), 1))
        return f"most frequent labels: always {' and '.join(names) or 'none'}", scores

    def validation_arrays(self, scores: Floats, rows: Dataset) -> dict[str, NDArray[Any]]:
        return {"logits": scores, "labels": self.matrix(rows)}

    def class_weights(self, rows: Dataset, examples: Examples) -> NDArray[np.float32]:
        """Weight each text by the rarest of its labels."""
        matrix = self.matrix(rows)
        counts = np.maximum(matrix.sum(axis=0), 1)
        weight = (matrix * (counts.max() / counts)).max(axis=1)
        weight[weight == 0] = 1.0  # a text without labels
        return (examples.weights * weight[examples.owners]).astype(np.float32)

    def matrix(self, rows: Dataset, where: str | None = None) -> NDArray[np.int64]:
        """Make the indicator matrix (rows, labels): 1 where the row has the label."""
        places = {name: place for place, name in enumerate(self.labels)}
        combinations = np.zeros((len(rows.label_names), len(self.labels)), dtype=np.int64)
        for number, combination in enumerate(rows.label_names):
            for name in _parts(combination):
                if name not in places:
                    raise HeadstartError(
                        f"label '{name}' is not one of the run's: "
                        + ", ".join(f"'{label}'" for label in self.labels[:20]),
                        where=where or rows.name,
                        fix="correct it, or give the training file examples of it",
                    )
                combinations[number, places[name]] = 1
        return combinations[np.asarray(rows.labels, dtype=np.int64)]


def _parts(combination: str) -> list[str]:
    return [name for name in combination.split(LABELS_MARK) if name]
