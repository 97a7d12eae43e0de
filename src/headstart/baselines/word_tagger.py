"""A linear tagger: a logistic regression on a word, its ending, its shape and its neighbours.

Each word is tagged by itself; nothing is known of the tags beside it. The features are those that
taggers had before neural networks (Ratnaparkhi 1996), hashed, and the weights are learned by a few
passes of stochastic gradient descent, which takes seconds.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

from headstart.data.conll import Sentences
from headstart.errors import HeadstartError
from headstart.tasks.tagging import Tagging

HASHED = 2**18
STRENGTHS = (1e-6, 1e-5, 1e-4)  # of the penalty: the most accurate on validation is taken
UNSEEN = -1e3  # the score of a tag that the training words do not have


class WordTagger:
    """Tags words by themselves and their neighbours.

    Parameters
    ----------
    penalty : float
        scikit-learn's alpha.
    """

    def __init__(self, penalty: float = 1e-5) -> None:
        self.penalty = penalty

    def fit(self, words: Sequence[Sequence[str]], tags: Sequence[Sequence[int]]) -> "WordTagger":
        numbers = np.concatenate([np.asarray(one, dtype=np.int64) for one in tags])
        if len(np.unique(numbers)) < 2:
            raise HeadstartError("the training words have one tag only")
        # A fixed number of passes: whether it has converged is not the question here.
        self.model_ = SGDClassifier(
            loss="log_loss", alpha=self.penalty, max_iter=10, tol=None, random_state=0, average=True
        )
        self.model_.fit(_hashed(words), numbers)
        return self

    def scores(self, words: Sequence[Sequence[str]], count: int) -> list[NDArray[np.float64]]:
        """Of each sentence: (words, `count` tags)."""
        found = self.model_.decision_function(_hashed(words))
        if found.ndim == 1:
            found = np.stack([-found, found], axis=1)
        every = np.full((len(found), count), UNSEEN)
        every[:, self.model_.classes_] = found
        return np.split(every, np.cumsum([len(one) for one in words])[:-1])


def fit_tagger(
    task: Tagging, train: Sentences, validation: Sentences
) -> Callable[[Sentences], list[NDArray[np.float64]]]:
    """The tagger that is best on validation."""

    def quality(tagger: WordTagger) -> float:
        scores = tagger.scores(validation.words, len(task.labels))
        return task.row_scores(scores, validation)[task.metric].value

    tried = [WordTagger(penalty).fit(train.words, train.tags) for penalty in STRENGTHS]
    best = max(tried, key=quality)
    return lambda part: best.scores(part.words, len(task.labels))


fit_tagger.label = "linear tagger"  # type: ignore[attr-defined]


def word_features(words: Sequence[str], place: int) -> list[str]:
    """What is known of one word of a sentence, as names.

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
    """Capitals, small letters, digits and other characters, each run once: "Oslo-2" is "Xx-0"."""
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1+", r"\1", "".join(kinds), flags=re.DOTALL)


def _hashed(sentences: Sequence[Sequence[str]]) -> sparse.csr_matrix:
    names = (word_features(words, place) for words in sentences for place in range(len(words)))
    return FeatureHasher(HASHED, input_type="string", alternate_sign=False).transform(names)
