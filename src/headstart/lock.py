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

from headstart.config import is_run
from headstart.errors import HeadstartError
from headstart.files import check_folder, remove_leftovers, write_text

LOCK = ".lock"
HOLDER = ".lock.json"  # beside it, because whoever tries to lock empties the lock's own file

# The folders inside a run or study in which it writes files.
INNER = ("tokenizer", "tables", "figures", "checkpoints", "jobs", "runs")


@contextmanager
def locked(folder: Path, what: str = "run") -> Iterator[None]:
    """Hold the folder's lock, so that no second process writes into it.

    A second process gets a `HeadstartError` with the code "locked". In a run's folder, files that
    a killed process left half-written are removed.

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
    except (Timeout, FileNotFoundError, FileExistsError):  # held, or being removed just now
        raise HeadstartError(
            f"this {what} is running already, {_holder(folder)}",
            where=folder,
            fix="wait for it or stop it, or choose another --out",
            code="locked",
        ) from None
    try:
        write_text(
            folder / HOLDER, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}) + "\n"
        )
        _clear(folder)
        yield
    finally:
        _clear(folder)
        (folder / HOLDER).unlink(missing_ok=True)
        if made and [path.name for path in folder.iterdir()] in ([], [LOCK]):
            _remove(folder)
        lock.release()


def _remove(folder: Path) -> None:
    """Remove a folder whose lock is held.

    It gets another name first: whoever comes meanwhile finds either no folder, or the file of
    this lock, which `FileLock` does not take once it is gone.
    """
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    with contextlib.suppress(OSError):
        folder.rename(aside)
        shutil.rmtree(aside)


def _clear(folder: Path) -> None:
    """Remove what a killed process left half-written in a run's or study's own folder.

    Runs inside it are not touched: they have locks of their own, and may be at work.
    """
    if not is_run(folder):
        return
    for place in (folder, *(folder / name for name in INNER)):
        remove_leftovers(place)


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"in process {int(holder['pid'])} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "in another process"
