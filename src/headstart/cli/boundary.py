"""The boundary: whatever goes wrong below, the user gets one message and an exit code.

2 is a problem that the user can solve, 1 a bug of ours, 130 a stop by the user.
"""

import contextlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headstart.cli.output import error_document, messages, print_error, print_json
from headstart.errors import HeadstartError
from headstart.explain_errors import FILE_CODES, explain
from headstart.files import cache_folder

USER, BUG, STOPPED = 2, 1, 130
CACHE = "let HEADSTART_CACHE name a folder that can be written to and has room"
REPORT = "please report it, with the file named above: it holds the traceback and no data of yours"


def run_guarded(command: Callable[[], Any]) -> int:
    """Run the command line; returns the exit code.

    Parameters
    ----------
    command : does the work; an exit code that it returns is kept.
    """
    use_any_encoding()
    try:
        code = command()
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not after the end
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        messages().print("stopped")
        return STOPPED
    except BrokenPipeError:
        # The reader has closed the pipe (`headstart … | head`): nothing more can be printed.
        _close_quietly()
        return BUG
    except SystemExit:
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        return _tell(error)


def use_any_encoding() -> None:
    """Let what the terminal's encoding lacks be printed as an escape, not end the program."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a stream of a test or a notebook
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _tell(error: BaseException) -> int:
    before_dashes = sys.argv[: sys.argv.index("--")] if "--" in sys.argv else sys.argv
    code, told = USER, _usage(error) or explain(error)
    if told is None:
        code, told = BUG, _bug(error)
    elif told.code in FILE_CODES and _in_cache(told.where):
        told = HeadstartError(told.what, where=told.where, fix=CACHE, code=told.code)
    try:
        if "--debug" in before_dashes:
            traceback.print_exception(error)
        print_error(told)
        if "--json" in before_dashes:
            print_json(error_document(told))
            sys.stdout.flush()
    except OSError:  # where the message should go, nothing can be written either
        _close_quietly()
    return code


def _in_cache(where: str | None) -> bool:
    return where is not None and where.startswith(str(cache_folder()))


def _usage(error: BaseException) -> HeadstartError | None:
    """What is wrong with the arguments, from the library that reads them."""
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    context = getattr(error, "ctx", None)
    path = "headstart" if context is None else context.command_path
    path = path.replace("python -m headstart", "headstart")
    fix = f"{path} --help shows what it takes"
    return HeadstartError(message(), fix=fix, code="usage")


def _bug(error: BaseException) -> HeadstartError:
    """An error that nobody foresaw; its traceback is kept in a file."""
    text = "".join(traceback.format_exception(error))
    name = f"headstart-error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    place: Path | None = None
    for folder in (cache_folder() / "errors", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
            place = folder / name
            break
        except OSError:
            continue
    if place is None:
        sys.stderr.write(text)
    what = "".join(traceback.format_exception_only(error)).strip()
    message = f"this is a bug in Headstart: {what}"
    return HeadstartError(message, where=place, fix=REPORT, code="bug")


def _close_quietly() -> None:
    """Nothing can be printed any more: let the end of the program not try to."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
