"""The `nb` arm: naive-Bayes log-count ratios of word n-grams, and a logistic regression on them.

A word or a pair of words that is in a text counts as much as it tells the classes apart: the
logarithm of how much more frequent it is in texts of a class than in all others. With a hundred
short texts this is hard to beat (Wang and Manning 2012, "Baselines and bigrams").

With two classes the ratio's sign is the regression's to choose, so that its size alone is the
scale of a feature; with more, a feature has the size of its largest ratio.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from headstart.baselines.arrays import check_shape, read_vocabulary, write_vocabulary
from headstart.baselines.contributions import find_ngrams, margin_weights, share_out
from headstart.baselines.regression import RegressionClassifier, linear_scores
from headstart.explain import Contribution

WORDS = r"\w+|[^\w\s]"  # marks are words: a smiley or an exclamation mark tells a lot
SMOOTHING = 1.0  # added to the number of texts of a class that have a feature
MAX_FEATURES = 200_000
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)


class NaiveBayesClassifier(RegressionClassifier):
    """Log-count ratios and logistic regression over lists of strings.

    Parameters
    ----------
    strengths : sequence of float
        Values of scikit-learn's C; the best is taken.
    max_features : int
        The most frequent words and pairs of them.

    Example
    -------
    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> arm = NaiveBayesClassifier().fit(texts, [1, 1, 0, 0], validation=(["fine", "dull"], [1, 0]))
    >>> arm.predict(["so fine", "so dull"])
    array([1, 0])
    """

    kind = "nb"

    def __init__(
        self, *, strengths: Sequence[float] = STRENGTHS, max_features: int = MAX_FEATURES
    ) -> None:
        self.strengths = strengths
        self.max_features = max_features

    def _fit_features(self, texts: Sequence[str], labels: NDArray[Any]) -> sparse.csr_array:
        self.words_ = _vectorizer(self.max_features)
        counts = self.words_.fit_transform(texts) if _any_word(self.words_, texts) else None
        if counts is None:  # texts of blanks alone: a column that no text has
            self.words_ = _vectorizer(1, {"\0": 0})
            counts = self.words_.transform(texts)
        self.ratios_ = count_ratios(counts, labels)
        return sparse.csr_array(counts.multiply(self.ratios_))

    def _features(self, texts: Sequence[str]) -> sparse.csr_array:
        return sparse.csr_array(self.words_.transform(texts).multiply(self.ratios_))

    def contributions(self, text: str, column: int) -> list[Contribution]:
        row = self._features([text])
        words: Mapping[str, int] = self.words_.vocabulary_
        weights = margin_weights(self.regression_, linear_scores(row, self.regression_)[0], column)
        return share_out(text, row, weights, [find_ngrams(text.lower(), words, WORDS)])

    def _parts(self, folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any], list[Path]]:
        words = write_vocabulary(self.words_.get_feature_names_out().tolist(), folder)
        return {"ratios": self.ratios_}, {}, [words]

    @classmethod
    def _from_parts(
        cls, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], folder: Path
    ) -> tuple[Self, int]:
        made, columns = cls(), read_vocabulary(folder)
        made.words_ = _vectorizer(made.max_features, columns)
        made.words_.transform([])  # takes the vocabulary over
        made.ratios_ = check_shape("ratios", arrays["ratios"], len(columns))
        return made, len(columns)


def count_ratios(counts: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    """The largest |log ratio| of each column of `counts` (rows × columns, 0 or 1) over classes."""
    found = np.zeros(counts.shape[1])
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    for name in np.unique(labels):
        inside = np.asarray(counts[np.flatnonzero(labels == name)].sum(axis=0), dtype=np.float64)
        own = SMOOTHING + inside.ravel()
        other = SMOOTHING + totals - inside.ravel()
        ratio = np.log(own / own.sum()) - np.log(other / other.sum())
        found = np.maximum(found, np.abs(ratio))
    return found


def _vectorizer(max_features: int, columns: dict[str, int] | None = None) -> CountVectorizer:
    return CountVectorizer(
        token_pattern=WORDS,
        ngram_range=(1, 2),
        binary=True,
        max_features=max_features,
        vocabulary=columns,
        dtype=np.float64,
    )


def _any_word(words: CountVectorizer, texts: Sequence[str]) -> bool:
    analyze = words.build_analyzer()
    return any(analyze(text) for text in texts)
