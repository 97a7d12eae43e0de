"""Write files atomically, lock folders, and find the cache."""

import errno
import json
import os
import re
import secrets
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from headstart.errors import HeadstartError, explain

CONFIG_FILE = "config.toml"  # of a run or study
LOCK = ".lock"
HOLDER = ".lock.json"  # a separate file, because each attempt to lock empties the lock file
# The folders inside a run or study in which it writes files.
INNER = ("tokenizer", "tables", "figures", "checkpoints", "jobs", "runs")
PART = ".headstart.part"  # the suffix of a file that is not complete yet
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.]+(e[+-]?\d+)?$)")  # numbers are not formulas


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; on success it takes `path`'s place in one step.

    A kill or a full disk leaves either the old file or the new one, never half of one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A long name must leave room for the rest.
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}{PART}")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # safetensors sets 0600, whatever the user's umask is
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except Exception as error:
        known = explain(error, where=path)
        if known is None or known is error:
            raise
        # The user knows the file by its name, not by the temporary one.
        where = path if known.where == str(temporary) else known.where
        raise HeadstartError(known.what, where=where, fix=known.fix, code=known.code) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` with `text` (UTF-8), atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: object) -> None:
    """Replace `path` with an indented JSON document, atomically."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def escape_formula(cell: str) -> str:
    """A cell of a CSV table as a spreadsheet shows it, never as a formula that it runs.

    >>> escape_formula("=1+1"), escape_formula("-0.5"), escape_formula("fine")
    ("'=1+1", '-0.5', 'fine')
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def check_file(path: Path) -> None:
    """Reject a file that cannot be written, before any work is done."""
    check_folder(path.parent, path)


def check_folder(folder: Path, file: Path | None = None) -> None:
    """Reject a folder for files that cannot be made or written to, before any work is done."""
    wanted = file or folder
    try:
        existing = next(one for one in (folder, *folder.absolute().parents) if one.exists())
        if not existing.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "", str(existing))
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "", str(existing))
        if wanted.parent.is_dir():
            wanted.exists()  # a name that is too long
        if file is not None and file.is_dir():
            raise IsADirectoryError(errno.EISDIR, "", str(file))
    except OSError as error:
        raise (explain(error, where=wanted) or error) from None


def sync(path: Path) -> None:
    """Force a file or a folder's entries to the disk, where the system can do so."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_run(folder: Path) -> bool:
    """Whether the folder holds a run or a study: it has a config."""
    return (folder / CONFIG_FILE).is_file()


@contextmanager
def locked(folder: Path, what: str = "run") -> Iterator[None]:
    """Hold the folder's lock, so that no second process writes into it.

    A second process gets a `HeadstartError` with the code "locked". In a run's folder, files that
    a killed process left incomplete are removed. The folder is made if it does not exist, and
    removed again if nothing was written into it.
    """
    from filelock import FileLock, Timeout

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
        holder = {"pid": os.getpid(), "host": socket.gethostname()}
        write_text(folder / HOLDER, json.dumps(holder) + "\n")
        _remove_leftovers(folder)
        yield
    finally:
        _remove_leftovers(folder)
        (folder / HOLDER).unlink(missing_ok=True)
        if made and [path.name for path in folder.iterdir()] in ([], [LOCK]):
            with suppress(OSError):  # another process that waits for the lock has made it again
                (folder / LOCK).unlink(missing_ok=True)
                folder.rmdir()
        lock.release()


def _remove_leftovers(folder: Path) -> None:
    """Remove incomplete files from a run's own folder; runs inside it have their own locks."""
    for place in (folder, *(folder / name for name in INNER)) if is_run(folder) else ():
        for path in place.glob(f".*{PART}"):
            path.unlink(missing_ok=True)


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return f"in process {int(holder['pid'])} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "in another process"


def cache_folder() -> Path:
    """`$HEADSTART_CACHE`, or `~/.cache/headstart`; all of its content can be made again."""
    given = os.environ.get("HEADSTART_CACHE")
    return Path(given).expanduser() if given else user_folder("cache")


def user_folder(kind: Literal["cache", "data"]) -> Path:
    """Return where a user's caches, or the data of programs, are kept for Headstart."""
    variable, usual = {
        "cache": ("XDG_CACHE_HOME", ".cache"),
        "data": ("XDG_DATA_HOME", ".local/share"),
    }[kind]
    return Path(os.environ.get(variable) or Path.home() / usual) / "headstart"


IDENTITY = "identity.json"  # fingerprints of what a run or study was started with
Form = Callable[[object], bool]  # whether a value is as it was written


def is_numbers(value: object) -> bool:
    """Numbers by name."""
    return isinstance(value, dict) and all(isinstance(v, int | float) for v in value.values())


def read_object(
    path: Path,
    *,
    fix: str,
    needs: Collection[str] = (),
    forms: Mapping[str, Form] | None = None,
    default: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Read a JSON object that Headstart wrote; a missing or damaged one is an error.

    `needs` are names that must be there, `forms` what values must be, by name, where they are
    there. With a `default`, a missing file is no error.
    """
    if default is not None and not path.is_file():
        return default
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if (
        not isinstance(content, dict)
        or not content.keys() >= set(needs)
        or not all(form(content[name]) for name, form in (forms or {}).items() if name in content)
    ):
        raise HeadstartError(f"{path.name} is missing or damaged", where=path, fix=fix)
    return content


def check_finished(study: Path) -> None:
    """Raise an error if a folder has the plan of a study, but not its results."""
    plan = study / "plan.json"
    if (study / "study.json").exists() or not plan.is_file():
        return
    if b'"budgets"' in plan.read_bytes():  # the plan of a run has no label budgets
        raise HeadstartError(
            "this study is not finished",
            where=study,
            fix=f"run the same `headstart compare … --out {study}` again: it resumes",
            code="unfinished",
        )


def installed_version() -> str:
    """The version of Headstart that is running."""
    try:
        return version("headstart")
    except PackageNotFoundError:  # run from its source, without an installation
        return "unknown"
