"""A corpus in two: what is trained on, and a share that only measures.

The side of a document depends on its text alone, so equal documents land on the same side and
the split does not change with the order of the files.
"""

import hashlib
from collections.abc import Iterator

from headstart.progress import ProgressCallback
from headstart.text.store.token_store import Corpus


class Counted:
    """A corpus that tells how many bytes of it were read, and of how many."""

    def __init__(self, corpus: Corpus, size: int | None, progress: ProgressCallback) -> None:
        self._corpus = corpus
        self._size = size
        self._progress = progress

    @property
    def fingerprint(self) -> str:
        return self._corpus.fingerprint

    def __iter__(self) -> Iterator[str]:
        done = 0
        for text in self._corpus:
            yield text
            done += len(text.encode("utf-8", "surrogatepass"))
            self._progress(done, self._size)


class HeldOut:
    """One side of a corpus: the held-out share (`inside`), or the rest."""

    def __init__(self, corpus: Corpus, *, share: float, inside: bool) -> None:
        self._corpus = corpus
        self._share = share
        self._inside = inside

    @property
    def fingerprint(self) -> str:
        side = "held out" if self._inside else "kept"
        return f"{self._corpus.fingerprint}:{side}:{self._share!r}"

    def __iter__(self) -> Iterator[str]:
        return (text for text in self._corpus if is_held_out(text, self._share) is self._inside)


def is_held_out(text: str, share: float) -> bool:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
