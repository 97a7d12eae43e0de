"""A logistic regression on features of texts: what the arms without a Transformer share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from headstart.baselines.arrays import check_shape, read_arrays, write_arrays
from headstart.data.dataset import as_text
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import at_temperature
from headstart.folds import Fold, RowNumbers, held_rows
from headstart.linear import (
    FoldFeatures,
    choose_strength,
    choose_strength_in_folds,
    fit_regression,
)
from headstart.progress import ProgressCallback
from headstart.run import TextClassifier


class RegressionClassifier(ClassifierMixin, BaseEstimator, TextClassifier, ABC):  # type: ignore[misc]
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
        texts = plain_texts(texts)
        if validation is None:
            strength = self._fit_folds(texts, np.asarray(labels), folds)
            features = self._fit_features(texts, np.asarray(labels))
            self.regression_ = fit_regression(features, labels, strength)
        else:
            self.regression_ = choose_strength(
                self._fit_features(texts, np.asarray(labels)),
                labels,
                self._features(plain_texts(validation[0])),
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
            features = self._fit_features([texts[row] for row in fold.train], labels[fold.train])
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

    def scores(
        self, texts: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> NDArray[np.float64]:
        """Logits: (texts, classes). A text's are the same alone and among others."""
        check_is_fitted(self)
        found = linear_scores(self._features(plain_texts(texts)), self.regression_)
        if progress is not None:
            progress(len(texts), len(texts))
        return found

    def predict_proba(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        return at_temperature(self.scores(texts), 1.0)

    def predict(self, texts: Sequence[Any]) -> NDArray[Any]:
        probabilities = self.predict_proba(texts)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def write(self, folder: Path) -> tuple[dict[str, Any], list[Path]]:
        check_is_fitted(self)
        learned = {
            "coefficients": self.regression_.coef_,
            "intercept": self.regression_.intercept_,
            "classes": np.asarray(self.classes_, dtype=np.int64),
        }
        arrays, settings, files = self._parts(folder)
        settings = {"strength": self.strength_, **settings}
        return settings, [*files, write_arrays({**learned, **arrays}, folder)]

    @classmethod
    def read(cls, folder: Path, settings: dict[str, Any]) -> Self:
        arrays = read_arrays(folder)
        made, features = cls._from_parts(arrays, settings, folder)
        made.classes_ = arrays["classes"]
        classes = len(made.classes_)
        rows = 1 if classes == 2 else classes
        made.strength_ = float(settings["strength"])
        made.regression_ = LogisticRegression(C=made.strength_)
        made.regression_.classes_ = made.classes_
        made.regression_.coef_ = check_shape("coefficients", arrays["coefficients"], rows, features)
        made.regression_.intercept_ = check_shape("intercept", arrays["intercept"], rows)
        return made

    def facts(self) -> dict[str, Any]:
        return {"strength": self.strength_, "features": int(self.regression_.coef_.shape[1])}

    @abstractmethod
    def _parts(self, folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any], list[Path]]:
        """What the features need: arrays, settings, and files that were written for them."""

    @classmethod
    @abstractmethod
    def _from_parts(
        cls, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], folder: Path
    ) -> tuple[Self, int]:
        """A classifier from what `_parts` gave, still without a regression; its features."""

    @abstractmethod
    def _fit_features(self, texts: Sequence[Any], labels: NDArray[Any]) -> Any:
        """Learn what the features need from the training rows; their features."""

    @abstractmethod
    def _features(self, texts: Sequence[Any]) -> Any:
        """The features of other texts."""


def plain_texts(texts: Sequence[Any]) -> Sequence[Any]:
    """Texts as a linear model reads them: the two of a pair with a bar between them."""
    return [as_text(text) if isinstance(text, tuple) else text for text in texts]


def linear_scores(features: Any, regression: LogisticRegression) -> NDArray[np.float64]:
    """Logits (rows, classes); two classes have one row of coefficients, for the second."""
    weights = np.asarray(regression.coef_, dtype=np.float64)
    if sparse.issparse(features):
        found = np.asarray(features @ weights.T)
    else:  # a library's product would round a row differently among others
        found = np.einsum("rf,cf->rc", np.asarray(features, dtype=np.float64), weights)
    found = found + regression.intercept_
    return np.hstack([np.zeros_like(found), found]) if found.shape[1] == 1 else found


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
