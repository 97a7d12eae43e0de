"""The token store: a corpus's ids on the disk, mapped into memory, made once.

A store's folder is named by a key made of the corpus, the tokenizer and the settings, so asking a
second time finds it at once. It is written under a temporary name, brought to the disk and then
renamed: a folder under its final name is complete. What a killed process left behind is removed by
the next one.
"""

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from operator import length_hint
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout

from headstart.errors import HeadstartError
from headstart.files import sync, write_text
from headstart.progress import ProgressCallback
from headstart.text.store.shards import ENDS_DTYPE, ShardWriter, map_array, sha256_of
from headstart.text.tokenizers.tokenizer import Tokenizer, Tokens, hash_of

FORMAT = 1
MANIFEST = "manifest.json"
SHARD_TOKENS = 1 << 26  # 128 MB of two-byte ids
_BATCH_CHARACTERS = 1 << 19  # what is held in memory at a time
_BATCH_DOCUMENTS = 1 << 13
_THREADS = 2  # one tokenizes what is new while the other looks up what is known


class Corpus(Protocol):
    """What a store is made of: documents, and a name for their content."""

    @property
    def fingerprint(self) -> str: ...

    def __iter__(self) -> Iterator[str]: ...


class TokenStore:
    """A finished store: documents of ids that stay on the disk until they are looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = _read_manifest(folder)
        self.dtype: np.dtype[np.unsignedinteger] = np.dtype(self.manifest["dtype"])
        self.starts = map_array(folder / self.manifest["documents_file"]["name"], ENDS_DTYPE)
        self._shards = [map_array(folder / e["name"], self.dtype) for e in self.manifest["shards"]]
        self._shard_starts = np.cumsum([0, *map(len, self._shards)])

    @property
    def tokens(self) -> int:
        """How many tokens there are, without any specials."""
        return int(self.manifest["tokens"])

    def __len__(self) -> int:
        return int(self.manifest["documents"])

    def __getitem__(self, document: int) -> Tokens:
        if not 0 <= document < len(self):
            raise IndexError(f"document {document} of {len(self)}")
        return self.read(int(self.starts[document]), int(self.starts[document + 1]))

    def __iter__(self) -> Iterator[Tokens]:
        return map(self.__getitem__, range(len(self)))

    def read(self, start: int, stop: int) -> Tokens:
        """Tokens `start` to `stop` of one document, counted from the store's first token."""
        shard = int(np.searchsorted(self._shard_starts, start, side="right")) - 1
        shard = min(shard, len(self._shards) - 1)
        first = int(self._shard_starts[shard])
        return self._shards[shard][start - first : stop - first]

    def verify(self) -> None:
        """Read every byte and compare it with the manifest's checksums."""
        for entry in _files(self.manifest):
            if sha256_of(self.folder / entry["name"]) != entry["sha256"]:
                raise HeadstartError(
                    f"{entry['name']} is damaged: its checksum is not the manifest's",
                    where=self.folder,
                    fix="delete the folder; the store is made again when it is needed",
                )


def store_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    shard_tokens: int = SHARD_TOKENS,
    progress: ProgressCallback | None = None,
) -> TokenStore:
    """The store of `corpus` in `folder`: opened if it is there, made if it is not.

    `progress` is called with the documents stored so far and how many there are, where the corpus
    knows. A second process that wants the same store waits for the first and then opens it.
    """
    key = store_key(corpus, tokenizer, shard_tokens)
    finished = folder / key
    if _is_whole(finished):
        return TokenStore(finished)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"{key}.lock"):
        if not _is_whole(finished):
            temporary = folder / f"{key}.part"
            for leftover in (temporary, finished):
                shutil.rmtree(leftover, ignore_errors=True)
            _remove_leftovers(folder)
            try:
                _write(corpus, tokenizer, temporary, key, shard_tokens, progress)
                temporary.replace(finished)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            sync(folder)
    return TokenStore(finished)


def store_key(corpus: Corpus, tokenizer: Tokenizer, shard_tokens: int = SHARD_TOKENS) -> str:
    """The name of a store: another text, tokenizer or setting gives another one."""
    settings = json.dumps({"format": FORMAT, "shard_tokens": shard_tokens})
    parts = (corpus.fingerprint, tokenizer.fingerprint, settings)
    return hash_of(*(part.encode() for part in parts))[:32]


def _write(
    corpus: Corpus,
    tokenizer: Tokenizer,
    folder: Path,
    key: str,
    shard_tokens: int,
    progress: ProgressCallback | None,
) -> None:
    total = length_hint(corpus) or None
    folder.mkdir()
    writer = ShardWriter(folder, tokenizer.dtype, shard_tokens)
    try:
        for arrays in _in_order(tokenizer.encode_arrays, _batches(corpus)):
            writer.write(arrays)
            if progress is not None:
                progress(writer.documents, total)
        shards, documents_file = writer.close()
    finally:
        writer.abandon()
    manifest = {
        "format": FORMAT,
        "key": key,
        "corpus": corpus.fingerprint,
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


def _batches(documents: Iterable[str]) -> Iterator[list[str]]:
    """Documents in lists of about a megabyte."""
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


def _in_order(
    encode: Callable[[list[str]], list[Tokens]], batches: Iterator[list[str]]
) -> Iterator[list[Tokens]]:
    """Encode batches in threads, a few ahead of the writer; the order stays that of the corpus.

    Threads are enough: the libraries let go of the interpreter while they tokenize.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[list[Tokens]]] = deque()
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


def _files(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    return [manifest["documents_file"], *manifest["shards"]]


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not _is_whole(folder):
        raise HeadstartError(
            "this is not a finished token store",
            where=folder,
            fix="delete the folder; the store is made again when it is needed",
        )
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def _is_whole(folder: Path) -> bool:
    """Whether the manifest is there and every file has its size: cheap, unlike `verify`."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return manifest["format"] == FORMAT and all(
            (folder / entry["name"]).stat().st_size == entry["bytes"] for entry in _files(manifest)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
