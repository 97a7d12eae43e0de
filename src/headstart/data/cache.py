"""What the cache holds: token stores, tokenizers and PPMI-SVD vectors; their size and last use.

Everything here can be made again, and what is damaged is made again when it is needed. `headstart
doctor --cache` lists it, `--prune` removes what was not used.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from headstart.data.token_store import remove_store

DAY = 24 * 3600.0  # seconds


@dataclass(frozen=True)
class CacheEntry:
    """One file or store, with the days since its last use."""

    path: Path
    bytes: int
    days: float


def list_cache(folder: Path) -> list[CacheEntry]:
    """Return the entries of the cache, the last used first.

    Parameters
    ----------
    folder : Path
        The cache; it need not exist.
    """
    found = []
    for kind in ("stores", "tokenizers", "cooccurrences"):
        for path in (folder / kind).glob("*"):
            if path.suffix not in (".lock", ".sha256"):  # these belong to another file
                files = [file for file in (path, *path.rglob("*")) if file.is_file()]
                size = sum(file.stat().st_size for file in files)
                used = max(file.stat().st_mtime for file in (files or [path]))
                found.append(CacheEntry(path, size, max(0.0, (time.time() - used) / DAY)))
    return sorted(found, key=lambda entry: entry.days)


def prune_cache(folder: Path, *, days: float) -> list[CacheEntry]:
    """Remove what was not used for `days` days.

    Returns
    -------
    list of CacheEntry
        What was removed. A store that another process is making stays.
    """
    removed = []
    for entry in list_cache(folder):
        if entry.days < days:
            continue
        if not entry.path.is_dir():
            entry.path.unlink(missing_ok=True)
        elif not remove_store(entry.path):
            continue
        removed.append(entry)
    return removed
