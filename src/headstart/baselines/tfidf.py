"""The `tfidf` arm: word and character n-grams + logistic regression, what any text model must beat.

Words alone and in pairs, and pieces of 3 to 5 characters (they see endings, typos and languages
without blanks), each weighted by 1 + ln(count) and by rarity, are the features.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from headstart.baselines.characters import count_characters
from headstart.baselines.regression import RegressionClassifier

STRENGTHS = (0.25, 1, 4, 16, 64, 256)
HASH_BITS = 20  # a million buckets: few n-grams share one
MAX_FEATURES = 200_000  # words, and as many of characters: the most frequent ones


class TfidfClassifier(RegressionClassifier):
    """TF-IDF and logistic regression over lists of strings.

    Parameters
    ----------
    strengths : sequence of float
        Values of scikit-learn's C, of which validation chooses.
    max_features : int
        Of words, and as many of characters: the most frequent ones.

    Example
    -------
    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> arm = TfidfClassifier().fit(texts, [1, 1, 0, 0], validation=(["fine", "dull"], [1, 0]))
    >>> arm.predict(["so fine", "so dull"])
    array([1, 0])
    """

    def __init__(
        self, *, strengths: Sequence[float] = STRENGTHS, max_features: int = MAX_FEATURES
    ) -> None:
        self.strengths = strengths
        self.max_features = max_features

    def _fit_features(self, texts: Sequence[str]) -> sparse.csr_array:
        counts = _characters(texts)
        in_texts = np.bincount(counts.indices, minlength=counts.shape[1])
        self.columns_ = _most_frequent(in_texts, self.max_features)
        self.rarity_ = TfidfTransformer(sublinear_tf=True)
        characters = self.rarity_.fit_transform(counts[:, self.columns_])
        self.words_ = _Words(self.max_features)
        words = self.words_.fit_transform(texts)
        return sparse.hstack([words, characters], format="csr")

    def _features(self, texts: Sequence[str]) -> sparse.csr_array:
        characters = self.rarity_.transform(_characters(texts)[:, self.columns_])
        return sparse.hstack([self.words_.transform(texts), characters], format="csr")


class _Words:
    """TF-IDF of words and pairs of them; no columns where no text has a word."""

    def __init__(self, max_features: int) -> None:
        self.vectorizer = TfidfVectorizer(
            token_pattern=r"\w+",
            ngram_range=(1, 2),
            sublinear_tf=True,
            max_features=max_features,
            dtype=np.float32,
        )
        self.any = False

    def fit_transform(self, texts: Sequence[str]) -> Any:
        words = self.vectorizer.build_analyzer()
        self.any = any(words(text) for text in texts)
        return self.vectorizer.fit_transform(texts) if self.any else self.transform(texts)

    def transform(self, texts: Sequence[str]) -> Any:
        if not self.any:
            return sparse.csr_array((len(texts), 0), dtype=np.float32)
        return self.vectorizer.transform(texts)


def _characters(texts: Sequence[str]) -> sparse.csr_array:
    return count_characters(texts, shortest=3, longest=5, bits=HASH_BITS)


def _most_frequent(in_texts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The columns in use, in order; the `count` most frequent ones if there are more."""
    by_frequency = np.argsort(-in_texts, kind="stable")[:count]
    return np.sort(by_frequency[in_texts[by_frequency] > 0])
