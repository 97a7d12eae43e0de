"""The `tfidf` arm: word and character n-grams + logistic regression, what any text model must beat.

Words alone and in pairs, and pieces of 3 to 5 characters (they see endings, typos and languages
without blanks), each weighted by 1 + ln(count) and by rarity, are the features.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from headstart.baselines.arrays import check_shape, read_vocabulary, write_vocabulary
from headstart.baselines.characters import Occurrences, count_characters, find_characters
from headstart.baselines.contributions import find_ngrams, margin_weights, share_out
from headstart.baselines.regression import RegressionClassifier, linear_scores
from headstart.explain import Contribution

STRENGTHS = (0.25, 1, 4, 16, 64, 256)
WORDS = r"\w+"
HASH_BITS = 20  # a million buckets: few n-grams share one
CHARACTERS = {"shortest": 3, "longest": 5, "bits": HASH_BITS}
MAX_FEATURES = 200_000  # words, and as many of characters: the most frequent ones


class TfidfClassifier(RegressionClassifier):
    """TF-IDF and logistic regression over lists of strings.

    Parameters
    ----------
    strengths : sequence of float
        Values of scikit-learn's C; the best on validation is taken.
    max_features : int
        Of words, and as many of characters: the most frequent ones.

    Example
    -------
    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> arm = TfidfClassifier().fit(texts, [1, 1, 0, 0], validation=(["fine", "dull"], [1, 0]))
    >>> arm.predict(["so fine", "so dull"])
    array([1, 0])
    """

    kind = "tfidf"

    def __init__(
        self, *, strengths: Sequence[float] = STRENGTHS, max_features: int = MAX_FEATURES
    ) -> None:
        self.strengths = strengths
        self.max_features = max_features

    def _fit_features(self, texts: Sequence[str], labels: NDArray[Any]) -> sparse.csr_array:
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

    def contributions(self, text: str, column: int) -> list[Contribution]:
        row, lowered = self._features([text]), text.lower()
        found = find_characters(lowered, **CHARACTERS)
        known = np.isin(found.columns, self.columns_)
        kept: Any = (part[known] for part in found)
        characters = Occurrences(*kept)
        columns = np.searchsorted(self.columns_, characters.columns)
        columns += row.shape[1] - len(self.columns_)  # words come first
        words = find_ngrams(lowered, self.words_.columns, WORDS)
        scores = linear_scores(row, self.regression_)[0]
        weights = margin_weights(self.regression_, scores, column)
        return share_out(text, row, weights, [words, characters._replace(columns=columns)])

    def _parts(self, folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any], list[Path]]:
        arrays = {
            "character_columns": self.columns_,
            "character_rarity": self.rarity_.idf_,
            "word_rarity": self.words_.rarity,
        }
        return arrays, {}, [write_vocabulary(self.words_.vocabulary, folder)]

    @classmethod
    def _from_parts(
        cls, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], folder: Path
    ) -> tuple[Self, int]:
        made, columns = cls(), arrays["character_columns"]
        if columns.size and not 0 <= columns.min() <= columns.max() < 2**HASH_BITS:
            raise ValueError("a column of characters does not exist")
        made.columns_ = columns
        made.rarity_ = TfidfTransformer(sublinear_tf=True)
        made.rarity_.idf_ = check_shape(
            "character_rarity", arrays["character_rarity"], len(columns)
        )
        made.words_ = _Words(made.max_features, read_vocabulary(folder), arrays["word_rarity"])
        return made, len(made.words_.vocabulary) + len(columns)


class _Words:
    """TF-IDF of words and pairs of them; no columns where no text has a word."""

    def __init__(
        self,
        max_features: int,
        columns: dict[str, int] | None = None,
        rarity: NDArray[Any] | None = None,
    ) -> None:
        self.vectorizer = TfidfVectorizer(
            token_pattern=WORDS,
            ngram_range=(1, 2),
            sublinear_tf=True,
            max_features=max_features,
            dtype=np.float32,
            vocabulary=columns or None,
        )
        self.any = bool(columns)
        if columns and rarity is not None:
            self.vectorizer.idf_ = check_shape("word_rarity", rarity, len(columns))

    @property
    def vocabulary(self) -> list[str]:
        """Words and pairs of them by column."""
        return self.vectorizer.get_feature_names_out().tolist() if self.any else []

    @property
    def columns(self) -> Mapping[str, int]:
        return self.vectorizer.vocabulary_ if self.any else {}

    @property
    def rarity(self) -> NDArray[Any]:
        return np.asarray(self.vectorizer.idf_) if self.any else np.zeros(0, dtype=np.float32)

    def fit_transform(self, texts: Sequence[str]) -> Any:
        words = self.vectorizer.build_analyzer()
        self.any = any(words(text) for text in texts)
        return self.vectorizer.fit_transform(texts) if self.any else self.transform(texts)

    def transform(self, texts: Sequence[str]) -> Any:
        if not self.any:
            return sparse.csr_array((len(texts), 0), dtype=np.float32)
        return self.vectorizer.transform(texts)


def _characters(texts: Sequence[str]) -> sparse.csr_array:
    return count_characters(texts, **CHARACTERS)


def _most_frequent(in_texts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The columns in use, in order; the `count` most frequent ones if there are more."""
    by_frequency = np.argsort(-in_texts, kind="stable")[:count]
    return np.sort(by_frequency[in_texts[by_frequency] > 0])
