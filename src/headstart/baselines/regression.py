"""Logistic regression whose strength is chosen on the validation part, and an arm around it."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from headstart.errors import HeadstartError


class RegressionClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A logistic regression on features of texts; a subclass computes the features."""

    strengths: Sequence[float]

    def fit(
        self,
        texts: Sequence[Any],
        labels: ArrayLike,
        *,
        validation: tuple[Sequence[Any], ArrayLike],
    ) -> Self:
        """Learn from the training rows; the strength is chosen on the validation rows.

        Parameters
        ----------
        texts, labels : sequences
            The training rows.
        validation : tuple of (texts, labels)

        Returns
        -------
        self
        """
        check_labels(texts, labels)
        self.regression_ = choose_strength(
            self._fit_features(texts),
            labels,
            self._features(validation[0]),
            validation[1],
            self.strengths,
        )
        self.classes_ = self.regression_.classes_
        self.strength_ = float(self.regression_.C)
        return self

    def predict_proba(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        check_is_fitted(self)
        probabilities = self.regression_.predict_proba(self._features(texts))
        return np.asarray(probabilities, dtype=np.float64)

    def predict(self, texts: Sequence[Any]) -> NDArray[Any]:
        probabilities = self.predict_proba(texts)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    @abstractmethod
    def _fit_features(self, texts: Sequence[Any]) -> Any:
        """Learn what the features need from the training texts; their features."""

    @abstractmethod
    def _features(self, texts: Sequence[Any]) -> Any:
        """The features of other texts."""


def check_labels(texts: Sequence[Any], labels: ArrayLike) -> None:
    """One label per text, and at least two classes of them."""
    classes = np.unique(np.asarray(labels))
    if len(texts) != len(np.asarray(labels)):
        raise ValueError(f"{len(texts)} texts and {len(np.asarray(labels))} labels")
    if len(classes) < 2:
        raise HeadstartError(
            f"the {len(texts):,} training rows have {len(classes)} class"
            + ("" if len(classes) else "es"),
            fix="a classifier needs rows of at least two classes",
        )


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
