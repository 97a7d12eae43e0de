"""The token store: a corpus's ids on the disk, mapped into memory. `write_store.py` makes it.

A folder under its final name is complete. Its manifest holds a checksum for every megabyte; opening
a store checks its files' sizes and a sample of the checksums, all of them where the store is small.

A shard is nothing but little-endian ids, so that it can be mapped into memory. No document
reaches across two shards. Where the shards end depends on the documents alone, so the same corpus
always gives the same bytes.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headstart.errors import HeadstartError
from headstart.files import sync
from headstart.text.tokenizers.tokenizer import Tokens

DOCUMENTS_FILE = "documents.bin"
ENDS_DTYPE = np.dtype("<u8")
CHECKED_BLOCK = 1 << 20  # bytes that share a checksum


class ChecksummedFile:
    """A file with a checksum for every block, written while the file is, and synced at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._digest = xxhash.xxh3_64()
        self._checksums: list[str] = []
        self.bytes = 0

    def write(self, array: np.ndarray[Any, Any]) -> None:
        data = np.ascontiguousarray(array).view(np.uint8).data
        self._file.write(data)
        while len(data):
            part = data[: CHECKED_BLOCK - self.bytes % CHECKED_BLOCK]
            self._digest.update(part)
            self.bytes += len(part)
            data = data[len(part) :]
            if self.bytes % CHECKED_BLOCK == 0:
                self._end_block()

    def close(self) -> dict[str, Any]:
        """Sync the file and return its entry in the manifest."""
        if self.bytes % CHECKED_BLOCK:
            self._end_block()
        self._file.close()
        sync(self._path)
        return {"name": self._path.name, "bytes": self.bytes, "checksums": self._checksums}

    def abandon(self) -> None:
        """Close the file without finishing it."""
        self._file.close()

    def _end_block(self) -> None:
        self._checksums.append(self._digest.hexdigest())
        self._digest.reset()


class ShardWriter:
    """Writes documents, one after the other, into a folder."""

    def __init__(
        self, folder: Path, dtype: np.dtype[np.unsignedinteger], shard_tokens: int
    ) -> None:
        self._folder = folder
        self._dtype = dtype
        self._shard_tokens = shard_tokens
        self._ends = ChecksummedFile(folder / DOCUMENTS_FILE)
        self._ends.write(np.zeros(1, dtype=ENDS_DTYPE))
        self._shard = ChecksummedFile(folder / _shard_name(0))
        self._shards: list[dict[str, Any]] = []
        self.documents = 0
        self.tokens = 0

    def write(self, documents: Sequence[Tokens]) -> None:
        """Append documents."""
        if not documents:
            return
        lengths = np.array([len(document) for document in documents], dtype=ENDS_DTYPE)
        self._ends.write(self.tokens + np.cumsum(lengths, dtype=ENDS_DTYPE))
        self.documents += len(documents)
        self.tokens += int(lengths.sum())
        first = 0
        room = self._room()
        for number, length in enumerate(lengths.tolist()):
            if room <= 0:
                self._append(documents[first:number])
                self._next_shard()
                first, room = number, self._room()
            room -= length
        self._append(documents[first:])

    def close(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Bring everything to the disk; return the manifest's entries: shards, and documents."""
        self._shards.append(self._shard.close())
        return self._shards, self._ends.close()

    def abandon(self) -> None:
        """Let go of the files without finishing them."""
        self._shard.abandon()
        self._ends.abandon()

    def _room(self) -> int:
        return self._shard_tokens - self._shard.bytes // self._dtype.itemsize

    def _append(self, documents: Sequence[Tokens]) -> None:
        if documents:
            self._shard.write(np.concatenate(documents, dtype=self._dtype))

    def _next_shard(self) -> None:
        self._shards.append(self._shard.close())
        self._shard = ChecksummedFile(self._folder / _shard_name(len(self._shards)))


def map_array(path: Path, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The file as an array that stays on the disk until it is looked at."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)  # the system cannot map an empty file
    # As a plain array: slices of a memmap object are several times slower to make.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def block_checksum(path: Path, block: int) -> str:
    """The checksum of one block of a file, as `ChecksummedFile` computed it."""
    with path.open("rb") as file:
        file.seek(block * CHECKED_BLOCK)
        return xxhash.xxh3_64(file.read(CHECKED_BLOCK)).hexdigest()


def _shard_name(number: int) -> str:
    return f"tokens-{number:05d}.bin"


FORMAT = 2
MANIFEST = "manifest.json"
_COUNTED = 1 << 22  # ids at a time
_SAMPLE = 32  # megabytes that are read and checked when a store is opened


class TokenStore:
    """A finished store: documents of ids that stay on the disk until they are looked at.

    Parameters
    ----------
    folder : Path
        The store's folder. Missing or damaged files are an error.
    full : bool
        Check every byte, not only a sample of `_SAMPLE` megabytes.
    """

    def __init__(self, folder: Path, *, full: bool = False) -> None:
        self.folder = folder
        self.manifest = _read_manifest(folder, full=full)
        self.dtype: np.dtype[np.unsignedinteger] = np.dtype(self.manifest["dtype"])
        self.starts = map_array(folder / self.manifest["documents_file"]["name"], ENDS_DTYPE)
        self._shards = [map_array(folder / e["name"], self.dtype) for e in self.manifest["shards"]]
        self._counts: NDArray[np.int64] | None = None
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

    def counts(self, vocab_size: int) -> NDArray[np.int64]:
        """How often each id occurs: (vocab_size,)."""
        if self._counts is not None and len(self._counts) == vocab_size:
            return self._counts
        total = np.zeros(vocab_size, dtype=np.int64)
        for shard in self._shards:
            for start in range(0, len(shard), _COUNTED):
                total += np.bincount(shard[start : start + _COUNTED], minlength=vocab_size)
        self._counts = total
        return total


def _read_manifest(folder: Path, *, full: bool) -> dict[str, Any]:
    """The manifest of a store whose files are there and, as far as the sample tells, intact."""
    fix = "delete the folder; the store is made again when it is needed"
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = [manifest["documents_file"], *manifest["shards"]]
        whole = manifest["format"] == FORMAT and all(
            (folder / entry["name"]).stat().st_size == entry["bytes"] for entry in files
        )
        blocks = _sample(files, _SAMPLE if not full else None)
        np.dtype(manifest["dtype"])
        whole = whole and all(isinstance(manifest[name], int) for name in ("tokens", "documents"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise HeadstartError("this is not a finished token store", where=folder, fix=fix)
    for entry, block in blocks:
        if block_checksum(folder / entry["name"], block) != entry["checksums"][block]:
            raise HeadstartError(
                f"{entry['name']} is damaged: its checksum is not the manifest's",
                where=folder,
                fix=fix,
            )
    return manifest


def _sample(files: list[dict[str, Any]], most: int | None) -> list[tuple[dict[str, Any], int]]:
    """Up to `most` blocks, spread evenly over the files, the first and the last among them."""
    blocks = [(entry, block) for entry in files for block in range(len(entry["checksums"]))]
    if most is None or len(blocks) <= most:
        return blocks
    return [blocks[round(n * (len(blocks) - 1) / (most - 1))] for n in range(most)]
