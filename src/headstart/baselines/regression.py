"""A logistic regression on features of texts: what the arms without a Transformer share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart.errors import HeadstartError
from headstart.folds import Fold, RowNumbers, held_rows
from headstart.linear import (
    FoldFeatures,
    choose_strength,
    choose_strength_in_folds,
    fit_regression,
)


class RegressionClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A logistic regression on features of texts; a subclass computes the features."""

    strengths: Sequence[float]

    def fit(
        self,
        texts: Sequence[Any],
        labels: ArrayLike,
        *,
        validation: tuple[Sequence[Any], ArrayLike] | None = None,
        folds: Sequence[Fold] = (),
    ) -> Self:
        """Learn from the training rows; the strength is chosen on validation or in folds of them.

        Parameters
        ----------
        texts, labels : sequences
            The training rows.
        validation : tuple of (texts, labels), optional
            Rows that choose the strength.
        folds : sequence of Fold, optional
            Parts of the training rows that choose it in place of validation; features are learned
            anew in each. What each fold says of the rows that it held back is kept in
            `held_probabilities_`, for the rows `held_rows_`. Without either, the middle strength is
            taken.

        Returns
        -------
        self
        """
        check_labels(texts, labels)
        if validation is None:
            strength = self._fit_folds(texts, np.asarray(labels), folds)
            self.regression_ = fit_regression(self._fit_features(texts), labels, strength)
        else:
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

    def _fit_folds(
        self, texts: Sequence[Any], labels: NDArray[Any], folds: Sequence[Fold]
    ) -> float:
        if not folds:
            self.held_rows_: RowNumbers = np.array([], dtype=np.int64)
            return sorted(self.strengths)[len(self.strengths) // 2]
        parts = []
        for fold in folds:
            features = self._fit_features([texts[row] for row in fold.train])
            held = self._features([texts[row] for row in fold.held])
            parts.append(FoldFeatures(features, labels[fold.train], held, labels[fold.held]))
        strength, models = choose_strength_in_folds(parts, self.strengths)
        every = np.unique(labels)
        self.held_rows_ = held_rows(folds)
        self.held_probabilities_ = np.zeros((len(self.held_rows_), len(every)))
        for fold, part, model in zip(folds, parts, models, strict=True):
            places = np.searchsorted(self.held_rows_, fold.held)
            columns = np.searchsorted(every, model.classes_)  # a rare class may be missing
            found = model.predict_proba(part.held_features)
            self.held_probabilities_[np.ix_(places, columns)] = found
        return strength

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
