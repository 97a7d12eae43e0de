"""The one exception that a user sees, and what errors of files and libraries mean.

A `HeadstartError` has the cause, the place, a fix and a code. `explain` turns errors of the system
and of libraries into one; what it does not know is a bug of ours.
"""

import errno
import importlib.util
import json
import re
import tomllib


class HeadstartError(Exception):
    """A problem that the user can solve: its cause, its place, what the user can do, and its code.

    The command line prints it without a traceback and ends with exit code 2. Programs should test
    `code`, not the text of the message.
    """

    def __init__(
        self, what: str, *, where: object = None, fix: str | None = None, code: str = "invalid"
    ) -> None:
        super().__init__(what)  # pickling adds the attributes
        self.what, self.fix, self.code = what, fix, code
        self.where = None if where is None else str(where)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  where: {self.where}")
        if self.fix is not None:
            lines.append(f"  fix:   {self.fix}")
        return "\n".join(lines)

    def document(self) -> dict[str, str | None]:
        """Return the error as plain values, for `--json` and HTTP."""
        return {"what": self.what, "where": self.where, "fix": self.fix, "code": self.code}


# What each error of the system means: cause, fix and code.
CAUSES = {
    errno.ENOSPC: ("the disk is full", "make room, or choose a place on another disk", "disk"),
    errno.EDQUOT: ("the disk is full for this user", "make room, or choose another disk", "disk"),
    errno.EFBIG: ("a file is too large for the limit here", "ulimit -f unlimited", "disk"),
    errno.EACCES: ("no permission", "change the permissions, or use another place", "permission"),
    errno.EPERM: ("no permission", "change the permissions, or use another place", "permission"),
    errno.EROFS: ("this disk is read-only", "choose a place on another disk", "permission"),
    errno.ENAMETOOLONG: ("the name is too long for this disk", "choose a shorter name", "path"),
    errno.ENOENT: ("there is no such file or folder", "check the spelling", "not-found"),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "choose another path", "path"),
    errno.EISDIR: ("this is a folder, and a file was expected", "name a file in it", "path"),
    errno.EEXIST: ("there is a file of this name already", "choose another name", "path"),
    errno.ELOOP: ("the symbolic links here form a loop", "name the file itself", "path"),
    errno.EMFILE: ("too many files are open", "raise the limit: ulimit -n 4096", "open-files"),
    errno.ENFILE: ("too many files are open", "close other programs", "open-files"),
    errno.EIO: ("the disk could not be read or written", "check the disk", "disk"),
    errno.ENOMEM: ("there is not enough memory", "close programs or use smaller sizes", "memory"),
}
# Codes of problems with a place on the disk, which another place would solve.
FILE_CODES = {"disk", "permission", "path", "not-found"}
# What other exceptions mean: types, cause, fix and code.
KINDS = (
    (
        RecursionError,
        "the data is nested too deeply: {text}",
        "look for many opening brackets",
        "damaged",
    ),
    (
        UnicodeError,
        "a text does not fit its encoding: {text}",
        "name it with --encoding",
        "encoding",
    ),
    (
        (json.JSONDecodeError, tomllib.TOMLDecodeError),
        "a file is damaged: {text}",
        "restore or delete it",
        "damaged",
    ),
)
MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "bad_alloc")
# Packages whose own exceptions are about the file that they were given.
LIBRARIES = {
    *("safetensors", "pyarrow", "tokenizers", "sentencepiece", "gzip", "zlib", "zipfile"),
    *("huggingface_hub", "datasets", "requests", "urllib3", "httpx", "filelock"),
}


def explain(error: BaseException, *, where: object = None) -> HeadstartError | None:
    """Convert an error of the system or of a library; `where` is its place if it names none.

    Returns `None` for a bug of Headstart, and for a reader that closed its pipe.

    >>> print(explain(OSError(28, "No space left on device"), where="runs/base"))
    the disk is full
      where: runs/base
      fix:   make room, or choose a place on another disk
    """
    if isinstance(error, HeadstartError):
        return error
    if isinstance(error, BrokenPipeError):
        return None
    if isinstance(error, OSError):
        place = error.filename2 or error.filename or where
        if isinstance(place, bytes):
            place = place.decode(errors="backslashreplace")
        if error.errno in CAUSES:
            return _known(error.errno, place)
        what = f"a file could not be used: {error.strerror or error or type(error).__name__}"
        return HeadstartError(what, where=place, fix="check this file or folder", code="disk")
    text = str(error) or type(error).__name__
    for types, what, fix, code in KINDS:
        if isinstance(error, types):
            return HeadstartError(what.format(text=text), where=where, fix=fix, code=code)
    allocating = isinstance(error, RuntimeError) and any(word in text.lower() for word in MEMORY)
    if isinstance(error, MemoryError) or allocating:
        return _known(errno.ENOMEM, where)
    if isinstance(error, RuntimeError) and "home directory" in text:
        what = "there is no home folder of that name"
        return HeadstartError(what, where=where, fix="write the whole path, without ~")
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    # Our code raises no plain Exception; libraries in Rust do, and they panic.
    rust = type(error) is Exception or type(error).__name__ == "PanicException"
    if not rust and not packages & LIBRARIES:
        return None
    number = re.search(r"os error (\d+)", text)
    if number is not None and int(number[1]) in CAUSES:
        return _known(int(number[1]), where)
    what = f"a library failed: {text}"
    return HeadstartError(what, where=where, fix="check the file that was being read")


def _known(number: int, place: object) -> HeadstartError:
    what, fix, code = CAUSES[number]
    return HeadstartError(what, where=place, fix=fix, code=code)


def need_packages(extra: str, *names: str) -> None:
    """Raise an error if a package of one of Headstart's extras is not installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise HeadstartError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            fix=f"pip install 'headstart[{extra}]'",
            code="missing-package",
        )
