"""The token store: the token ids of a corpus on disk, mapped into memory.

A store is a folder named by a key of the corpus, the tokenizer and the settings, so that the second
request finds it. It is written under a temporary name, synced, and renamed: it is complete or
absent. A killed writer's folder is removed by the next writer, and a damaged store is made again.

A store has one part, `all`, or two, `train` and `held_out`. A part has two files: where each
document starts (8 bytes each), and the little-endian ids of all documents. The manifest has a
checksum of each file, which opening the part checks.
"""

import hashlib
import json
import re
import shutil
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from headstart.data.dataset import batched
from headstart.data.tokenizers import Tokenizer, Tokens, hash_of
from headstart.errors import HeadstartError
from headstart.files import mark_used, sync, write_text

FORMAT = 4
MANIFEST = "manifest.json"
INDEX_DTYPE = np.dtype("<u8")
_THREADS = 2  # one tokenizes new words while the other looks up known ones
_COUNTED = 1 << 22  # ids at once


class TokenStore:
    """One part of a finished store: documents of ids that stay on disk until they are used.

    Parameters
    ----------
    folder : Path
        The store's folder. Missing or damaged files are an error.
    part : str
        `all`, `train` or `held_out`.
    """

    def __init__(self, folder: Path, part: str = "all") -> None:
        self.folder = folder
        self.key = f"{folder.name}/{part}"
        index, ids = _part_files(folder, part)
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            self.dtype: np.dtype[np.unsignedinteger] = np.dtype(manifest["dtype"])
            checksums = [manifest["checksums"][path.name] for path in (index, ids)]
            whole = manifest["format"] == FORMAT and checksums == [_checksum(index), _checksum(ids)]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            whole = False
        if not whole:
            raise HeadstartError(
                "this token store is damaged, or it was never finished",
                where=folder,
                fix="delete the folder; the store is made again when it is needed",
            )
        self.starts = _map(index, INDEX_DTYPE)
        self._ids = _map(ids, self.dtype)
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


def _part_files(folder: Path, part: str) -> tuple[Path, Path]:
    """Return the files of a part: where its documents start, and their ids."""
    return folder / f"{part}-documents.bin", folder / f"{part}-ids.bin"


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)  # the system cannot map an empty file
    # As a plain array: slices of a memmap object are several times slower to make.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


class CorpusLike(Protocol):
    """Documents, and a fingerprint of their content."""

    @property
    def fingerprint(self) -> str: ...

    def __iter__(self) -> Iterator[str]: ...


def store_corpus(
    corpus: CorpusLike,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    split: "CorpusSplit | None" = None,
) -> list[TokenStore]:
    """Open the store of a corpus, or make it; the corpus is read at most once.

    Several processes may ask for the same store: one makes it, the others wait and open it.

    Parameters
    ----------
    corpus : CorpusLike
    tokenizer : Tokenizer
    folder : Path
        The folder of all stores.
    split : CorpusSplit, optional
        Which documents are held out; `choose_split` makes it.

    Returns
    -------
    list of TokenStore
        The whole corpus; with a split, the documents to train on and those held out.
    """
    names = ["all"] if split is None else ["train", "held_out"]
    key = store_key(corpus, tokenizer, split)
    place, temporary = folder / key, folder / f"{key}.part"
    if stores := _open_parts(place, names):
        return stores
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{key}.lock"):
        if stores := _open_parts(place, names):  # another process has made it
            return stores
        for old in (temporary, place):
            shutil.rmtree(old, ignore_errors=True)
        for leftover in folder.glob("*.part"):  # of killed writers
            remove_store(leftover)
        try:
            temporary.mkdir()
            _write_store(corpus, tokenizer, split, temporary, names)
            temporary.replace(place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync(folder)
        return [TokenStore(place, name) for name in names]


def store_key(corpus: CorpusLike, tokenizer: Tokenizer, split: "CorpusSplit | None" = None) -> str:
    """Return the name of a store: another text, tokenizer or split gives another one."""
    parts = (str(FORMAT), corpus.fingerprint, tokenizer.fingerprint, str(split))
    return hash_of(*(part.encode() for part in parts))[:32]


def _open_parts(folder: Path, names: list[str]) -> list[TokenStore]:
    """Open every part; none where the store is missing or damaged."""
    try:
        stores = [TokenStore(folder, name) for name in names]
    except HeadstartError:
        return []
    mark_used(folder / MANIFEST)
    return stores


def _write_store(
    corpus: CorpusLike,
    tokenizer: Tokenizer,
    split: "CorpusSplit | None",
    folder: Path,
    names: list[str],
) -> None:
    paths = [_part_files(folder, name) for name in names]
    lengths = [array("Q") for _ in names]
    documents = corpus if split is None else split.documents(corpus)
    with ExitStack() as stack:
        files = [stack.enter_context(ids.open("wb")) for _, ids in paths]
        for batch, encoded in _encode_in_order(tokenizer, batched(documents)):
            for text, ids in zip(batch, encoded, strict=True):
                part = split is not None and split.holds_out(text)
                files[part].write(ids.tobytes())
                lengths[part].append(len(ids))
    for (index, _), counts in zip(paths, lengths, strict=True):
        starts = np.zeros(len(counts) + 1, dtype=INDEX_DTYPE)
        np.cumsum(counts, out=starts[1:])
        index.write_bytes(starts.tobytes())
    written = [path for both in paths for path in both]
    for path in written:
        sync(path)
    manifest = {
        "format": FORMAT,
        "dtype": tokenizer.dtype.str,
        "checksums": {path.name: _checksum(path) for path in written},
    }
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def _encode_in_order(
    tokenizer: Tokenizer, batches: Iterable[list[str]]
) -> Iterator[tuple[list[str], list[Tokens]]]:
    """Encode batches in threads, a few ahead of the writer, in the order of the corpus.

    Threads are enough: the libraries release the interpreter while they tokenize.
    """
    waiting: deque[tuple[list[str], Future[list[Tokens]]]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in batches:
            waiting.append((batch, pool.submit(tokenizer.encode_arrays, batch)))
            if len(waiting) > _THREADS:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()


def remove_store(folder: Path) -> bool:
    """Remove a store or a half-written one; return False where a process holds its lock."""
    lock = folder.with_name(f"{folder.name.removesuffix('.part')}.lock")
    try:
        with FileLock(lock, blocking=False):
            shutil.rmtree(folder, ignore_errors=True)
            return True
    except Timeout:
        return False


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
        If not 0, documents are cut into chunks of about this size or more, which are the
        documents of the split.
    """

    limit: int
    chunk_bytes: int = 0

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
            if self.chunk_bytes:
                yield from _cut(document, self.chunk_bytes)
            else:
                yield document


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


def _cut(document: str, min_bytes: int) -> Iterator[str]:
    """Cut a document into chunks of about equal length, at white space where there is some."""
    count = max(1, min(MAX_CHUNKS, len(_encode(document)) // min_bytes))
    step = len(document) // count
    start = 0
    for number in range(1, count):
        space = _SPACE.search(document, number * step, (number + 1) * step)
        end = space.end() if space else number * step
        yield document[start:end]
        start = end
    yield document[start:]


def _encode(document: str) -> bytes:
    return document.encode("utf-8", "surrogatepass")


def _hash(document: str) -> int:
    digest = hashlib.blake2b(_encode(document), digest_size=8).digest()
    return int.from_bytes(digest, "big")
