"""Files and folders that Headstart writes: whole or absent, in known places."""

import errno
import json
import os
import secrets
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from headstart.errors import HeadstartError, explain

PART = ".headstart.part"  # how the name of a file ends that is not whole yet
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it takes `path`'s place in one step.

    A kill at any moment leaves either the old file or the new one, never half of one. A disk that
    is full keeps the old one, and nothing else is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    start = path.name[:40]  # a long name must leave room for the rest
    temporary = path.with_name(f".{start}.{secrets.token_hex(8)}{PART}")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # safetensors' 0600 would lock out the user's group
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except Exception as error:
        told = explain(error, where=path)
        if told is None or told is error:
            raise
        # The user knows the file by its name, not by the temporary one.
        where = path if told.where == str(temporary) else told.where
        raise HeadstartError(told.what, where=where, fix=told.fix, code=told.code) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the files that killed processes left half-written directly in a folder.

    Only for whoever knows that nobody else is writing there.
    """
    for path in folder.glob(f".*{PART}"):
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` with `text` (UTF-8), atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def escape_formula(cell: str) -> str:
    """A cell of a CSV table as a spreadsheet shows it, never as a formula that it runs.

    Example
    -------
    >>> escape_formula("=1+1"), escape_formula("-0.5"), escape_formula("fine")
    ("'=1+1", '-0.5', 'fine')
    """
    if not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
        return cell  # a number is one
    except ValueError:
        return f"'{cell}"


def check_file(path: Path) -> None:
    """Refuse, before any work, a file that could not be written."""
    check_folder(path.parent, path)
    if path.is_dir():
        raise HeadstartError(
            "this is a folder, and a file was expected",
            where=path,
            fix="name a file in it",
            code="path",
        )


def check_folder(folder: Path, file: Path | None = None) -> None:
    """Refuse, before any work, a folder that could not be made or written to, for a file in it."""
    wanted = file or folder
    try:
        existing = next(one for one in (folder, *folder.absolute().parents) if one.exists())
        if not existing.is_dir():
            raise HeadstartError(
                "this is a file, and a folder was expected"
                if existing == wanted
                else f"'{existing}' is a file, not a folder",
                where=wanted,
                fix="choose another path",
                code="path",
            )
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "", str(existing))
        if wanted.parent.is_dir():
            wanted.exists()  # a name that is too long
    except OSError as error:
        told = explain(error, where=wanted)
        raise (told or error) from None


def sync(path: Path) -> None:
    """Force a file or a folder's entries to the disk, where the system can do so."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """`$HEADSTART_CACHE`, or the place where this system keeps caches.

    It holds token stores, tokenizers and PPMI-SVD vectors. All of it can be made again.
    """
    if given := os.environ.get("HEADSTART_CACHE"):
        return Path(given).expanduser()
    return user_folder("cache")


def user_folder(kind: Literal["cache", "data"]) -> Path:
    """Return where this system keeps a user's caches, or the data of programs, for Headstart."""
    cache, home = kind == "cache", Path.home()
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local") / "headstart"
        return local / "Cache" if cache else local
    if sys.platform == "darwin":
        return home / "Library" / ("Caches" if cache else "Application Support") / "headstart"
    given = os.environ.get("XDG_CACHE_HOME" if cache else "XDG_DATA_HOME")
    return Path(given or home / (".cache" if cache else ".local/share")) / "headstart"


IDENTITY = "identity.json"  # fingerprints of what a run or study was started with
Form = Callable[[object], bool]  # whether a value is as it was written


def is_numbers(value: object) -> bool:
    """Numbers by name."""
    return isinstance(value, dict) and all(isinstance(v, int | float) for v in value.values())


def is_table(value: object) -> bool:
    """Rows of numbers by name."""
    return isinstance(value, list) and all(map(is_numbers, value))


def read_object(
    path: Path,
    *,
    fix: str,
    needs: Collection[str] = (),
    forms: Mapping[str, Form] | None = None,
    default: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Read a JSON object that Headstart wrote; one that is missing or damaged is said so.

    Parameters
    ----------
    path : the file.
    fix : what the user can do where it is damaged.
    needs : names that must be there.
    forms : what values must be, by name, where they are there.
    default : what is returned where there is no such file; by default that is an error.
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


def installed_version() -> str:
    """The version of Headstart that is running."""
    try:
        return version("headstart")
    except PackageNotFoundError:  # run from its source, without an installation
        return "unknown"
