"""What the cache holds: token stores, tokenizers and PPMI-SVD vectors; their size and condition.

Everything here can be made again. `headstart doctor --cache` lists it, `--prune` removes what is
damaged or was not used.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError, safe_open

from headstart.data.token_store import DAY, MANIFEST, TokenStore, remove_store
from headstart.errors import HeadstartError

STORES, TOKENIZERS, VECTORS = "stores", "tokenizers", "cooccurrences"
State = Literal["whole", "damaged", "half-written"]


@dataclass(frozen=True)
class CacheEntry:
    """One file or store; `used` is the time of its last use, in seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float
    state: State

    @property
    def days(self) -> float:
        """Days since its last use."""
        return max(0.0, (time.time() - self.used) / DAY)


def list_cache(folder: Path) -> list[CacheEntry]:
    """Check every byte of the cache; return its entries, the last used first.

    Parameters
    ----------
    folder : Path
        The cache; it need not exist.
    """
    found = []
    for kind in (STORES, TOKENIZERS, VECTORS):
        for path in (folder / kind).glob("*"):
            if path.suffix not in (".lock", ".sha256"):  # these belong to another file
                files = [file for file in (path, *path.rglob("*")) if file.is_file()]
                size = sum(file.stat().st_size for file in files)
                used = max(file.stat().st_mtime for file in (files or [path]))
                found.append(CacheEntry(kind, path, size, used, _state(path, kind)))
    return sorted(found, key=lambda entry: -entry.used)


def prune_cache(folder: Path, *, days: float) -> list[CacheEntry]:
    """Remove what is damaged or half-written, and what was not used for `days` days.

    Returns
    -------
    list of CacheEntry
        What was removed. A store that another process is making stays.
    """
    removed = []
    for entry in list_cache(folder):
        if entry.state == "whole" and entry.days < days:
            continue
        if entry.path.is_dir():
            if remove_store(entry.path):
                removed.append(entry)
        elif entry.state != "half-written" or entry.days >= 1:  # a file has no lock
            entry.path.unlink(missing_ok=True)
            removed.append(entry)
    return removed


def _state(path: Path, kind: str) -> State:
    if path.name.endswith(".part"):
        return "half-written"
    try:
        if kind == STORES:
            manifest = json.loads((path / MANIFEST).read_bytes())
            for part in manifest["parts"]:
                TokenStore(path, part, full=True)
        elif kind == VECTORS:
            with safe_open(path, framework="np") as file:
                list(file.keys())
        else:
            json.loads(path.read_bytes())
    except (HeadstartError, SafetensorError, OSError, ValueError, TypeError, KeyError):
        return "damaged"
    except RecursionError:  # JSON of many levels
        return "damaged"
    return "whole"
