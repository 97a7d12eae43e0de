"""Hashes of files, each computed once per process as long as the file stays the same."""

import time
from pathlib import Path
from typing import NamedTuple

import xxhash

from headstart.errors import HeadstartError
from headstart.text.reading.stream import BLOCK

# A file that was written this recently could change again without its time stamp telling:
# some file systems count in steps of two seconds. Its hash is not shared between objects.
_SETTLED = 2_000_000_000  # nanoseconds


class FileState(NamedTuple):
    """What changes when a file does, as far as the file system tells without reading it."""

    path: str
    size: int
    modified: int
    inode: int


_HASHES: dict[FileState, str] = {}


def file_state(path: Path) -> FileState:
    """The file as it is now."""
    found = path.stat()
    return FileState(str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ino)


def hash_file(path: Path) -> tuple[FileState, str]:
    """A file's state and the hash of its content, read unless it is known for this state."""
    state = file_state(path)
    if (known := _HASHES.get(state)) is not None:
        return state, known
    found = _hash_content(path)
    if file_state(path) != state:
        raise changed(path)
    if time.time_ns() - state.modified > _SETTLED:
        _HASHES[state] = found
    return state, found


class ContentHashes:
    """The hashes of a corpus's files, and whether the files are still those."""

    def __init__(self) -> None:
        self._found: dict[Path, tuple[FileState, str]] = {}

    def of(self, path: Path) -> str:
        """The hash of a file, computed at most once."""
        if path not in self._found:
            self._found[path] = hash_file(path)
        return self._found[path][1]

    def check_unchanged(self) -> None:
        """Raise if the content of a file is no longer what was hashed.

        Files that look the same from outside are not read again.
        """
        for path, (state, hashed) in self._found.items():
            try:
                if file_state(path) == state:
                    continue
                now = hash_file(path)
            except OSError:
                raise changed(path) from None
            if now[1] != hashed:
                raise changed(path)
            self._found[path] = now


def changed(where: object) -> HeadstartError:
    """The error for a corpus that was written to while it was read."""
    return HeadstartError(
        "the corpus changed while it was being read",
        where=where,
        fix="wait until nothing writes to it any more, then run the command again",
    )


def _hash_content(path: Path) -> str:
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            hashed.update(block)
    return hashed.hexdigest()
