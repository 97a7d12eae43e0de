"""Logistic regression with C selected on held-out rows, for baselines and linear probes."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from headstart.errors import HeadstartError

# Values of C for features that are pooled from vectors, with one scale for all columns.
POOLED_CS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
# Where a `RowSpace` is faster: it takes 1 s for 2,000 rows and 8 s for 4,000, once for all values
# of C; one direct fit to 2,000 rows and 100,000 columns takes 0.05 s for 2 classes, 7 s for 77.
MANY_CLASSES, MOST_ROWS = 10, 4_000


@dataclass(frozen=True)
class FoldFeatures:
    """The features and labels of a fold: those that train, and those that are held out."""

    features: Any
    labels: ArrayLike
    held_features: Any
    held_labels: ArrayLike
    weights: ArrayLike | None = None


def select_C(
    folds: Sequence[FoldFeatures], values: Sequence[float], fit: Callable[..., Any] | None = None
) -> tuple[float, list[Any]]:
    """Fit every C in every fold; return the one with the lowest log-loss, and its models."""
    if not any(np.isin(fold.held_labels, fold.labels).any() for fold in folds):
        raise HeadstartError(
            "no validation row has a class of the training rows",
            fix="split the dataset again, stratified, so that both parts have every class",
        )
    fit = fit or fit_regression
    # Log-loss, because accuracy on a hundred rows moves in steps of a point.
    lowest, best = np.inf, (values[0], list[Any]())
    for C in values:
        models = [fit(one.features, one.labels, C, one.weights) for one in folds]
        losses = [
            _losses(model, fold.held_features, np.asarray(fold.held_labels))
            for model, fold in zip(models, folds, strict=True)
        ]
        loss = float(np.concatenate(losses).mean())
        if loss < lowest:
            lowest, best = loss, (C, models)
    return best


def pooled_scale(centered: NDArray[Any], *, halves: bool = True) -> NDArray[np.float64]:
    """Return one scale for all columns, or one each for the halves of means and of maxima."""
    parts = np.split(centered, 2, axis=1) if halves else [centered]
    shares = (1.0, 0.2)  # a maximum is noisier than a mean
    scales = [share / (part.std() or np.inf) for part, share in zip(parts, shares, strict=False)]
    return np.repeat(scales, parts[0].shape[1])


def fit_regression(
    features: Any, labels: ArrayLike, C: float, weights: ArrayLike | None = None
) -> LogisticRegression:
    """Fit a logistic regression with one C."""
    model = LogisticRegression(C=C, max_iter=500)
    # One thread: its products are small, and the bits do not depend on the number of cores.
    with warnings.catch_warnings(), _thread_pools().limit(limits=1):
        # A fit that is cut short at a large C is still a fair candidate.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Many classes of one or two rows are still classes.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model.fit(features, np.asarray(labels), sample_weight=weights)
    return model


class RowSpace:
    """Coordinates of sparse features in the span of the rows that train.

    The optimum of an L2-penalised regression lies in that span, and an orthonormal basis keeps the
    penalty: the fit is the same, with as many columns as rows. That is faster for many classes.
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows.astype(np.float64)
        with _thread_pools().limit(limits=1):
            values, vectors = np.linalg.eigh((self.rows @ self.rows.T).toarray())
        kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
        self.basis = vectors[:, kept] / np.sqrt(values[kept])  # of the rows, times the rows

    @classmethod
    def of(cls, rows: Any, labels: ArrayLike) -> "RowSpace | None":
        """Return the space of the rows, if a fit in it is faster."""
        many = len(np.unique(labels)) >= MANY_CLASSES and rows.shape[0] <= MOST_ROWS
        return cls(rows) if many and rows.shape[0] < rows.shape[1] and rows.nnz else None

    def coordinates(self, features: Any) -> NDArray[np.float64]:
        """Return features in the basis: (rows, dimensions)."""
        return np.asarray((features @ self.rows.T).toarray() @ self.basis)

    def expand(self, coef: NDArray[Any]) -> NDArray[np.float64]:
        """Return the coefficients of the original columns."""
        return np.asarray(coef @ self.basis.T @ self.rows)


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the libraries with threads once: it takes as long as a small fit."""
    return ThreadpoolController()


def _losses(model: Any, features: Any, wanted: NDArray[Any]) -> NDArray[np.float64]:
    """Return the log-loss of each row whose class the model knows."""
    known = np.flatnonzero(np.isin(wanted, model.classes_))
    if not len(known):
        return np.zeros(0)
    columns = np.searchsorted(model.classes_, wanted[known])
    scores = model.decision_function(features[known])
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    logs = log_softmax(scores, axis=1)  # finite also where a probability rounds to zero
    return -logs[np.arange(len(columns)), columns]
