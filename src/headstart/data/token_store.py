"""The token store: the token ids of a corpus on disk, mapped into memory.

A store is a folder named by a key of the corpus, the tokenizer and the split, so that the second
request finds it. It is written under a temporary name, synced, and renamed: it is complete or
absent. What a killed writer left is removed by the next writer of the same store, and a damaged
store is made again.

A store has two parts, `train` and `held_out`. A part has two files: where each document starts (8
bytes each), and the little-endian ids of all documents. The manifest has a checksum of each file,
which opening the store checks.
"""

import hashlib
import json
import re
import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from headstart.data.dataset import batched
from headstart.data.sources import hash_content
from headstart.data.tokenizers import Tokenizer, Tokens, hash_of
from headstart.files import sync

FORMAT = 5
MANIFEST = "manifest.json"
PARTS = ("train", "held_out")
INDEX_DTYPE = np.dtype("<u8")
_COUNTED = 1 << 22  # ids at once


class TokenStore:
    """One part of a finished store: documents of ids that stay on disk until they are used."""

    def __init__(self, folder: Path, part: str, dtype: np.dtype[np.unsignedinteger]) -> None:
        self.folder = folder
        self.key = f"{folder.name}/{part}"
        self.starts = _map(folder / f"{part}-documents.bin", INDEX_DTYPE)
        self._ids = _map(folder / f"{part}-ids.bin", dtype)
        self.tokens = len(self._ids)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, document: int) -> Tokens:
        return self._ids[int(self.starts[document]) : int(self.starts[document + 1])]

    def __iter__(self) -> Iterator[Tokens]:
        return map(self.__getitem__, range(len(self)))

    def counts(self, vocab_size: int) -> NDArray[np.int64]:
        """Count the occurrences of each id: (vocab_size,)."""
        total = np.zeros(vocab_size, dtype=np.int64)
        for start in range(0, self.tokens, _COUNTED):
            total += np.bincount(self._ids[start : start + _COUNTED], minlength=vocab_size)
        return total


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)  # the system cannot map an empty file
    # As a plain array: slices of a memmap object are several times slower to make.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def store_corpus(
    documents: Iterable[str],
    tokenizer: Tokenizer,
    folder: Path,
    *,
    fingerprint: str,
    split: "CorpusSplit | None" = None,
) -> list[TokenStore]:
    """Open the store of a corpus, or make it; the corpus is read at most once.

    Several processes may ask for the same store: one makes it, the others wait and open it.

    Parameters
    ----------
    documents : iterable of str
    tokenizer : Tokenizer
    folder : Path
        The folder of all stores.
    fingerprint : str
        A hash of the documents.
    split : CorpusSplit, optional
        Which documents are held out; `choose_split` makes it. By default none is.

    Returns
    -------
    list of TokenStore
        The documents to train on and those held out.
    """
    split = split or CorpusSplit(0)
    settings = (str(FORMAT), fingerprint, tokenizer.fingerprint, str(split))
    place = folder / hash_of(*(one.encode() for one in settings))[:32]
    if not is_complete(place):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not is_complete(place):  # else another process has made it meanwhile
                _make_store(documents, tokenizer, split, place)
    return [TokenStore(place, part, tokenizer.dtype) for part in PARTS]


def is_complete(folder: Path) -> bool:
    """Return whether a store is there and its files have not changed since it was made."""
    path = folder / MANIFEST
    return path.is_file() and path.read_bytes() == _manifest(folder)


def _manifest(folder: Path) -> bytes:
    """Return the content of a manifest: the checksum of every other file."""
    checksums = {path.name: hash_content(path) for path in sorted(folder.glob("*.bin"))}
    return json.dumps(checksums, indent=2).encode()


def _make_store(
    documents: Iterable[str], tokenizer: Tokenizer, split: "CorpusSplit", place: Path
) -> None:
    temporary = place.with_suffix(".part")
    for old in (temporary, place):
        shutil.rmtree(old, ignore_errors=True)
    try:
        temporary.mkdir()
        _write_parts(documents, tokenizer, split, temporary)
        (temporary / MANIFEST).write_bytes(_manifest(temporary))
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        temporary.replace(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync(place.parent)


def _write_parts(
    documents: Iterable[str], tokenizer: Tokenizer, split: "CorpusSplit", folder: Path
) -> None:
    lengths = [array("Q") for _ in PARTS]
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{part}-ids.bin").open("wb")) for part in PARTS]
        for batch in batched(split.documents(documents)):
            for text, ids in zip(batch, tokenizer.encode_arrays(batch), strict=True):
                held_out = split.holds_out(text)
                files[held_out].write(ids.tobytes())
                lengths[held_out].append(len(ids))
    for part, counts in zip(PARTS, lengths, strict=True):
        starts = np.zeros(len(counts) + 1, dtype=INDEX_DTYPE)
        np.cumsum(counts, out=starts[1:])
        (folder / f"{part}-documents.bin").write_bytes(starts.tobytes())


# The split of a corpus. A share of a corpus with few documents may be no document at all. Then
# those with the smallest hashes are held out, as many as are enough to measure with. Where that
# would take too much text away from training, long documents are cut into chunks first.
MAX_CHUNKS = 50  # of one document
MAX_HELD_OUT = 0.25  # of the text, if chunks need less
_HASHES = 2**64
_SPACE = re.compile(r"\s")


@dataclass(frozen=True)
class CorpusSplit:
    """Which documents are held out, by a hash of their text: equal documents stay together.

    Parameters
    ----------
    limit : int
        Documents whose hash is below it are held out.
    chunk_bytes : int
        Documents of twice this size or more are cut into chunks, which are the documents of the
        split.
    """

    limit: int
    chunk_bytes: int = _HASHES  # no document is that long

    @classmethod
    def of_share(cls, share: float) -> "CorpusSplit":
        """Hold out about this share of the documents."""
        return cls(round(share * _HASHES))

    def holds_out(self, document: str) -> bool:
        """Return whether a document (or a chunk of one) is held out."""
        return _hash(document) < self.limit

    def documents(self, corpus: Iterable[str]) -> Iterator[str]:
        """Yield the documents of the split: those of the corpus, whole or in chunks."""
        for document in corpus:
            yield from self._cut(document)

    def _cut(self, document: str) -> Iterator[str]:
        """Cut a document into chunks of about equal length, at white space where there is some."""
        count = max(1, min(MAX_CHUNKS, len(_encode(document)) // self.chunk_bytes))
        step = len(document) // count
        start = 0
        for number in range(1, count):
            space = _SPACE.search(document, number * step, (number + 1) * step)
            end = space.end() if space else number * step
            yield document[start:end]
            start = end
        yield document[start:]


def choose_split(corpus: Iterable[str], share: float, *, min_bytes: int) -> CorpusSplit:
    """Choose a split with at least `min_bytes` of text on both sides, if the corpus allows it.

    The corpus is read until that is certain, usually a few hundred documents.

    Parameters
    ----------
    corpus : iterable of str
    share : float
        Of the documents that are held out, wherever that is enough.
    min_bytes : int

    Returns
    -------
    CorpusSplit
        That of the share alone, where the corpus has not even twice `min_bytes`.
    """
    plain = CorpusSplit.of_share(share)
    limit = _find_limit(corpus, plain.limit, min_bytes, max(MAX_HELD_OUT, 2 * share))
    if limit is not None:
        return replace(plain, limit=limit)
    chunks = replace(plain, chunk_bytes=min_bytes)
    limit = _find_limit(chunks.documents(corpus), plain.limit, min_bytes, 1.0)
    return plain if limit is None else replace(chunks, limit=limit)


def _find_limit(
    documents: Iterable[str], limit: int, min_bytes: int, max_share: float
) -> int | None:
    """Return `limit` if both sides have enough text with it, else the smallest that is enough.

    None if there is none, or if it would hold out more than `max_share` of the text.
    """
    held_out = total = 0
    sizes: Counter[int] = Counter()  # bytes of text by hash
    for document in documents:
        value, size = _hash(document), len(_encode(document))
        total += size
        held_out += size if value < limit else 0
        sizes[value] += size
        if min_bytes <= held_out <= min(max_share * total, total - min_bytes):
            return limit
    held_out = 0
    for value in sorted(sizes):
        held_out += sizes[value]
        if held_out >= min_bytes:
            return value + 1 if held_out <= min(max_share * total, total - min_bytes) else None
    return None


def _encode(document: str) -> bytes:
    return document.encode("utf-8", "surrogatepass")


def _hash(document: str) -> int:
    digest = hashlib.blake2b(_encode(document), digest_size=8).digest()
    return int.from_bytes(digest, "big")
