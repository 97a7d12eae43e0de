"""Equal and nearly equal texts.

Equal: the same letters, whatever the case, the spacing and the Unicode form. Nearly equal: the
sets of three-word sequences agree by `SIMILAR` or more (Jaccard); candidates come from MinHash
and locality-sensitive hashing, and every candidate is checked by counting.

One run on a two-core machine, 128 permutations, hashing and searching: `rensa` 0.3 s for 25,000
IMDb reviews, `datasketch` 2.0 s for the first 5,000 of them; cutting the 25,000 into sequences
takes 2 s before either.
"""

import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from rensa import RMinHash, RMinHashLSH

SIMILAR = 0.8
# 21 bands of 6: a pair at 0.8 is a candidate with probability 0.998, one at 0.5 with 0.28;
# counting sorts out the latter.
_PERMUTATIONS = 126
_BANDS = 21
_SEED = 1
_WINDOW = 3
# Templates ("order 17 was shipped") are all candidates of each other: some of them will do.
_CANDIDATES = 20


Signature = Any  # rensa's RMinHash, which has no types


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

    It keeps the texts it is given (by reference) and about 1 KB for each.
    """

    def __init__(self) -> None:
        self._index = RMinHashLSH(SIMILAR, _PERMUTATIONS, _BANDS)
        self._texts: list[str] = []

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, key: int) -> str:
        """The text that was added as `key`."""
        return self._texts[key]

    def signatures(self, texts: Sequence[str]) -> list[Signature]:
        """The MinHash signatures that `add` and `find` need; fastest for many texts at once."""
        signatures: list[Signature] = RMinHash.from_token_sets(
            [_sequences(text) for text in texts], _PERMUTATIONS, _SEED
        )
        return signatures

    def add(self, text: str, signature: Signature) -> int:
        """Add a text and give its key."""
        key = len(self._texts)
        self._index.insert(key, signature)
        self._texts.append(text)
        return key

    def find(self, text: str, signature: Signature) -> list[Match]:
        """The indexed texts that are nearly equal, the most similar first.

        Among very many candidates an equal one may be missed: that is what `text_key` is for.
        """
        keys = self._index.query(signature)
        if not keys:
            return []
        own = set(_sequences(text))
        matches = []
        for key in sorted(set(keys))[:_CANDIDATES]:
            other = set(_sequences(self._texts[key]))
            similarity = len(own & other) / len(own | other)
            if similarity >= SIMILAR:
                matches.append(Match(key, similarity))
        return sorted(matches, key=lambda match: (-match.similarity, match.key))


def _sequences(text: str) -> list[str]:
    """Sequences of three words; of three characters where a script has no spaces."""
    whole = normalized(text)
    words = whole.split(" ")
    if len(whole) > 20 * len(words):
        words = list(whole)
    if len(words) <= _WINDOW:
        return [" ".join(words)]
    return list(map(" ".join, zip(words, words[1:], words[2:], strict=False)))
