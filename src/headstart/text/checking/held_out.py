"""Keep held-out texts out of a corpus: which documents hold a text of validation or test.

A document holds one if it equals it, contains it, or nearly equals it; `CHECKED` says how each
is decided, for the sentence in reports.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

from headstart.text.checking.containment import WINDOW, ContainedTexts
from headstart.text.checking.duplicates import SIMILAR, SimilarTexts, text_key

# Documents that are looked at together: enough for NumPy, little for memory.
_BATCH_CHARACTERS = 1 << 20
_BATCH_DOCUMENTS = 1 << 12

Holding = Literal["equal", "contains", "similar"]

CHECKED = (
    "Looked for were documents that equal a text (case and spacing aside), contain one of "
    f"{WINDOW} words or more word for word (case and punctuation aside; shorter texts are found "
    f"only as whole documents), or share {SIMILAR:.0%} of the three-word sequences with one"
)


class HeldOutTexts:
    """The texts of validation and test, to be found in a corpus.

    Memory grows with these texts, by about 1 KB each, whatever the size of the corpus.

    Parameters
    ----------
    texts : iterable of str

    Examples
    --------
    >>> HeldOutTexts(["A fine film."]).find(["a fine  film.", "Something else."])
    ['equal', None]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        by_key = {text_key(text): text for text in texts}
        self.texts, self.keys = list(by_key.values()), frozenset(by_key)
        self._contained = ContainedTexts(self.texts)
        self._similar = SimilarTexts()
        signatures = self._similar.signatures(self.texts)
        for text, signature in zip(self.texts, signatures, strict=True):
            self._similar.add(text, signature)

    def find(self, documents: Sequence[str]) -> list[Holding | None]:
        """How each document holds one of the texts, or None; fastest for many at once."""
        if not self.texts:
            return [None] * len(documents)
        inside = self._contained.find(documents)
        signatures = self._similar.signatures(documents)
        return [
            "equal"
            if text_key(document) in self.keys
            else "contains"
            if texts
            else "similar"
            if self._similar.find(document, signature)
            else None
            for document, texts, signature in zip(documents, inside, signatures, strict=True)
        ]


class HeldOutCheck:
    """Goes over the documents of one corpus; what the first complete pass found is remembered.

    Parameters
    ----------
    texts : HeldOutTexts
    """

    def __init__(self, texts: HeldOutTexts) -> None:
        self.texts = texts
        self._found: dict[int, Holding] | None = None  # by the document's place in the corpus

    def check(self, documents: Iterable[str]) -> Iterator[tuple[str, Holding | None]]:
        """Every document with how it holds a text, in the same order."""
        if self._found is not None:
            for place, document in enumerate(documents):
                yield document, self._found.get(place)
            return
        found: dict[int, Holding] = {}
        place = 0
        for batch in _batches(documents):
            for document, holding in zip(batch, self.texts.find(batch), strict=True):
                if holding is not None:
                    found[place] = holding
                place += 1
                yield document, holding
        self._found = found


def _batches(documents: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document)
        if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def left_out_sentence(counts: Mapping[Holding, int]) -> str:
    """How many documents of a corpus were left out, and what was looked for."""
    total = sum(counts.values())
    if not total:
        return f"No document of the corpus holds a validation or test text. {CHECKED}"
    words = {"equal": "equal", "contains": "containing it", "similar": "nearly equal"}
    how = ", ".join(f"{counts.get(kind, 0):,} {words[kind]}" for kind in get_args(Holding))
    documents, were = ("document", "was") if total == 1 else ("documents", "were")
    return (
        f"Because of a validation or test text {total:,} {documents} of the corpus {were} left out "
        f"of pretraining ({how}). {CHECKED}"
    )
