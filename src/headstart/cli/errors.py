"""Turn whatever goes wrong into one message and an exit code.

2 is a problem that the user can solve, 1 a bug in Headstart, 130 a stop by the user.
"""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headstart.cli.console import messages, print_json, styled
from headstart.errors import FILE_CODES, HeadstartError, explain
from headstart.files import cache_folder

USER, BUG, STOPPED = 2, 1, 130
HINTS = {  # for commands that people look for under another name; Typer finds misspelled ones
    "explain": "headstart predict RUN TEXT --explain",
    "train": "headstart pretrain, or headstart finetune",
    "test": "headstart evaluate",
    "study": "headstart compare",
}


def run_guarded(command: Callable[[], Any]) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    command : does the work; if it returns an exit code, that is the result.
    """
    use_any_encoding()
    try:
        code = command()
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not after the end
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        messages().print("stopped")
        return STOPPED
    except BrokenPipeError:  # the reader has closed the pipe: headstart … | head
        _close_quietly()
        return BUG
    except SystemExit:
        raise
    except BaseException as error:  # a panic of a library in Rust is not an Exception
        return _report(error)


def use_any_encoding() -> None:
    """Print characters that the terminal's encoding lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a stream of a test or a notebook
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _report(error: BaseException) -> int:
    before_dashes = sys.argv[: sys.argv.index("--")] if "--" in sys.argv else sys.argv
    code, explained = USER, _usage_error(error) or explain(error)
    if explained is None:
        code, explained = BUG, _bug(error)
    elif explained.code in FILE_CODES and (explained.where or "").startswith(str(cache_folder())):
        explained.fix = "let HEADSTART_CACHE name a folder that can be written to and has room"
    try:
        if "--debug" in before_dashes:
            traceback.print_exception(error)
        print_error(explained)
        if "--json" in before_dashes:
            print_json({"error": explained.document()})
    except OSError:  # nothing can be written where the message should go
        _close_quietly()
    return code


def print_error(error: HeadstartError) -> None:
    """Print what is wrong, where, and how to fix it."""
    shown = styled("[bold red]error:[/] {what}", what=error.what)
    for word, value in (("where", error.where), ("fix", error.fix)):
        if value is not None:
            shown += styled("\n  [bold]{word}:[/] {value}", word=word, value=value)
    messages().print(shown, soft_wrap=True)


def _usage_error(error: BaseException) -> HeadstartError | None:
    """Return what the library that parses the arguments found, if it was that."""
    if not hasattr(error, "format_message"):
        return None
    path = getattr(getattr(error, "ctx", None), "command_path", "headstart")
    fix = HINTS.get("".join(sys.argv[1:2]), f"{path} --help lists the options")
    return HeadstartError(error.format_message(), fix=fix, code="usage")


def _bug(error: BaseException) -> HeadstartError:
    """Save the traceback of an error that nobody foresaw, and name the file."""
    text = "".join(traceback.format_exception(error))
    name = f"headstart-error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    place = cache_folder() / "errors" / name
    where: Path | None = place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        where = None
        sys.stderr.write(text)
    what = "".join(traceback.format_exception_only(error)).strip()
    return HeadstartError(
        f"this is a bug in Headstart: {what}",
        where=where,
        fix="please report it, with the file named above: it holds the traceback and no data of "
        "yours",
        code="bug",
    )


def _close_quietly() -> None:
    """Send what is left in the buffers of the standard streams nowhere."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
