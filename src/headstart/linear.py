"""Logistic regression whose strength is chosen on validation, for baselines and fresh heads."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from headstart.errors import HeadstartError

# For features that are pooled from vectors, with one scale for all columns.
STRENGTHS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
MAXIMUM_SHARE = 0.2  # of the mean's scale: a maximum is noisier, and as large it drowns the mean


def choose_strength(
    features: Any,
    labels: ArrayLike,
    validation_features: Any,
    validation_labels: ArrayLike,
    strengths: Sequence[float],
    *,
    weights: ArrayLike | None = None,
) -> LogisticRegression:
    """Fit with each strength (scikit-learn's C: higher trusts the labels more); keep the best.

    Best is the lowest log-loss on validation, because accuracy on a hundred rows moves in steps of
    a point and would choose by luck. The loss has one valley: the search goes from weak to strong
    and stops behind it. Each fit starts afresh; where the last one ended, the gradient is so small
    that scikit-learn would often stop at once. Validation rows of a class that training does not
    have are a constant loss, and are left out. `weights` say how much each training row counts.
    """
    y, wanted = np.asarray(labels), np.asarray(validation_labels)
    classes = np.unique(y)
    known = np.flatnonzero(np.isin(wanted, classes))
    if not len(known):
        raise HeadstartError(
            "no validation row has a class of the training rows",
            fix="split the dataset anew, stratified, so that both parts have every class",
        )
    columns = np.searchsorted(classes, wanted[known])
    rows = validation_features[known]
    best, best_loss = None, np.inf
    for strength in sorted(strengths):
        model = LogisticRegression(C=strength, max_iter=500)
        # One thread: its products are small, others' threads only make it wait, and the bits do
        # not depend on the number of cores.
        with warnings.catch_warnings(), threadpool_limits(1):
            # Cut short at a strength this high, it is still a fair candidate.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features, y, sample_weight=weights)
        loss = -float(_log_probabilities(model, rows)[np.arange(len(columns)), columns].mean())
        if loss >= best_loss:
            break
        best, best_loss = model, loss
    if best is None:
        raise ValueError("at least one strength is needed")
    return best


def _log_probabilities(model: LogisticRegression, rows: Any) -> Any:
    """As predict_log_proba, but finite where a probability rounds to zero."""
    scores = model.decision_function(rows)
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    return log_softmax(scores, axis=1)
