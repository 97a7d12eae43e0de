"""Find texts that stand word for word inside longer documents, in one pass over the documents.

A document's words become numbers, every window of `WINDOW` of them a 64-bit hash, all in NumPy.
Each text is looked up by its rarest window alone, and what is found there is compared word by
word, so a match is never a matter of chance. Memory grows with the texts, not with the documents.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# A text of fewer words would be found by chance: "one of the best films of the year".
WINDOW = 8

# Scripts without spaces: every character counts as a word (Thai to Khmer, kana, Han).
_ALONE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
# The same words of a plain ASCII text, more than twice as fast: what parts words becomes a space.
_ASCII = {code: chr(code).lower() if _WORD.match(chr(code)) else " " for code in range(128)}
_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, so that no word's bits are lost modulo 2^64

Numbers = NDArray[Any]


class _Text(NamedTuple):
    """A text that is looked for: its number, its words, and where its rarest window begins."""

    number: int
    words: Numbers
    offset: int


class ContainedTexts:
    """An index of texts that finds those which a document contains.

    Case, punctuation, spacing and the Unicode form do not matter. Texts of fewer than `WINDOW`
    words are never found.

    Parameters
    ----------
    texts : iterable of str

    Examples
    --------
    >>> index = ContainedTexts(["No one in this film can act, least of all the dog."])
    >>> index.find(["I read: “no one in this film can act, least of all the dog”. True."])
    [[0]]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._vocabulary: dict[str, int] = {}
        numbered = [self._learn(words_of(text)) for text in texts]
        generator = np.random.default_rng(0)
        self._values = generator.integers(1, 2**64, len(self._vocabulary) + 1, dtype=np.uint64)
        self._texts = self._index(numbered)
        self._hashes = np.array(sorted(self._texts), dtype=np.uint64)
        # One look into a table settles nearly all windows: 64 places for each hash.
        bits = min(26, max(10, (64 * len(self._hashes)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, dtype=np.bool_)
        self._filter[self._hashes >> self._shift] = True

    def find(self, documents: Sequence[str]) -> list[list[int]]:
        """For each document the numbers of the texts that it contains, in ascending order."""
        found: list[set[int]] = [set() for _ in documents]
        if not len(self._hashes):
            return [[] for _ in documents]
        words = [words_of(document) for document in documents]
        ends = np.cumsum([len(one) for one in words])
        numbers = self._numbers(chain.from_iterable(words), int(ends[-1]) if len(ends) else 0)
        for start, value in self._known_windows(numbers):
            document = int(np.searchsorted(ends, start, side="right"))
            begin, end = int(ends[document - 1]) if document else 0, int(ends[document])
            for text in self._texts[value]:
                first = start - text.offset
                last = first + len(text.words)
                inside = begin <= first and last <= end
                if inside and np.array_equal(numbers[first:last], text.words):
                    found[document].add(text.number)
        return [sorted(texts) for texts in found]

    def _learn(self, words: list[str]) -> Numbers:
        known = self._vocabulary
        return np.array([known.setdefault(word, len(known) + 1) for word in words], np.uint32)

    def _numbers(self, words: Iterable[str], count: int) -> Numbers:
        """The words as numbers; 0 is one that no text has."""
        return np.fromiter(map(self._vocabulary.get, words, repeat(0)), np.uint32, count)

    def _windows(self, numbers: Numbers) -> Numbers:
        """The hash of every window: a polynomial in its words' values, by doubling."""
        hashes, width = self._values[numbers], 1
        while width < WINDOW:
            factor = np.uint64(pow(_MULTIPLIER, width, 2**64))
            hashes = hashes[:-width] * factor + hashes[width:]  # modulo 2^64
            width *= 2
        return hashes

    def _index(self, numbered: list[Numbers]) -> dict[int, list[_Text]]:
        """Every text under its window that the fewest texts have, the first of equals."""
        long = [(number, words) for number, words in enumerate(numbered) if len(words) >= WINDOW]
        if not long:
            return {}
        windows = [self._windows(words) for _, words in long]
        _, places, counts = np.unique(
            np.concatenate(windows), return_inverse=True, return_counts=True
        )
        rarity = np.split(counts[places], np.cumsum([len(hashes) for hashes in windows])[:-1])
        index: dict[int, list[_Text]] = {}
        for (number, words), hashes, often in zip(long, windows, rarity, strict=True):
            offset = int(often.argmin())
            index.setdefault(int(hashes[offset]), []).append(_Text(number, words, offset))
        return index

    def _known_windows(self, numbers: Numbers) -> list[tuple[int, int]]:
        """Where a window begins that some text is indexed under, and its hash."""
        if len(numbers) < WINDOW:
            return []
        hashes = self._windows(numbers)
        maybe = np.flatnonzero(self._filter[hashes >> self._shift])
        places = np.searchsorted(self._hashes, hashes[maybe])
        same = self._hashes[np.minimum(places, len(self._hashes) - 1)] == hashes[maybe]
        return [(int(start), int(hashes[start])) for start in maybe[same]]


def words_of(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    if text.isascii():
        return text.translate(_ASCII).split()
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
