"""Equal and nearly equal texts.

Equal: the same letters, whatever the case, the spacing and the Unicode form. Nearly equal: the
sets of three-word sequences agree by `SIMILAR` or more (Jaccard); candidates come from MinHash
and locality-sensitive hashing (`rensa`), and every candidate is checked by counting.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from rensa import RMinHash, RMinHashLSH

SIMILAR = 0.7
# 32 bands of 4: a pair at 0.7 is a candidate with probability 0.9998, one at 0.3 with 0.23;
# counting sorts out the latter.
_PERMUTATIONS = 128
_BANDS = 32
_SEED = 1
_WINDOW = 3


class Match(NamedTuple):
    """A text that is like one in the index."""

    key: int
    similarity: float


def normalized(text: str) -> str:
    """The text without what does not matter for being the same text."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def text_key(text: str) -> bytes:
    """A short fingerprint; equal texts have equal ones."""
    return blake2b(normalized(text).encode(), digest_size=12).digest()


class SimilarTexts:
    """An index of texts that finds the nearly equal ones of other texts.

    It keeps the texts it is given (by reference) and 1 KB for each, so index the smaller side.
    """

    def __init__(self) -> None:
        self._index = RMinHashLSH(SIMILAR, _PERMUTATIONS, _BANDS)
        self._texts: list[str] = []

    def add(self, texts: Sequence[str]) -> None:
        """Add texts; their keys count on from the last one."""
        self._index.insert_many(_signatures(texts), len(self._texts))
        self._texts.extend(texts)

    def find(self, texts: Sequence[str]) -> list[list[Match]]:
        """For each text, the indexed texts that are nearly equal, the most similar first."""
        found = []
        for text, keys in zip(texts, self._index.query_all(_signatures(texts)), strict=True):
            found.append(self._checked(text, keys) if keys else [])
        return found

    def _checked(self, text: str, keys: Iterable[int]) -> list[Match]:
        own = set(_sequences(text))
        matches = []
        for key in set(keys):
            other = set(_sequences(self._texts[key]))
            similarity = len(own & other) / len(own | other)
            if similarity >= SIMILAR:
                matches.append(Match(key, similarity))
        return sorted(matches, key=lambda match: (-match.similarity, match.key))


def _signatures(texts: Sequence[str]) -> list[RMinHash]:
    signatures: list[RMinHash] = RMinHash.from_token_sets(
        [_sequences(text) for text in texts], _PERMUTATIONS, _SEED
    )
    return signatures


def _sequences(text: str) -> list[str]:
    """Sequences of three words; of three characters where a script has no spaces."""
    words = normalized(text).split(" ")
    if len(text) > 20 * len(words):
        words = list(normalized(text))
    if len(words) <= _WINDOW:
        return [" ".join(words)]
    return list(map(" ".join, zip(words, words[1:], words[2:], strict=False)))
