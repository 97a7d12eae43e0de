"""The metrics of a classifier: accuracy with its interval, F1, log-loss, calibration.

Labels are class numbers (0, 1, …) and index the columns of the probabilities; `names` are the
classes' names in that order. A class that never occurs and is never predicted has an F1 of 0, as
in scikit-learn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import (
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from headstart.evaluation.calibration import calibration_error, log_loss
from headstart.evaluation.checks import Integers, checked
from headstart.evaluation.interval import Interval, wilson_interval


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
