"""Which documents of a corpus are held out: by a hash of their text, and never none.

A share of a corpus with few documents may be no document at all, by chance. Then those with the
smallest hashes are held out, as many as are enough to measure with. Where that would take too much
of the text away from training, because there are only one or two long documents, they are cut into
pieces first.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

MOST_PIECES = 50  # of one document
MOST_HELD_OUT = 0.25  # of the text, if pieces can do with less
_SPACE = re.compile(r"\s")
_HASHES = 2**64
_REMEMBERED = 10_000  # hashes, before those that cannot matter are dropped


@dataclass(frozen=True)
class CorpusSplit:
    """The side of every document; equal documents are always on the same one.

    Parameters
    ----------
    limit : int
        Documents whose hash lies below it are held out.
    piece_bytes : int
        If not 0, documents are cut into pieces of about this size or more, which are the
        documents of the split.
    """

    limit: int
    piece_bytes: int = 0

    @classmethod
    def of_share(cls, share: float) -> "CorpusSplit":
        """About this share of the documents is held out."""
        return cls(round(share * _HASHES))

    def holds_out(self, document: str) -> bool:
        """Whether a document (or a piece of one) is held out."""
        return _hash(_encoded(document)) < self.limit

    def documents(self, corpus: Iterable[str]) -> Iterator[str]:
        """The documents of a corpus as the split sees them: whole or in pieces."""
        for document in corpus:
            if self.piece_bytes:
                yield from _pieces(document, self.piece_bytes)
            else:
                yield document


def choose_split(corpus: Iterable[str], share: float, *, least_bytes: int) -> CorpusSplit:
    """A split of which both sides have at least `least_bytes` of text, if the corpus allows it.

    The corpus is read until that is certain, most often a few hundred documents.

    Parameters
    ----------
    corpus : iterable of str
    share : float
        Of the documents that are held out, wherever that is enough.
    least_bytes : int

    Returns
    -------
    CorpusSplit
        That of the share alone, where the corpus has not even twice `least_bytes`.
    """
    plain = CorpusSplit.of_share(share)
    pieces = replace(plain, piece_bytes=least_bytes)
    few = max(MOST_HELD_OUT, 2 * share)
    for split, most in ((plain, few), (pieces, few), (plain, 1.0), (pieces, 1.0)):
        limit = _find_limit(split.documents(corpus), plain.limit, least_bytes, most)
        if limit is not None:
            return replace(split, limit=limit)
    return plain


def _find_limit(documents: Iterable[str], limit: int, least: int, most: float) -> int | None:
    """`limit` if both sides have enough text with it, else the smallest that is enough.

    None if none is, or if it would hold out more than `most` of the text.
    """
    held_out = total = 0
    sizes: dict[int, int] = {}  # the smallest hashes → bytes of text with this hash
    for document in documents:
        data = _encoded(document)
        value = _hash(data)
        total += len(data)
        held_out += len(data) if value < limit else 0
        if least <= held_out <= min(most * total, total - least):
            return limit
        sizes[value] = sizes.get(value, 0) + len(data)
        if len(sizes) > _REMEMBERED:
            sizes = _smallest(sizes, least)
    enough = _smallest(sizes, least)
    found = sum(enough.values())
    return max(enough) + 1 if least <= found <= min(most * total, total - least) else None


def _smallest(sizes: dict[int, int], least: int) -> dict[int, int]:
    """The smallest hashes, until they have enough text together."""
    chosen: dict[int, int] = {}
    found = 0
    for value in sorted(sizes):
        if found >= least:
            break
        chosen[value] = sizes[value]
        found += sizes[value]
    return chosen


def _pieces(document: str, least: int) -> Iterator[str]:
    """A document in pieces of about equal length, cut at white space where there is some."""
    count = max(1, min(MOST_PIECES, len(_encoded(document)) // least))
    step = len(document) // count
    start = 0
    for number in range(1, count):
        space = _SPACE.search(document, number * step, (number + 1) * step)
        end = space.end() if space else number * step
        yield document[start:end]
        start = end
    yield document[start:]


def _encoded(document: str) -> bytes:
    return document.encode("utf-8", "surrogatepass")


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
