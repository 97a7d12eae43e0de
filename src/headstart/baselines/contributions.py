"""What each word of a text adds to a linear classifier's score: exact, not a test by hiding it.

The log-odds of a class are a sum over features (with two classes exactly, with more at the text's
own probabilities). A feature's part is shared out among its occurrences in the text, and among the
characters of each; a word gets what its characters got. So the words' parts and the intercept add
up to the log-odds.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from headstart.baselines.characters import Occurrences
from headstart.explain import Contribution
from headstart.text.tokenizers.words import find_words


def find_ngrams(lowered: str, columns: Mapping[str, int], word: str) -> Occurrences:
    """Words and pairs of them with their places, as scikit-learn's analyzer cuts them.

    Parameters
    ----------
    lowered : the text in lower case.
    columns : the column of each n-gram that counts.
    word : a regular expression, the `token_pattern` of scikit-learn.
    """
    words = [match.span() for match in re.finditer(word, lowered)]
    found = []  # column, start, end, share
    for place, (start, end) in enumerate(words):
        if (column := columns.get(lowered[start:end])) is not None:
            found.append((column, start, end, 1.0))
        if place + 1 < len(words):
            first, second = words[place], words[place + 1]
            pair = f"{lowered[slice(*first)]} {lowered[slice(*second)]}"
            if (column := columns.get(pair)) is not None:
                found += [(column, *first, 0.5), (column, *second, 0.5)]
    table = np.array(found, dtype=np.float64).reshape(-1, 4)
    whole = table[:, :3].astype(np.int64)
    return Occurrences(whole[:, 0], whole[:, 1], whole[:, 2], table[:, 3])


def margin_weights(
    regression: LogisticRegression, scores: NDArray[np.float64], column: int
) -> NDArray[np.float64]:
    """The weight of each feature in the log-odds of a class, for a text with these scores."""
    weights = np.asarray(regression.coef_, dtype=np.float64)
    if len(weights) == 1:
        weights = np.vstack([np.zeros_like(weights), weights])
    others = np.delete(np.arange(len(weights)), column)
    return weights[column] - softmax(scores[others]) @ weights[others]


def share_out(
    text: str,
    features: sparse.csr_array,
    weights: NDArray[np.float64],
    occurrences: Sequence[Occurrences],
) -> list[Contribution]:
    """What each word of `text` adds to the sum of `features` (1 × columns) times `weights`."""
    values = features.toarray()[0] * weights
    places = _places(text)
    effects = np.zeros(len(places))
    filled = np.array([not character.isspace() for character in text.lower()], dtype=bool)
    for columns, starts, ends, shares in occurrences:
        times = np.bincount(columns, weights=shares, minlength=len(values))
        amounts = values[columns] * shares / times[columns]
        totals = np.concatenate([[0], np.cumsum(filled)])
        amounts /= np.maximum(totals[ends] - totals[starts], 1)
        for step in range(int((ends - starts).max(initial=0))):
            inside = np.flatnonzero(starts + step < ends)
            inside = inside[filled[starts[inside] + step]]
            np.add.at(effects, starts[inside] + step, amounts[inside])
    own = np.bincount(places, weights=effects, minlength=len(text))
    sums = np.concatenate([[0.0], np.cumsum(own)])
    return [(start, end, float(sums[end] - sums[start])) for start, end in find_words(text)]


def _places(text: str) -> NDArray[np.int64]:
    """The character of `text` behind each one of its lower-case form, which may be longer."""
    lengths = [len(character.lower()) for character in text]
    return np.repeat(np.arange(len(text)), lengths)
