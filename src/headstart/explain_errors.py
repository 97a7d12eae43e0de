"""Errors from outside our code: files, disks, memory, encodings and libraries, in plain words.

`explain` turns such an error into a `HeadstartError` with the cause, the place and a fix. What it
does not know is a bug of ours.
"""

import errno
import json
import re
import tomllib

from headstart.errors import HeadstartError

# What each error of the system means: cause, fix and code.
CAUSES = {
    errno.ENOSPC: ("the disk is full", "make room, or choose a place on another disk", "disk"),
    errno.EDQUOT: ("the disk is full for this user", "make room, or choose another disk", "disk"),
    errno.EFBIG: (
        "a file may not become that large here",
        "raise the limit: ulimit -f unlimited",
        "disk",
    ),
    errno.EACCES: (
        "no permission",
        "change the permissions, or choose another place",
        "permission",
    ),
    errno.EPERM: ("no permission", "change the permissions, or choose another place", "permission"),
    errno.EROFS: ("this disk can only be read", "choose a place on another disk", "permission"),
    errno.ENAMETOOLONG: ("the name is too long for this disk", "choose a shorter name", "path"),
    errno.ENOENT: ("there is no such file or folder", "check the spelling", "not-found"),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "choose another path", "path"),
    errno.EISDIR: ("this is a folder, and a file was expected", "name a file in it", "path"),
    errno.EEXIST: ("there is a file of this name already", "choose another name", "path"),
    errno.ELOOP: ("the links here lead in a circle", "name the file itself", "path"),
    errno.EMFILE: ("too many files are open", "raise the limit: ulimit -n 4096", "open-files"),
    errno.ENFILE: ("too many files are open", "close other programs", "open-files"),
    errno.EIO: ("the disk could not be read or written", "check the disk", "disk"),
    errno.ENOMEM: (
        "there is not enough memory",
        "close other programs, or use smaller sizes",
        "memory",
    ),
}
# Codes of what is wrong with a place on the disk, which another place would solve.
FILE_CODES = frozenset(code for *_, code in CAUSES.values()) - {"memory", "open-files"}
MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "bad_alloc")
# Packages whose own exceptions are about the file that they were given.
LIBRARIES: tuple[str, ...] = (
    *("safetensors", "pyarrow", "tokenizers", "sentencepiece", "gzip", "zlib", "zipfile"),
    *("huggingface_hub", "datasets", "requests", "urllib3", "httpx", "filelock"),
)
PARSERS = (json.JSONDecodeError, tomllib.TOMLDecodeError)


def explain(error: BaseException, *, where: object = None) -> HeadstartError | None:
    """Say in plain words what an error from outside means.

    Parameters
    ----------
    error : what was raised.
    where : the place, in case the error does not name one itself.

    Returns
    -------
    The error for the user; `None` for a bug of ours, and for a reader that closed its pipe.

    Example
    -------
    >>> print(explain(OSError(28, "No space left on device"), where="runs/base"))
    the disk is full
      where: runs/base
      fix:   make room, or choose a place on another disk
    """
    if isinstance(error, HeadstartError):
        return error
    text = str(error)
    if isinstance(error, BrokenPipeError):
        return None
    if isinstance(error, OSError):
        return _file_error(error, where)
    allocating = isinstance(error, RuntimeError) and any(w in text.lower() for w in MEMORY)
    if isinstance(error, MemoryError) or allocating:
        return _known(errno.ENOMEM, where)
    if isinstance(error, RecursionError):
        what = "the data is nested too deeply to be read"
        fix = "look for thousands of opening brackets"
        return HeadstartError(what, where=where, fix=fix, code="damaged")
    if isinstance(error, UnicodeError):
        what = f"a text does not fit its encoding: {error}"
        fix = "name the encoding with --encoding, or use UTF-8"
        return HeadstartError(what, where=where, fix=fix, code="encoding")
    if isinstance(error, PARSERS):
        what = f"a file is damaged: {error}"
        return HeadstartError(what, where=where, fix="restore or delete it", code="damaged")
    if isinstance(error, RuntimeError) and "home directory" in text:
        return HeadstartError(
            "there is no home folder of that name", where=where, fix="write the path out, without ~"
        )
    return _library_error(error, text, where)


def _file_error(error: OSError, where: object) -> HeadstartError:
    named = error.filename2 or error.filename
    place = where if named is None else named
    if isinstance(place, bytes):
        place = place.decode(errors="backslashreplace")
    if error.errno in CAUSES:
        return _known(error.errno, place)
    what = error.strerror or str(error) or type(error).__name__
    what = f"a file could not be used: {what}"
    return HeadstartError(what, where=place, fix="check that place", code="disk")


def _known(number: int, place: object) -> HeadstartError:
    what, fix, code = CAUSES[number]
    return HeadstartError(what, where=place, fix=fix, code=code)


def _library_error(error: BaseException, text: str, where: object) -> HeadstartError | None:
    kinds = [kind.__module__.partition(".")[0] for kind in type(error).__mro__]
    panic = type(error).__name__ == "PanicException"  # of a library in Rust
    # Our code raises no plain Exception; libraries in Rust do.
    if not panic and type(error) is not Exception and not any(kind in LIBRARIES for kind in kinds):
        return None
    number = re.search(r"os error (\d+)", text)
    if number is not None and int(number[1]) in CAUSES:
        return _known(int(number[1]), where)
    what = text or type(error).__name__
    if panic:
        what = f"a library failed: {what}"
    return HeadstartError(what, where=where, fix="check the file that this is about")
