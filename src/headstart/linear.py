"""Logistic regression whose strength is chosen on other rows, for baselines and fresh heads."""

import warnings
from collections.abc import Sequence
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

# For features that are pooled from vectors, with one scale for all columns.
STRENGTHS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
MAXIMUM_SHARE = 0.2  # of the mean's scale: a maximum is noisier than a mean


def choose_strength(
    features: Any,
    labels: ArrayLike,
    validation_features: Any,
    validation_labels: ArrayLike,
    strengths: Sequence[float],
    *,
    weights: ArrayLike | None = None,
) -> LogisticRegression:
    """Fit with each strength (scikit-learn's C: the inverse of regularization); keep the best.

    Best is the lowest log-loss on validation, because accuracy on a hundred rows moves in steps of
    a point. The search goes from small to large values and stops when the loss rises. Each fit
    starts afresh: where the last one ended, the gradient is so small that scikit-learn would often
    stop at once. Validation rows of a class that training does not have are a constant loss, and
    are dropped. `weights` are those of the training rows.
    """
    y, wanted = np.asarray(labels), np.asarray(validation_labels)
    if not np.isin(wanted, y).any():
        raise HeadstartError(
            "no validation row has a class of the training rows",
            fix="split the dataset anew, stratified, so that both parts have every class",
        )

    fold = FoldFeatures(features, y, validation_features, wanted, weights)
    return choose_strength_in_folds([fold], strengths)[1][0]


@dataclass(frozen=True)
class FoldFeatures:
    """One fold of the training rows: the features and labels that train and that were held back."""

    features: Any
    labels: ArrayLike
    held_features: Any
    held_labels: ArrayLike
    weights: ArrayLike | None = None


def choose_strength_in_folds(
    folds: Sequence[FoldFeatures], strengths: Sequence[float]
) -> tuple[float, list[LogisticRegression]]:
    """The strength with the lowest log-loss on the rows that each fold holds back.

    Parameters
    ----------
    folds : sequence of FoldFeatures
    strengths : sequence of float

    Returns
    -------
    tuple
        The strength, and the regressions of that strength, one per fold.
    """
    best, lowest = (strengths[0], list[LogisticRegression]()), np.inf
    for strength in sorted(strengths):  # the loss has one valley, and behind it the search stops
        models = [
            fit_regression(fold.features, fold.labels, strength, weights=fold.weights)
            for fold in folds
        ]
        found = [
            _losses(model, fold.held_features, np.asarray(fold.held_labels))
            for model, fold in zip(models, folds, strict=True)
        ]
        loss = sum(one for one, _ in found) / max(1, sum(rows for _, rows in found))
        if best[1] and loss >= lowest:
            break
        best, lowest = (strength, models), loss
    return best


def fit_regression(
    features: Any, labels: ArrayLike, strength: float, *, weights: ArrayLike | None = None
) -> LogisticRegression:
    """A logistic regression of one strength."""
    model = LogisticRegression(C=strength, max_iter=500)
    # One thread: its products are small, others' threads only make it wait, and the bits do
    # not depend on the number of cores.
    with warnings.catch_warnings(), _thread_pools().limit(limits=1):
        # Cut short at a strength this high, it is still a fair candidate.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, np.asarray(labels), sample_weight=weights)
    return model


@cache
def _thread_pools() -> ThreadpoolController:
    """The libraries with threads of their own; finding them takes as long as a small fit."""
    return ThreadpoolController()


def _losses(model: LogisticRegression, features: Any, wanted: NDArray[Any]) -> tuple[float, int]:
    """The summed log-loss of the rows whose class the model knows, and how many they are."""
    known = np.flatnonzero(np.isin(wanted, model.classes_))
    if not len(known):
        return 0.0, 0
    columns = np.searchsorted(model.classes_, wanted[known])
    scores = model.decision_function(features[known])
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    logs = log_softmax(scores, axis=1)  # finite also where a probability rounds to zero
    return -float(logs[np.arange(len(columns)), columns].sum()), len(known)
