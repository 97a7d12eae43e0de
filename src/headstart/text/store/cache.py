"""What the cache holds: token stores, tokenizers and counted vectors; their size and condition.

Everything here can be made again. What has not been used for `UNUSED_DAYS` is removed when a new
store is made; `headstart doctor --cache` checks every byte of the rest, and `--prune` removes more.
"""

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from headstart.errors import HeadstartError
from headstart.text.store.token_store import MANIFEST, TokenStore

STORES, TOKENIZERS, VECTORS = "stores", "tokenizers", "cooccurrences"
BESIDE = (".lock", ".sha256")  # files that belong to another one
UNUSED_DAYS = 90
DAY = 24 * 3600.0
State = Literal["whole", "damaged", "half-written"]


@dataclass(frozen=True)
class Cached:
    """One thing in the cache; `used` is the time of its last use, in seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float
    state: State

    @property
    def days(self) -> float:
        """How long it has not been used."""
        return max(0.0, (time.time() - self.used) / DAY)


def look_at_cache(folder: Path) -> list[Cached]:
    """Everything in the cache, checked in full, the latest used first.

    Parameters
    ----------
    folder : the cache; it need not exist.
    """
    found = [_look_at(path, kind) for kind, path in _entries(folder)]
    return sorted(found, key=lambda one: -one.used)


def prune_cache(folder: Path, *, days: float) -> list[Cached]:
    """Remove what is damaged, what a killed process left, and what was not used for `days` days.

    Returns
    -------
    What was removed. A store that another process is making stays.
    """
    removed = []
    for one in look_at_cache(folder):
        # A half-written file has no lock: its writer may be at work.
        in_work = one.state == "half-written" and not one.path.is_dir() and one.days < 1
        useless = one.state != "whole" or one.days >= days
        if useless and not in_work and remove(one.path):
            removed.append(one)
    return removed


def remove_unused_stores(folder: Path, *, days: float = UNUSED_DAYS) -> None:
    """Remove stores that nobody has opened for `days` days. `folder` is that of the stores."""
    for path in folder.glob(f"*/{MANIFEST}"):
        if time.time() - path.stat().st_mtime > days * DAY:
            remove(path.parent)


def remove(path: Path) -> bool:
    """Remove a file or a store; false if another process holds the store's lock."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return True
    lock = path.with_name(f"{path.name.removesuffix('.part')}.lock")
    try:
        with FileLock(lock, blocking=False):
            shutil.rmtree(path, ignore_errors=True)
            return True
    except Timeout:
        return False


def _entries(folder: Path) -> list[tuple[str, Path]]:
    names = (STORES, TOKENIZERS, VECTORS)
    inside = ((kind, folder / kind) for kind in names)
    found = ((kind, path) for kind, place in inside if place.is_dir() for path in place.iterdir())
    return sorted((kind, path) for kind, path in found if path.suffix not in BESIDE)


def _look_at(path: Path, kind: str) -> Cached:
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    used = max((file.stat().st_mtime for file in files), default=path.stat().st_mtime)
    return Cached(kind, path, size, used, _state(path, kind))


def _state(path: Path, kind: str) -> State:
    if path.name.endswith(".part"):
        return "half-written"
    try:
        if kind == STORES:
            TokenStore(path, full=True)
        elif kind == VECTORS:
            with safe_open(path, framework="np") as file:
                list(file.keys())
        else:
            json.loads(path.read_bytes())
    except (HeadstartError, SafetensorError, OSError, ValueError, RecursionError):
        return "damaged"
    return "whole"
