"""The lock of a run or study folder: one process at a time, and the second is told who has it."""

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from headstart.errors import HeadstartError
from headstart.files import check_folder, write_text

LOCK = ".lock"
HOLDER = ".lock.json"  # beside it, because whoever tries to lock empties the lock's own file


class LockedError(HeadstartError):
    """Another process works in the folder."""


@contextmanager
def locked(folder: Path, what: str = "run") -> Iterator[None]:
    """Hold the folder's lock, so that no second process writes into it.

    Parameters
    ----------
    folder : made where it does not exist, and removed again where nothing was written into it.
    what : the word for it in messages.
    """
    check_folder(folder)
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(
            f"this {what} is running already, {_holder(folder)}",
            where=folder,
            fix="wait for it or stop it, or choose another --out",
        ) from None
    try:
        write_text(
            folder / HOLDER, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}) + "\n"
        )
        _remove_leftovers(folder)
        yield
    finally:
        (folder / HOLDER).unlink(missing_ok=True)
        lock.release()
        if made and [path.name for path in folder.iterdir()] in ([], [LOCK]):
            with contextlib.suppress(OSError):
                (folder / LOCK).unlink(missing_ok=True)
                folder.rmdir()


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed process had half written. Nobody else writes here: we hold the lock."""
    for path in folder.rglob(".*.part"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"in process {int(holder['pid'])} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "in another process"
