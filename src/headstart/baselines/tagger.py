"""A linear tagger: logistic regression on a word, its ending, its shape and its neighbours.

Each word is tagged by itself, whatever the tags next to it. The features are those of taggers
before neural networks (Ratnaparkhi 1996), hashed; a few passes of stochastic gradient descent take
seconds.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

from headstart.baselines.linear import Floats, LinearTextClassifier

HASHED = 2**18

Words = Sequence[Sequence[str]]


class WordTagger(LinearTextClassifier):
    """Tag words by themselves and their neighbours.

    A text is a sentence, a sequence of words; its labels are the tag numbers of the words. C is the
    inverse of `alpha` of scikit-learn's SGDClassifier.
    """

    kind = "tagger"
    Cs = (1e4, 1e5, 1e6)
    arrays = ()

    def _fit_features(self, texts: Words, labels: Any) -> sparse.csr_matrix:
        return self._features(texts)

    def _features(self, texts: Words) -> sparse.csr_matrix:
        names = (word_features(words, place) for words in texts for place in range(len(words)))
        return FeatureHasher(HASHED, input_type="string", alternate_sign=False).transform(names)

    def _targets(self, labels: Any) -> list[NDArray[np.int64]]:
        return [np.concatenate([np.asarray(tags, dtype=np.int64) for tags in labels])]

    def _fit_model(self, features: Any, y: NDArray[Any], C: float, weights: Any = None) -> Any:
        # A fixed number of passes: it need not have converged.
        return SGDClassifier(
            loss="log_loss", alpha=1 / C, max_iter=10, tol=None, random_state=0, average=True
        ).fit(features, y)

    def _per_text(self, scores: Floats, texts: Words) -> list[Floats]:
        return np.split(scores, np.cumsum([len(words) for words in texts])[:-1])

    def predict(self, texts: Words) -> list[NDArray[np.int64]]:
        """Return the tag numbers of each sentence."""
        return [self.classes_[scores.argmax(axis=1)] for scores in self.scores(texts)]


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
