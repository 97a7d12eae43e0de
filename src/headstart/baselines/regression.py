"""A logistic regression on features of texts: what the arms without a Transformer share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart.errors import HeadstartError
from headstart.linear import choose_strength


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
