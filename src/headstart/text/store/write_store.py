"""Make the token stores of a corpus: tokenized once, in one pass, whole or absent.

A store's folder is named by a key made of the corpus, the tokenizer and the settings, so asking a
second time finds it at once. It is written under a temporary name, brought to the disk and then
renamed. What a killed process left behind is removed by the next one, and a store that turns out to
be damaged is made again.
"""

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from operator import length_hint
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from headstart.errors import HeadstartError
from headstart.files import sync, write_text
from headstart.progress import ProgressCallback
from headstart.text.store.corpus_split import CorpusSplit
from headstart.text.store.token_store import FORMAT, MANIFEST, ShardWriter, TokenStore
from headstart.text.tokenizers.tokenizer import Tokenizer, Tokens, hash_of

SHARD_TOKENS = 1 << 26  # 128 MB of two-byte ids
_BATCH_CHARACTERS = 1 << 19  # what is held in memory at a time
_BATCH_DOCUMENTS = 1 << 13
_THREADS = 2  # one tokenizes what is new while the other looks up what is known

DocumentsOf = Callable[[Iterable[str]], Iterator[str]]
DocumentBatch = list[tuple[int, str]]  # documents, each with the number of its store


class CorpusLike(Protocol):
    """What a store is made of: documents, and a fingerprint of their content."""

    @property
    def fingerprint(self) -> str: ...

    def __iter__(self) -> Iterator[str]: ...


@dataclass(frozen=True)
class _Side:
    """The documents of a corpus that go into one store."""

    fingerprint: str
    takes: Callable[[str], bool]


def store_corpus(
    corpus: CorpusLike,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    shard_tokens: int = SHARD_TOKENS,
    progress: ProgressCallback | None = None,
) -> TokenStore:
    """The store of `corpus` in `folder`: opened if it is there, made if it is not.

    Several processes may need the same store at once: one makes it, the others wait and open it.

    Parameters
    ----------
    corpus : CorpusLike
    tokenizer : Tokenizer
    folder : Path
        Where stores are kept, each in a folder of its own.
    shard_tokens : int
        A new file begins after so many tokens.
    progress : callable, optional
        Called with the documents stored so far and how many there are, where the corpus knows.
    """
    side = _Side(corpus.fingerprint, lambda text: True)
    return _store(corpus, [side], tokenizer, folder, shard_tokens, progress)[0]


def store_corpus_split(
    corpus: CorpusLike,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    split: CorpusSplit,
    shard_tokens: int = SHARD_TOKENS,
    progress: ProgressCallback | None = None,
) -> tuple[TokenStore, TokenStore]:
    """Two stores from one pass over `corpus`: what is trained on, and what is held out.

    The side of a document depends on its text alone, so equal documents land on the same side and
    the split does not change with the order of the files. Parameters are those of `store_corpus`;
    `split` is made by `choose_split`.
    """
    key = f"{corpus.fingerprint}:{split}"
    sides = [
        _Side(f"{key}:kept", lambda text: not split.holds_out(text)),
        _Side(f"{key}:held out", split.holds_out),
    ]
    train, held_out = _store(
        corpus, sides, tokenizer, folder, shard_tokens, progress, documents=split.documents
    )
    return train, held_out


def store_key(fingerprint: str, tokenizer: Tokenizer, shard_tokens: int = SHARD_TOKENS) -> str:
    """The name of a store: another text, tokenizer or setting gives another one."""
    settings = json.dumps({"format": FORMAT, "shard_tokens": shard_tokens})
    parts = (fingerprint, tokenizer.fingerprint, settings)
    return hash_of(*(part.encode() for part in parts))[:32]


def _store(
    corpus: CorpusLike,
    sides: Sequence[_Side],
    tokenizer: Tokenizer,
    folder: Path,
    shard_tokens: int,
    progress: ProgressCallback | None,
    documents: DocumentsOf = iter,
) -> list[TokenStore]:
    by_key = {store_key(side.fingerprint, tokenizer, shard_tokens): side for side in sides}
    stores = {key: _open(folder / key) for key in by_key}
    if None in stores.values():
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            for key in sorted(by_key):  # always in this order: two processes never wait in a ring
                locks.enter_context(FileLock(folder / f"{key}.lock"))
            missing = {key: side for key, side in by_key.items() if _open(folder / key) is None}
            if missing:
                _make(corpus, missing, tokenizer, folder, shard_tokens, progress, documents)
    return [stores[key] or TokenStore(folder / key) for key in by_key]


def _open(folder: Path) -> TokenStore | None:
    """The store if it is there and intact."""
    try:
        return TokenStore(folder)
    except HeadstartError:
        return None


def _make(
    corpus: CorpusLike,
    sides: dict[str, _Side],
    tokenizer: Tokenizer,
    folder: Path,
    shard_tokens: int,
    progress: ProgressCallback | None,
    documents: DocumentsOf,
) -> None:
    temporaries = {key: folder / f"{key}.part" for key in sides}
    for key, temporary in temporaries.items():
        for leftover in (temporary, folder / key):
            shutil.rmtree(leftover, ignore_errors=True)
    _remove_leftovers(folder)
    try:
        total = length_hint(corpus) or None
        _write(documents(corpus), total, sides, tokenizer, temporaries, shard_tokens, progress)
        for key, temporary in temporaries.items():
            temporary.replace(folder / key)
    finally:
        for temporary in temporaries.values():
            shutil.rmtree(temporary, ignore_errors=True)
    sync(folder)


def _write(
    documents: Iterator[str],
    total: int | None,
    sides: dict[str, _Side],
    tokenizer: Tokenizer,
    folders: dict[str, Path],
    shard_tokens: int,
    progress: ProgressCallback | None,
) -> None:
    writers: list[ShardWriter] = []
    try:
        for folder in folders.values():
            folder.mkdir()
            writers.append(ShardWriter(folder, tokenizer.dtype, shard_tokens))

        def encode(batch: DocumentBatch) -> list[tuple[int, Tokens]]:
            arrays = tokenizer.encode_arrays([text for _, text in batch])
            return [(number, array) for (number, _), array in zip(batch, arrays, strict=True)]

        for encoded in _in_order(encode, _batches(documents, list(sides.values()))):
            for number, writer in enumerate(writers):
                writer.write([array for side, array in encoded if side == number])
            if progress is not None:
                progress(sum(writer.documents for writer in writers), total)
        for (key, side), folder, writer in zip(
            sides.items(), folders.values(), writers, strict=True
        ):
            shards, documents_file = writer.close()
            manifest = {
                "format": FORMAT,
                "key": key,
                "corpus": side.fingerprint,
                "tokenizer": tokenizer.fingerprint,
                "vocab_size": tokenizer.vocab_size,
                "dtype": tokenizer.dtype.str,
                "documents": writer.documents,
                "tokens": writer.tokens,
                "documents_file": documents_file,
                "shards": shards,
            }
            write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
            sync(folder)
    finally:
        for writer in writers:
            writer.abandon()


def _batches(documents: Iterable[str], sides: Sequence[_Side]) -> Iterator[DocumentBatch]:
    """The documents that a side takes, in lists of about a megabyte."""
    batch: DocumentBatch = []
    characters = 0
    for document in documents:
        number = next((n for n, side in enumerate(sides) if side.takes(document)), None)
        if number is None:
            continue
        batch.append((number, document))
        characters += len(document)
        if characters >= _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _in_order(
    encode: Callable[[DocumentBatch], list[tuple[int, Tokens]]], batches: Iterator[DocumentBatch]
) -> Iterator[list[tuple[int, Tokens]]]:
    """Encode batches in threads, a few ahead of the writer; the order stays that of the corpus.

    Threads are enough: the libraries let go of the interpreter while they tokenize.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[list[tuple[int, Tokens]]]] = deque()
        for batch in batches:
            waiting.append(pool.submit(encode, batch))
            if len(waiting) > _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _remove_leftovers(folder: Path) -> None:
    """Remove half-written stores whose writer is gone: nobody holds their lock."""
    for temporary in folder.glob("*.part"):
        try:
            with FileLock(temporary.with_suffix(".lock"), blocking=False):
                shutil.rmtree(temporary, ignore_errors=True)
        except Timeout:
            continue
