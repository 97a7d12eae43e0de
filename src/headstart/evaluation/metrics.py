"""The metrics of a classifier: accuracy with its interval, F1, log-loss, calibration.

Labels are class numbers (0, 1, …) and index the columns of the probabilities; `names` are the
classes' names in that order. A class that never occurs and is never predicted has an F1 of 0, as
in scikit-learn.

Those are where a person learns most, about the model or about the labels.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest
from sklearn.metrics import (
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from headstart.evaluation.calibration import (
    Integers,
    at_temperature,
    calibration_error,
    checked,
    log_loss,
    measure_calibration,
)

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A value and the bounds that hold the true one in 95 of 100 such measurements.

    An infinite bound means that the data cannot say.
    """

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def excludes(self, number: float) -> bool:
        return self.low > number or self.high < number


def wilson_interval(successes: int, total: int, level: float = LEVEL) -> Interval:
    """A share and its interval over rows (Wilson, 1927).

    Unlike the usual ±, it stays within 0 and 1 and holds near them, and for few rows.
    """
    bounds = binomtest(successes, total).proportion_ci(confidence_level=level, method="wilson")
    return Interval(successes / total, float(bounds.low), float(bounds.high))


@dataclass(frozen=True)
class ClassRow:
    """One class of the per-class table."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int  # how many rows are of this class


@dataclass(frozen=True)
class ClassificationMetrics:
    """Every row has exactly one class."""

    rows: int
    accuracy: Interval
    macro_f1: float
    log_loss: float
    calibration_error: float
    confusion: list[list[int]]  # [true][predicted]
    classes: list[ClassRow]


@dataclass(frozen=True)
class MultiLabelMetrics:
    """Every row has any number of labels, including none."""

    rows: int
    accuracy: Interval  # of whole rows: all labels right
    micro_f1: float
    macro_f1: float
    log_loss: float  # mean over rows and labels
    classes: list[ClassRow]


def classification_metrics(
    probabilities: ArrayLike, labels: ArrayLike, names: Sequence[str]
) -> ClassificationMetrics:
    """All numbers of a classification, from probabilities (rows × classes) and class numbers."""
    p, y = checked(probabilities, labels)
    _check_names(names, p.shape[1])
    predicted = p.argmax(axis=1)
    every = np.arange(p.shape[1])
    return ClassificationMetrics(
        rows=len(y),
        accuracy=wilson_interval(int((predicted == y).sum()), len(y)),
        macro_f1=float(f1_score(y, predicted, labels=every, average="macro", zero_division=0)),
        log_loss=log_loss(p, y),
        calibration_error=calibration_error(p, y),
        confusion=confusion_matrix(y, predicted, labels=every).tolist(),
        classes=_class_rows(y, predicted, names, labels=every),
    )


def multi_label_metrics(
    probabilities: ArrayLike, labels: ArrayLike, names: Sequence[str], *, threshold: float = 0.5
) -> MultiLabelMetrics:
    """The same where labels do not exclude each other; `labels` is a (rows × labels) 0/1 array."""
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if p.ndim != 2 or p.shape != y.shape or not len(p):
        raise ValueError(f"need two (rows, labels) arrays alike, not {p.shape} and {y.shape}")
    if not ((p >= 0) & (p <= 1)).all() or not np.isin(y, (0, 1)).all():
        raise ValueError("probabilities must be from 0 to 1 and labels 0 or 1")
    _check_names(names, p.shape[1])
    y, predicted = y.astype(np.int64), (p >= threshold).astype(np.int64)
    # A column is two classes: stacked as two, each cell's loss is an ordinary log-loss.
    pairs = np.stack([1 - p, p], axis=-1).reshape(-1, 2)
    classes = _multi_label_rows(y, predicted, names)
    return MultiLabelMetrics(
        rows=len(y),
        accuracy=wilson_interval(int((predicted == y).all(axis=1).sum()), len(y)),
        micro_f1=float(f1_score(y.ravel(), predicted.ravel(), zero_division=0)),
        macro_f1=float(np.mean([row.f1 for row in classes])),
        log_loss=log_loss(pairs, y.ravel()),
        classes=classes,
    )


def _class_rows(
    true: Integers, predicted: NDArray[np.int64], names: Sequence[str], *, labels: Integers
) -> list[ClassRow]:
    table = precision_recall_fscore_support(
        true, predicted, labels=labels, average=None, zero_division=0
    )
    return [
        ClassRow(name, float(precision), float(recall), float(f1), int(support))
        for name, precision, recall, f1, support in zip(names, *table, strict=True)
    ]


def _multi_label_rows(true: Integers, predicted: Integers, names: Sequence[str]) -> list[ClassRow]:
    rows = []
    for column, name in enumerate(names):
        one = np.array([1])
        rows += _class_rows(true[:, column], predicted[:, column], [name], labels=one)
    return rows


def _check_names(names: Sequence[str], columns: int) -> None:
    if len(names) != columns:
        raise ValueError(f"{len(names)} names for {columns} classes")


@dataclass(frozen=True)
class Mistake:
    """A row that was answered wrongly; classes as numbers."""

    row: int
    true: int
    predicted: int
    confidence: float  # the probability of the predicted class
    probability_of_true: float


def confident_mistakes(
    probabilities: ArrayLike, labels: ArrayLike, *, count: int = 10
) -> list[Mistake]:
    """The `count` wrong answers with the highest confidence; the earlier row first among equals."""
    p, y = checked(probabilities, labels)
    predicted, confidence = p.argmax(axis=1), p.max(axis=1)
    wrong = np.flatnonzero(predicted != y)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:count]
    return [
        Mistake(
            row=int(row),
            true=int(y[row]),
            predicted=int(predicted[row]),
            confidence=float(confidence[row]),
            probability_of_true=float(p[row, y[row]]),
        )
        for row in worst
    ]


def full_evaluation(
    logits: NDArray[Any],
    labels: Sequence[int],
    texts: Sequence[str],
    names: Sequence[str],
    temperature: float,
) -> dict[str, Any]:
    """Metrics of the probabilities that `predict` gives, what calibration changed, mistakes.

    Parameters
    ----------
    logits : (rows, classes), what the classifier answered.
    labels : the true class numbers of the rows.
    texts : the rows' texts, shown with the mistakes.
    names : the names of the classes.
    temperature : of the run, fitted on other rows than these.

    Returns
    -------
    One plain document.
    """
    probabilities = at_temperature(logits, temperature)
    return {
        **asdict(classification_metrics(probabilities, labels, names)),
        "labels": list(names),
        "calibration": asdict(measure_calibration(logits, labels, temperature)),
        "mistakes": [
            {
                "row": mistake.row + 1,
                "text": texts[mistake.row],
                "true": names[mistake.true],
                "predicted": names[mistake.predicted],
                "confidence": mistake.confidence,
            }
            for mistake in confident_mistakes(probabilities, labels)
        ],
    }
