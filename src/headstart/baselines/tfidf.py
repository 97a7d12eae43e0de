"""The `tfidf` arm: word and character n-grams + logistic regression, what any text model must beat.

Words alone and in pairs, and pieces of 3 to 5 characters (they see endings, typos and languages
without blanks), each weighted by 1 + ln(count) and by rarity, are the features.

scikit-learn cuts each n-gram out as a string and looks it up, which takes minutes for 25,000
reviews. Here all n-grams of a batch are numbered at once, by a hash that rolls over the code
points, and counted by one sort.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from headstart.baselines.regression import RegressionClassifier

BATCH = 1_000  # texts
# Odd numbers without a pattern; any would do, but they must stay: runs are read with them.
MULTIPLIER, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def count_characters(
    texts: Sequence[str], *, shortest: int, longest: int, bits: int
) -> sparse.csr_array:
    """Rows × 2^bits: how often each n-gram of `shortest` to `longest` characters is in a text.

    Case and the kind of blanks do not count; a text begins and ends with a blank.
    """
    blocks = [_count_batch(batch, shortest, longest, bits) for batch in _batches(texts)]
    if not blocks:
        return sparse.csr_array((0, 2**bits), dtype=np.float32)
    return sparse.vstack(blocks, format="csr")


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while batch := list(islice(stream, BATCH)):
        yield batch


def _count_batch(texts: list[str], shortest: int, longest: int, bits: int) -> sparse.csr_array:
    plain = [f" {' '.join(text.lower().split())} " for text in texts]
    codes = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    owners = np.repeat(np.arange(len(plain), dtype=np.uint64), [len(text) for text in plain])
    hashes = np.ones(len(codes), dtype=np.uint64)  # not 0: a leading NUL would leave no trace
    keys = []
    for size in range(1, longest + 1):
        hashes = hashes[: len(codes) - size + 1] * MULTIPLIER + codes[size - 1 :]
        if size >= shortest:
            first = owners[: len(hashes)]
            inside = first == owners[size - 1 :]
            buckets = (hashes[inside] ^ (hashes[inside] >> np.uint64(29))) * SPREAD
            keys.append(first[inside] << np.uint64(bits) | buckets >> np.uint64(64 - bits))
    return _tally(np.concatenate(keys), len(texts), bits)


def _tally(keys: NDArray[np.uint64], rows: int, bits: int) -> sparse.csr_array:
    keys.sort()
    first = np.flatnonzero(np.concatenate([keys[:1] == keys[:1], keys[1:] != keys[:-1]]))
    times = np.diff(first, append=len(keys)).astype(np.float32)
    distinct = keys[first]
    columns = (distinct & np.uint64(2**bits - 1)).astype(np.int32)
    pointers = np.searchsorted(distinct >> np.uint64(bits), np.arange(rows + 1, dtype=np.uint64))
    return sparse.csr_array((times, columns, pointers.astype(np.int32)), (rows, 2**bits))


STRENGTHS = (0.25, 1, 4, 16, 64, 256)
HASH_BITS = 20  # a million buckets: few n-grams share one
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
