"""The token store: a corpus's ids on the disk, mapped into memory. `write_store.py` makes it.

A folder under its final name is complete. Its manifest holds a checksum for every megabyte; opening
a store checks its files' sizes and a sample of the checksums, all of them where the store is small.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import HeadstartError
from headstart.text.store.shards import ENDS_DTYPE, block_checksum, map_array
from headstart.text.tokenizers.tokenizer import Tokens

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
    """

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

    def counts(self, vocab_size: int) -> NDArray[np.int64]:
        """How often each id occurs: (vocab_size,)."""
        total = np.zeros(vocab_size, dtype=np.int64)
        for shard in self._shards:
            for start in range(0, len(shard), _COUNTED):
                total += np.bincount(shard[start : start + _COUNTED], minlength=vocab_size)
        return total


def _read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store whose files are there and, as far as the sample tells, intact."""
    fix = "delete the folder; the store is made again when it is needed"
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = [manifest["documents_file"], *manifest["shards"]]
        whole = manifest["format"] == FORMAT and all(
            (folder / entry["name"]).stat().st_size == entry["bytes"] for entry in files
        )
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise HeadstartError("this is not a finished token store", where=folder, fix=fix)
    for entry, block in _sample(files):
        if block_checksum(folder / entry["name"], block) != entry["checksums"][block]:
            raise HeadstartError(
                f"{entry['name']} is damaged: its checksum is not the manifest's",
                where=folder,
                fix=fix,
            )
    return manifest


def _sample(files: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Up to `_SAMPLE` blocks, spread evenly over the files, the first and the last among them."""
    blocks = [(entry, block) for entry in files for block in range(len(entry["checksums"]))]
    if len(blocks) <= _SAMPLE:
        return blocks
    return [blocks[round(n * (len(blocks) - 1) / (_SAMPLE - 1))] for n in range(_SAMPLE)]
