"""Linear text classifiers as scikit-learn estimators: features and a logistic regression.

`TfidfClassifier` is what any text model must beat. `NaiveBayesClassifier` is strong on short texts
with few labels. `CooccurrenceClassifier` reads PPMI-SVD vectors of the corpus.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load_file, save_file
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from headstart.baselines.char_ngrams import HASH_BITS, count_char_ngrams, find_char_ngrams
from headstart.data.cooccurrence import TokenIds
from headstart.data.dataset import as_text
from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.data.words import find_words
from headstart.errors import HeadstartError
from headstart.explain import Contribution
from headstart.files import replacing, write_text
from headstart.folds import Fold, held_rows, make_folds
from headstart.linear import (
    MAXIMUM_SHARE,
    POOLED_CS,
    FoldFeatures,
    fit_regression,
    select_C,
)
from headstart.progress import ProgressCallback
from headstart.run import TextClassifier

ARRAYS = "arrays.safetensors"
VOCABULARY = "vocabulary.json"
Floats = NDArray[np.float64]


class LinearTextClassifier(ClassifierMixin, BaseEstimator, TextClassifier, ABC):  # type: ignore[misc]
    """Logistic regression on features of texts; a subclass computes the features.

    A text is a string, or a tuple of two for pairs.

    Parameters
    ----------
    C : float, optional
        The inverse of the regularisation; by default the best of eight values, by the log-loss of
        held-out rows.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    C_ : float
    oof_proba_ : array of shape (rows, classes)
        Out-of-fold predictions: of training rows, by models that were not trained on them.
    oof_rows_ : array of shape (rows,)
        The numbers of these rows. Empty where a validation part selected C, or nothing did.
    """

    Cs: ClassVar[Sequence[float]]
    arrays: ClassVar[tuple[str, ...]]  # attributes of the features
    C: float | None

    def fit(
        self,
        texts: Sequence[Any],
        labels: ArrayLike,
        *,
        validation: tuple[Sequence[Any], ArrayLike] | None = None,
        folds: Sequence[Fold] | None = None,
    ) -> Self:
        """Select C and fit all training rows.

        Parameters
        ----------
        texts, labels : sequences
            The training rows.
        validation : tuple of (texts, labels), optional
            Rows that select C in place of folds.
        folds : sequence of Fold, optional
            Parts of the training rows that select C; features are fitted anew in each. By default
            those of `make_folds`, which networks use too. Without any, C is the middle value.

        Returns
        -------
        self
        """
        texts, y = _as_strings(texts), np.asarray(labels)
        _check_rows(texts, y)
        values = self.Cs if self.C is None else [self.C]
        self.oof_rows_, self.oof_proba_ = np.zeros(0, dtype=np.int64), np.zeros((0, 0))
        if validation is not None:
            features = self._fit_features(texts, y)
            held_out = self._features(_as_strings(validation[0]))
            fold = FoldFeatures(features, y, held_out, validation[1])
            self.C_, (self.regression_,) = select_C([fold], values)
        else:
            if folds is None:
                folds = make_folds(y) if self.C is None else []
            self.C_ = self._select_in_folds(texts, y, folds, values)
            self.regression_ = fit_regression(self._fit_features(texts, y), y, self.C_)
        self.classes_ = self.regression_.classes_
        return self

    def _select_in_folds(
        self, texts: Sequence[Any], y: NDArray[Any], folds: Sequence[Fold], values: Sequence[float]
    ) -> float:
        if not folds:
            return values[len(values) // 2]
        parts = []
        for fold in folds:
            features = self._fit_features([texts[row] for row in fold.train], y[fold.train])
            held = self._features([texts[row] for row in fold.held])
            parts.append(FoldFeatures(features, y[fold.train], held, y[fold.held]))
        best, models = select_C(parts, values)
        classes = np.unique(y)
        self.oof_rows_ = held_rows(folds)
        self.oof_proba_ = np.zeros((len(self.oof_rows_), len(classes)))
        for fold, part, model in zip(folds, parts, models, strict=True):
            rows = np.searchsorted(self.oof_rows_, fold.held)
            columns = np.searchsorted(classes, model.classes_)  # a fold may lack a rare class
            self.oof_proba_[np.ix_(rows, columns)] = model.predict_proba(part.held_features)
        return best

    def scores(
        self, texts: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> NDArray[np.float64]:
        """Compute logits (texts, classes); those of a text do not depend on the others."""
        check_is_fitted(self)
        found = _linear_scores(self._features(_as_strings(texts)), self.regression_)
        if progress is not None:
            progress(len(texts), len(texts))
        return found

    def predict_proba(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        """Compute the probability of each class: (texts, classes)."""
        return np.asarray(softmax(self.scores(texts), axis=1))

    def predict(self, texts: Sequence[Any]) -> NDArray[Any]:
        """Predict the most probable class of each text."""
        best = self.scores(texts).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def facts(self) -> dict[str, Any]:
        return {"C": self.C_, "features": int(self.regression_.coef_.shape[1])}

    def write(self, folder: Path) -> tuple[dict[str, Any], list[Path]]:
        check_is_fitted(self)
        arrays = {name: getattr(self, name) for name in self.arrays} | {
            "coef": self.regression_.coef_,
            "intercept": self.regression_.intercept_,
            "classes": np.asarray(self.classes_, dtype=np.int64),
        }
        with replacing(folder / ARRAYS) as temporary:
            # safetensors writes memory as it is, whatever the strides say.
            save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, temporary)
        return {"C": self.C_}, [self._write_words(folder), folder / ARRAYS]

    @classmethod
    def read(cls, folder: Path, settings: dict[str, Any]) -> Self:
        arrays = load_file(folder / ARRAYS)
        for name, array in arrays.items():
            if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                raise ValueError(f"{name} holds NaN or infinite numbers")
        made = cls()
        for name in cls.arrays:
            setattr(made, name, arrays[name])
        made._read_words(folder)
        made.C_, made.classes_ = float(settings["C"]), arrays["classes"]
        made.regression_ = LogisticRegression(C=made.C_)
        made.regression_.classes_ = made.classes_
        made.regression_.coef_, made.regression_.intercept_ = arrays["coef"], arrays["intercept"]
        rows = 1 if len(made.classes_) == 2 else len(made.classes_)
        if len(arrays["coef"]) != rows or arrays["intercept"].shape != (rows,):
            raise ValueError("the coefficients are not those of the classes")
        made.scores(["a"])  # coefficients of other features are a ValueError
        return made

    @abstractmethod
    def _fit_features(self, texts: Sequence[Any], y: NDArray[Any]) -> Any:
        """Fit the features to training rows; return those of the rows."""

    @abstractmethod
    def _features(self, texts: Sequence[Any]) -> Any:
        """Compute the features of texts."""

    @abstractmethod
    def _write_words(self, folder: Path) -> Path:
        """Write the vocabulary or tokenizer."""

    @abstractmethod
    def _read_words(self, folder: Path) -> None:
        """Read the vocabulary or tokenizer, and check the arrays of the features."""


class _NgramClassifier(LinearTextClassifier):
    """Features are words and pairs of words, the `max_features` most frequent ones."""

    token_pattern: ClassVar[str]
    binary: ClassVar[bool] = False  # whether occurrences count once per text

    def __init__(self, *, C: float | None = None, max_features: int = 200_000) -> None:
        self.C = C
        self.max_features = max_features

    def _vectorizer(self, vocabulary: dict[str, int] | None = None) -> CountVectorizer:
        return CountVectorizer(
            token_pattern=self.token_pattern,
            ngram_range=(1, 2),
            binary=self.binary,
            max_features=self.max_features,
            vocabulary=vocabulary,
            dtype=np.float32,
        )

    def _fit_words(self, texts: Sequence[str]) -> Any:
        """Fit the vectorizer; where no text has a word, it gets one column that no text has."""
        self.words_ = self._vectorizer()
        analyze = self.words_.build_analyzer()
        if not any(analyze(text) for text in texts):
            self.words_ = self._vectorizer({"\0": 0})
        return self.words_.fit_transform(texts)

    def contributions(self, text: str, column: int) -> list[Contribution]:
        """Compute the part of each word in the log-odds of a class.

        The log-odds of a class are a sum over features (with two classes exactly, with more at the
        text's own probabilities). A feature's part is divided among its occurrences in the text,
        and among the characters of each. So the words' parts and the intercept add up to the
        log-odds.
        """
        row = self._features([text])
        scores = _linear_scores(row, self.regression_)[0]
        weights = np.asarray(self.regression_.coef_, dtype=np.float64)
        if len(weights) == 1:
            weights = np.vstack([np.zeros_like(weights), weights])
        others = np.delete(np.arange(len(weights)), column)
        margin = weights[column] - softmax(scores[others]) @ weights[others]
        return _word_effects(text, row.toarray()[0] * margin, self._occurrences(text.lower()))

    def _occurrences(self, lowered: str) -> Floats:
        """Find words and pairs of words, as scikit-learn's analyzer does, in a lower-case text.

        Returns rows of column, start, end and the share of the feature that is there.
        """
        columns = self.words_.vocabulary_
        words = [match.span() for match in re.finditer(self.token_pattern, lowered)]
        found = []
        for place, (start, end) in enumerate(words):
            if (column := columns.get(lowered[start:end])) is not None:
                found.append((column, start, end, 1.0))
            if place + 1 < len(words):
                second = words[place + 1]
                pair = f"{lowered[start:end]} {lowered[slice(*second)]}"
                if (column := columns.get(pair)) is not None:
                    found += [(column, start, end, 0.5), (column, *second, 0.5)]
        return np.array(found, dtype=np.float64).reshape(-1, 4)

    def _write_words(self, folder: Path) -> Path:
        words = self.words_.get_feature_names_out().tolist()
        write_text(folder / VOCABULARY, json.dumps(words) + "\n")
        return folder / VOCABULARY

    def _read_words(self, folder: Path) -> None:
        words = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{VOCABULARY} is not a list of words")
        self.words_ = self._vectorizer({word: column for column, word in enumerate(words)})
        self.words_.fit([])  # takes the vocabulary over


class TfidfClassifier(_NgramClassifier):
    """TF-IDF of words, pairs of words and character n-grams, and a logistic regression.

    Words alone and in pairs, and 3 to 5 characters (they see endings, typos and languages without
    spaces), are weighted by 1 + ln(count) and by idf.

    Parameters
    ----------
    C : float, optional
    max_features : int
        Of words, and as many of characters: the most frequent ones.

    Example
    -------
    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> TfidfClassifier(C=1).fit(texts, [1, 1, 0, 0]).predict(["so fine", "so dull"])
    array([1, 0])
    """

    kind = "tfidf"
    token_pattern = r"\w+"
    Cs = (0.1, 0.3, 1, 3, 10, 30, 100, 300)
    arrays = ("char_columns_", "char_idf_", "word_idf_")

    def _fit_features(self, texts: Sequence[str], y: NDArray[Any]) -> sparse.csr_array:
        counts = count_char_ngrams(texts)
        in_texts = np.bincount(counts.indices, minlength=counts.shape[1])
        frequent = np.argsort(-in_texts, kind="stable")[: self.max_features]
        used = frequent[in_texts[frequent] > 0]
        self.char_columns_ = np.sort(used if len(used) else frequent[:1])  # at least one
        counts, words = counts[:, self.char_columns_], self._fit_words(texts)
        self.char_idf_ = TfidfTransformer().fit(counts).idf_
        self.word_idf_ = TfidfTransformer().fit(words).idf_
        return self._weight(words, counts)

    def _features(self, texts: Sequence[str]) -> sparse.csr_array:
        counts = count_char_ngrams(texts)[:, self.char_columns_]
        return self._weight(self.words_.transform(texts), counts)

    def _weight(self, words: Any, characters: Any) -> sparse.csr_array:
        weighted = []
        for counts, idf in ((words, self.word_idf_), (characters, self.char_idf_)):
            tfidf = TfidfTransformer(sublinear_tf=True)
            tfidf.idf_ = idf
            weighted.append(tfidf.transform(counts))
        return sparse.hstack(weighted, format="csr")

    def _occurrences(self, lowered: str) -> Floats:
        found = find_char_ngrams(lowered)
        found = found[np.isin(found[:, 0], self.char_columns_)]
        found[:, 0] = np.searchsorted(self.char_columns_, found[:, 0]) + len(self.word_idf_)
        characters = np.column_stack([found, np.ones(len(found))])
        return np.concatenate([super()._occurrences(lowered), characters])

    def _read_words(self, folder: Path) -> None:
        super()._read_words(folder)
        columns = self.char_columns_
        if columns.size and not 0 <= columns.min() <= columns.max() < 2**HASH_BITS:
            raise ValueError("a column of character n-grams does not exist")
        if len(columns) != len(self.char_idf_) or len(self.words_.vocabulary_) != len(
            self.word_idf_
        ):
            raise ValueError("the idf weights are not those of the n-grams")


class NaiveBayesClassifier(_NgramClassifier):
    """Naive-Bayes log-count ratios of words and pairs of words, and a logistic regression.

    A word that is in a text has the size of its log-count ratio: how much more frequent it is in
    texts of a class than in all others. With a hundred short texts this is hard to beat (Wang and
    Manning 2012, "Baselines and bigrams"). With more than two classes a feature has the size of its
    largest ratio.

    Parameters
    ----------
    C : float, optional
    max_features : int
        The most frequent words and pairs of words.

    Example
    -------
    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> NaiveBayesClassifier(C=1).fit(texts, [1, 1, 0, 0]).predict(["so fine", "so dull"])
    array([1, 0])
    """

    kind = "nb"
    token_pattern = r"\w+|[^\w\s]"  # a smiley or an exclamation mark is a word
    Cs = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)
    binary = True
    arrays = ("ratios_",)

    def _fit_features(self, texts: Sequence[str], y: NDArray[Any]) -> sparse.csr_array:
        counts = self._fit_words(texts)
        self.ratios_ = count_ratios(counts, y)
        return sparse.csr_array(counts.multiply(self.ratios_))

    def _features(self, texts: Sequence[str]) -> sparse.csr_array:
        return sparse.csr_array(self.words_.transform(texts).multiply(self.ratios_))


class CooccurrenceClassifier(LinearTextClassifier):
    """Mean and maximum of a text's PPMI-SVD vectors, and a logistic regression.

    Tokens with the zero vector (special, or not in the corpus) do not count. Columns are centred
    but not scaled one by one: the decomposition has sorted them, and scaling the last ones up to
    the size of the first costs 4 to 8 points. Mean and maximum have one scale each
    (research/cooccurrence.md has the numbers).

    Parameters
    ----------
    vectors : array of shape (vocab_size, width)
    tokenizer : Tokenizer, optional
        Without one, a text is an array of token ids, and the classifier cannot be saved.
    C : float, optional
    """

    kind = "cooccurrence"
    Cs = POOLED_CS
    arrays = ("vectors", "center_", "scale_")

    def __init__(
        self,
        vectors: Any = None,
        *,
        tokenizer: Tokenizer | None = None,
        C: float | None = None,
    ) -> None:
        self.vectors = vectors
        self.tokenizer = tokenizer
        self.C = C

    def _fit_features(self, texts: Sequence[Any], y: NDArray[Any]) -> Floats:
        pooled = self._pool(texts)
        self.center_ = pooled.mean(axis=0)
        mean, maximum = np.split(pooled - self.center_, 2, axis=1)
        scales = [_inverse(mean.std()), MAXIMUM_SHARE * _inverse(maximum.std())]
        self.scale_ = np.repeat(scales, self.vectors.shape[1])
        return (pooled - self.center_) * self.scale_

    def _features(self, texts: Sequence[Any]) -> Floats:
        return (self._pool(texts) - self.center_) * self.scale_

    def _pool(self, texts: Sequence[Any]) -> Floats:
        if self.tokenizer is not None and len(texts) and isinstance(texts[0], str):
            texts = self.tokenizer.encode_arrays(texts)
        return mean_and_maximum(texts, self.vectors)

    def _write_words(self, folder: Path) -> Path:
        if self.tokenizer is None:
            raise ValueError("a classifier without its tokenizer cannot be saved")
        return self.tokenizer.save(folder)

    def _read_words(self, folder: Path) -> None:
        self.tokenizer = load_tokenizer(folder)
        if len(self.vectors) != self.tokenizer.vocab_size:
            raise ValueError("the vectors are not those of the tokenizer")


def count_ratios(counts: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Compute the largest |log-count ratio| over classes of each column of 0s and 1s."""
    found = np.zeros(counts.shape[1])
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    for name in np.unique(labels):
        inside = np.asarray(counts[np.flatnonzero(labels == name)].sum(axis=0), dtype=np.float64)
        positive = 1 + inside.ravel()
        negative = 1 + totals - inside.ravel()
        ratio = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
        found = np.maximum(found, np.abs(ratio))
    return found


def mean_and_maximum(texts: Sequence[TokenIds], vectors: NDArray[np.float32]) -> Floats:
    """Pool token vectors: (texts, 2 × width); zeros for a text without a known token."""
    known = np.asarray(vectors.any(axis=1))
    width = vectors.shape[1]
    features = np.zeros((len(texts), 2 * width))
    for row, text in enumerate(texts):
        tokens = np.asarray(text, dtype=np.int64)
        found = vectors[tokens[known[tokens]]]
        if len(found):
            features[row, :width] = found.mean(axis=0)
            features[row, width:] = found.max(axis=0)
    return features


def _inverse(scale: float) -> float:
    return 1 / scale if scale > 0 else 0.0


def _as_strings(texts: Sequence[Any]) -> list[Any]:
    """Join the two texts of a pair with a visible mark between them."""
    return [as_text(text) if isinstance(text, tuple) else text for text in texts]


def _check_rows(texts: Sequence[Any], y: NDArray[Any]) -> None:
    classes = len(np.unique(y))
    if len(texts) != len(y):
        raise ValueError(f"{len(texts)} texts and {len(y)} labels")
    if classes < 2:
        raise HeadstartError(
            f"the {len(texts):,} training rows have {classes} class" + ("" if classes else "es"),
            fix="a classifier needs rows of at least two classes",
        )


def _linear_scores(features: Any, regression: LogisticRegression) -> NDArray[np.float64]:
    """Compute logits (rows, classes); two classes have one row of coefficients, for the second."""
    weights = np.asarray(regression.coef_, dtype=np.float64)
    if sparse.issparse(features):
        found = np.asarray(features @ weights.T)
    else:  # a library's product would round a row differently among others
        found = np.einsum("rf,cf->rc", np.asarray(features, dtype=np.float64), weights)
    found = found + regression.intercept_
    return np.hstack([np.zeros_like(found), found]) if found.shape[1] == 1 else found


def _word_effects(text: str, values: Floats, occurrences: Floats) -> list[Contribution]:
    """Divide the values of features among the words in which they occur."""
    lowered = text.lower()
    filled = np.array([not character.isspace() for character in lowered], dtype=bool)
    totals = np.concatenate([[0], np.cumsum(filled)])
    columns, starts, ends = occurrences[:, :3].astype(np.int64).T
    shares = occurrences[:, 3]
    times = np.bincount(columns, weights=shares, minlength=len(values))
    amounts = values[columns] * shares / times[columns]
    amounts /= np.maximum(totals[ends] - totals[starts], 1)
    effects = np.zeros(len(lowered))
    for step in range(int((ends - starts).max(initial=0))):
        inside = np.flatnonzero(starts + step < ends)
        inside = inside[filled[starts[inside] + step]]
        np.add.at(effects, starts[inside] + step, amounts[inside])
    # A character may have several in lower case.
    places = np.repeat(np.arange(len(text)), [len(character.lower()) for character in text])
    sums = np.concatenate([[0.0], np.cumsum(np.bincount(places, effects, len(text)))])
    return [(start, end, float(sums[end] - sums[start])) for start, end in find_words(text)]
