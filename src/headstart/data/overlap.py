"""Find texts of one part in another part or in a corpus: equal, nearly equal, or contained.

- Equal: the same letters, whatever the case, the spacing and the Unicode form.
- Nearly equal: the sets of three-word sequences agree by `SIMILAR` or more (Jaccard). Candidates
  come from MinHash and locality-sensitive hashing (a pair at 0.8 is one with probability 0.998);
  every candidate is compared.
- Contained, in both directions: a document has all sequences of `WINDOW` words of a text; or
  `SIMILAR` of a document's sequences occur in the texts, as the lines of a long text do.

Hashing 25,000 IMDb reviews takes 0.3 s with `rensa`; 5,000 of them take 2 s with `datasketch`.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash, RMinHashLSH

from headstart.data.dataset import Text, as_text
from headstart.data.words import UNSPACED

OverlapKind = Literal["equal", "contains", "inside", "similar"]

SIMILAR = 0.8
# Texts of fewer words can be contained by chance: "one of the best films of the year".
WINDOW = 8
# Two similar texts of at least this many words share a sequence of WINDOW words, because at most
# one word in 27 differs.
LONG = 32
# 21 bands of 6: a pair at 0.8 is a candidate with probability 0.998, one at 0.5 with 0.28.
PERMUTATIONS, BANDS, SEED = 126, 21, 1
# Candidates whose estimated similarity is below this (five standard errors) are not compared.
ESTIMATED = SIMILAR - 5 * (SIMILAR * (1 - SIMILAR) / PERMUTATIONS) ** 0.5

CHECKED = (
    "Headstart looks for documents that equal a held-out text (case and spacing aside), contain "
    f"one of at least {WINDOW} words (case and punctuation aside), lie inside one ({SIMILAR:.0%} "
    f"of their sequences of {WINDOW} words), or share {SIMILAR:.0%} of its three-word sequences "
    f"(99.8 % of these are found). A text of fewer than {WINDOW} words is found only if it is a "
    "whole document"
)

Numbers = NDArray[Any]


class Match(NamedTuple):
    """How a document overlaps with one of the texts."""

    kind: OverlapKind
    text: int  # its number


def normalized(text: str) -> str:
    """Return a text without case, spacing and Unicode form."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def text_key(text: Text) -> bytes:
    """Compute a short fingerprint; equal texts have equal ones."""
    whole = normalized(text) if isinstance(text, str) else "\0".join(map(normalized, text))
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=12).digest()


class HeldOutTexts:
    """Texts, such as those of validation and test, to be found in other texts.

    With `contained`, texts are also looked for inside of documents, and documents inside of them.
    Memory grows with these texts, by about 1 KB and 24 bytes per word each, whatever the number
    of documents.

    >>> HeldOutTexts(["A fine film."]).find(["a fine  film.", "Something else."])
    ['equal', None]
    """

    def __init__(self, texts: Iterable[Text], *, contained: bool = True) -> None:
        by_key: dict[bytes, Text] = {}
        for text in texts:
            by_key.setdefault(text_key(text), text)
        self.texts = list(by_key.values())
        self.keys = {key: number for number, key in enumerate(by_key)}
        self._similar = RMinHashLSH(SIMILAR, PERMUTATIONS, BANDS)
        self._signatures = _minhash(self.texts)
        for number, signature in enumerate(self._signatures):
            self._similar.insert(number, signature)
        # Two texts are compared as a whole: many pairs rightly share one of them.
        whole = [text if isinstance(text, str) and contained else "" for text in self.texts]
        hashes, owners, _ = _hash_windows(whole)
        self._hashes, first, places, often = np.unique(
            hashes, return_index=True, return_inverse=True, return_counts=True
        )
        self._owners = owners[first]
        self._places = np.split(places, np.searchsorted(owners, np.arange(1, len(whole))))
        # The texts whose rarest sequence this is: only documents with it can contain them.
        self._rarest: dict[int, list[int]] = defaultdict(list)
        for number, mine in enumerate(self._places):
            if len(mine):
                self._rarest[int(mine[often[mine].argmin()])].append(number)
        # One look into a table settles nearly all sequences: 64 places for each hash.
        bits = min(26, max(10, (64 * len(self._hashes)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, dtype=np.bool_)
        self._filter[self._hashes >> self._shift] = True

    def find(self, documents: Sequence[Text]) -> list[OverlapKind | None]:
        """Return how each document overlaps with one of the texts, or None."""
        return [matches[0].kind if matches else None for matches in self.matches(documents)]

    def matches(self, documents: Sequence[Text]) -> list[list[Match]]:
        """Find the texts that each document equals, contains, nearly equals or is inside of."""
        if not self.texts:
            return [[] for _ in documents]
        found, comparable = self._contained(documents)
        others = []
        for number, document in enumerate(documents):
            equal = self.keys.get(text_key(document))
            if equal is not None:
                found[number].insert(0, Match("equal", equal))
            elif comparable[number] and [one.kind for one in found[number]] in ([], ["inside"]):
                others.append(number)
        signatures = _minhash([documents[number] for number in others])
        for number, signature in zip(others, signatures, strict=True):
            similar = self._most_similar(documents[number], signature)
            found[number] = found[number] if similar is None else [similar]
        return found

    def _most_similar(self, document: Text, signature: Any) -> Match | None:
        """Find the most similar text, if it is similar enough; every candidate is compared."""
        candidates = sorted(set(self._similar.query(signature)))
        likely = [n for n in candidates if signature.jaccard(self._signatures[n]) > ESTIMATED]
        sequences = set(_sequences(document)) if likely else set()
        others = {number: set(_sequences(self.texts[number])) for number in likely}
        found = {n: len(sequences & one) / len(sequences | one) for n, one in others.items()}
        best = max(found, key=found.__getitem__, default=None)  # the first of equal ones
        return None if best is None or found[best] < SIMILAR else Match("similar", best)

    def _contained(self, documents: Sequence[Text]) -> tuple[list[list[Match]], list[bool]]:
        """Find what each document contains or is inside of, and which could be similar to one."""
        found: list[list[Match]] = [[] for _ in documents]
        if not len(self._hashes):
            return found, [True] * len(documents)
        hashes, owners, words = _hash_windows([d if isinstance(d, str) else "" for d in documents])
        likely = self._filter[hashes >> self._shift]
        hashes, owners = hashes[likely], owners[likely]
        places = np.searchsorted(self._hashes, hashes) % len(self._hashes)
        shared = self._hashes[places] == hashes
        places, owners = places[shared], owners[shared]
        comparable = [count < LONG for count in words]
        for document in np.unique(owners).tolist():
            comparable[document] = True
            mine = places[slice(*np.searchsorted(owners, [document, document + 1]))]
            candidates = chain.from_iterable(map(self._rarest.get, {*mine.tolist()}, repeat(())))
            inside = [text for text in candidates if np.isin(self._places[text], mine).all()]
            found[document] = [Match("contains", text) for text in sorted(inside)]
            if not inside and len(mine) / (words[document] - WINDOW + 1) >= SIMILAR:
                found[document] = [Match("inside", int(self._owners[mine[0]]))]
        return found, comparable


def _minhash(texts: Sequence[Text]) -> list[Any]:
    """Compute the MinHash signatures of texts (of rensa, which has no types)."""
    return list(RMinHash.from_token_sets(list(map(_sequences, texts)), PERMUTATIONS, SEED))


def _sequences(text: Text) -> list[str]:
    """Split a text into sequences of three words; of three characters in scripts without spaces."""
    whole = normalized(as_text(text))
    words = whole.split(" ")
    if len(whole) > 20 * len(words):
        words = list(whole)
    if len(words) <= 3:
        return [" ".join(words)]
    return list(map(" ".join, zip(words, words[1:], words[2:], strict=False)))


WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
# The same words of an ASCII text, more than twice as fast: what separates words becomes a space.
ASCII = {code: chr(code).lower() if WORD.match(chr(code)) else " " for code in range(128)}
MULTIPLIER = 0x9E3779B97F4A7C15  # odd, so that no word's bits are lost modulo 2^64


def words_of(text: str) -> list[str]:
    """Split a text into words without case and punctuation."""
    if text.isascii():
        return text.translate(ASCII).split()
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _hash_windows(texts: Sequence[str]) -> tuple[Numbers, Numbers, list[int]]:
    """Hash all sequences of `WINDOW` words; return hashes, the text of each, and words per text."""
    words = [words_of(text) for text in texts]
    counts = [len(one) for one in words]
    values = np.fromiter(map(hash, chain.from_iterable(words)), np.int64, sum(counts))
    hashes, width = values.view(np.uint64), 1
    while width < WINDOW:  # a polynomial in the words' hashes modulo 2^64, by doubling
        factor = np.uint64(pow(MULTIPLIER, width, 2**64))
        hashes = hashes[:-width] * factor + hashes[width:]
        width *= 2
    owners = np.repeat(np.arange(len(texts)), counts)
    within = owners[: len(hashes)] == owners[WINDOW - 1 :]  # else it runs over the end of a text
    return hashes[within], owners[: len(hashes)][within], counts


def overlap_sentence(counts: Mapping[OverlapKind, int]) -> str:
    """Say how many documents of a corpus were dropped, what was looked for and how sure that is."""
    words: dict[OverlapKind, str] = {
        "equal": "equal",
        "contains": "containing one",
        "inside": "inside one",
        "similar": "nearly equal",
    }
    how = ", ".join(f"{counts[kind]:,} {words[kind]}" for kind in words if counts.get(kind))
    return (
        "Documents of the corpus dropped because of a validation or test text: "
        f"{sum(counts.values()):,}{how and f' ({how})'}. {CHECKED}"
    )
