"""A linear tagger: logistic regression on a word, its ending, its shape and its neighbours.

Each word is tagged by itself, whatever the tags next to it. The features are those of taggers
before neural networks (Ratnaparkhi 1996), hashed; a few passes of stochastic gradient descent take
seconds.
"""

import re
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

from headstart.errors import HeadstartError

HASHED = 2**18
UNSEEN = -1e3  # the score of a tag that no training word has

Words = Sequence[Sequence[str]]


class WordTagger(BaseEstimator):  # type: ignore[misc]
    """Tag words by themselves and their neighbours.

    `X` are sentences, each a sequence of words; `y` the tag numbers of each sentence.

    Parameters
    ----------
    alpha : float
        The regularisation of scikit-learn's SGDClassifier.
    """

    def __init__(self, alpha: float = 1e-5) -> None:
        self.alpha = alpha

    def fit(self, X: Words, y: Sequence[Sequence[int]]) -> Self:
        """Fit to the words of all sentences."""
        tags = np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in y])
        if len(np.unique(tags)) < 2:
            raise HeadstartError("the training words have one tag only")
        # A fixed number of passes: it need not have converged.
        self.model_ = SGDClassifier(
            loss="log_loss", alpha=self.alpha, max_iter=10, tol=None, random_state=0, average=True
        )
        self.model_.fit(_hash_words(X), tags)
        self.classes_ = self.model_.classes_
        return self

    def scores(self, X: Words, count: int) -> list[NDArray[np.float64]]:
        """Compute the scores of each sentence: (words, `count` tags)."""
        found = self.model_.decision_function(_hash_words(X))
        if found.ndim == 1:
            found = np.stack([-found, found], axis=1)
        scores = np.full((len(found), count), UNSEEN)
        scores[:, self.classes_] = found
        return np.split(scores, np.cumsum([len(words) for words in X])[:-1])

    def predict(self, X: Words) -> list[NDArray[np.int64]]:
        """Return the tag numbers of each sentence."""
        count = int(self.classes_.max()) + 1
        return [scores.argmax(axis=1) for scores in self.scores(X, count)]


def word_features(words: Sequence[str], place: int) -> list[str]:
    """Return the features of one word of a sentence, as names.

    Example
    -------
    >>> word_features(["in", "Oslo"], 1)[:4]
    ['word=oslo', 'shape=Xx', 'suffix=o', 'suffix=lo']
    """
    word = words[place]
    lower = word.lower()
    found = [f"word={lower}", f"shape={_shape(word)}"]
    found += [f"suffix={lower[-size:]}" for size in (1, 2, 3)]
    found += [f"prefix={lower[:size]}" for size in (2, 3)]
    for offset in (-2, -1, 1, 2):
        there = place + offset
        near = words[there] if 0 <= there < len(words) else "·"
        found += [f"{offset}={near.lower()}", f"{offset}shape={_shape(near)}"]
    before = words[place - 1].lower() if place else "·"
    return [*found, f"pair={before} {lower}"]


def _shape(word: str) -> str:
    """Write runs of capitals, small letters and digits as one each: "Oslo-2" is "Xx-0"."""
    kinds = []
    for character in word:
        if character.isupper():
            kinds.append("X")
        elif character.isalpha():
            kinds.append("x")
        else:
            kinds.append("0" if character.isdigit() else character)
    return re.sub(r"(.)\1+", r"\1", "".join(kinds), flags=re.DOTALL)


def _hash_words(sentences: Words) -> sparse.csr_matrix:
    names = (word_features(words, place) for words in sentences for place in range(len(words)))
    return FeatureHasher(HASHED, input_type="string", alternate_sign=False).transform(names)
