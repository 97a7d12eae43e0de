"""Where output goes, how it looks, how progress is shown, and how errors end.

Results go to standard output. Messages, warnings and progress go to standard error, so that
`--json` leaves exactly one document on standard output. Strings are printed literally, except for
templates (`styled`), and control characters as escapes.

Exit codes: 2 is a problem that the user can solve, 1 a bug in Headstart, 130 a stop by the user.
"""

import json
import os
import re
import shlex
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from string import Formatter
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from headstart.errors import FILE_CODES, HeadstartError, explain
from headstart.files import cache_folder

USER, BUG, STOPPED = 2, 1, 130
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def visible(text: str) -> str:
    """Return the text with its control characters as escapes.

    >>> print(visible("\\x1b[31mred"))
    \\x1b[31mred
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _SafeConsole(Console):
    """Sends no control characters but Rich's."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            harmless = segment.control or not _CONTROL.search(segment.text)
            yield segment if harmless else Segment(visible(segment.text), segment.style)


def results() -> Console:
    """Return the console for results; it takes no markup."""
    return _SafeConsole(highlight=False, markup=False, emoji=False)


@cache
def messages() -> Console:
    """Return the one console for messages and progress, so that messages appear above the bar."""
    return _SafeConsole(stderr=True, highlight=False, markup=False, emoji=False)


class _Literal(Formatter):
    """Formats the values of a template so that markup in them has no meaning."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return escape(visible(format(value, format_spec)))


def styled(template: str, **values: Any) -> Text:
    """Fill a template that has Rich markup with values that are taken literally.

    >>> styled("label [bold]{label}[/], {share:.0%}", label="[/]", share=0.5).plain
    'label [/], 50%'
    """
    return Text.from_markup(_Literal().vformat(template, (), values), emoji=False)


def write(template: str, **values: Any) -> None:
    """Print a line of the result: a template as in `styled`, which the terminal wraps."""
    results().print(styled(template, **values), soft_wrap=True)


def show(*parts: RenderableType) -> None:
    """Print tables of the result; an empty text is an empty line."""
    results().print(*parts)


def message(template: str, **values: Any) -> None:
    """Print a message on standard error: a template as in `styled`."""
    messages().print(styled(template, **values), soft_wrap=True)


def note(text: str) -> None:
    """Print a note for the user on standard error."""
    message("[yellow]note:[/] {text}", text=text)


def print_json(document: dict[str, Any]) -> None:
    """Print `document` as the only thing on standard output; NaN is not JSON and is rejected."""
    # Where the terminal's encoding is another, JSON's own escapes are read back as the characters.
    plain = not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False) + "\n")
    sys.stdout.flush()


def print_result(
    document: dict[str, Any], show: Callable[[dict[str, Any]], None] | str, *, json: bool
) -> None:
    """Print what a command found, as JSON or with `show`, which may be a template for `styled`."""
    if json:
        print_json(document)
    elif isinstance(show, str):
        write(show, **document)
    else:
        show(document)


def record_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Make a table of records; columns are the keys to show, with the format of their values.

    A missing value is an empty cell, a text is shown as it is; numbers are aligned to the right.
    """
    table = Table(
        box=None, header_style="dim", pad_edge=False, show_header=any(map(str.strip, columns))
    )
    for name, spec in columns.items():
        # Long names are folded, not truncated: two of them may differ at their ends only.
        table.add_column(name, justify="right" if spec else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name), spec) for name, spec in columns.items()))
    return table


def _cell(value: Any, spec: str) -> str | Text:
    if value is None or isinstance(value, str | Text):
        return value or ""
    return format(value, spec)


def facts_table(facts: Mapping[str, Mapping[str, Any]], corner: str = "") -> Table:
    """Make a table with a column per mapping and a row per key; the first mapping has all keys."""
    keys = next(iter(facts.values()), {})
    rows = [{corner: key} | {name: facts[name].get(key) for name in facts} for key in keys]
    return record_table(rows, {corner: "", **dict.fromkeys(facts, ",")})


def program() -> str:
    """Return what the user types to run Headstart: `headstart`, where it is on the PATH."""
    is_module = sys.argv[0].endswith(("__main__.py", "-c"))
    typed = "python -m headstart" if is_module else shlex.quote(sys.argv[0])
    return "headstart" if shutil.which("headstart") else typed


def duration(seconds: float) -> str:
    """Write a time as hours, minutes and seconds: 0:03:05."""
    return str(timedelta(seconds=round(seconds)))


def shortened(text: str, length: int = 160) -> str:
    """Write the beginning of a text in one line, with invisible characters as escapes.

    >>> shortened("two\\nlines"), shortened("cut", 2)
    ('two lines', 'cu…')
    """
    shown = text[:length].replace("\n", " ") + "…" * (len(text) > length)
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)


def interval(metric: dict[str, float]) -> str:
    """Write a metric with its interval, in percent."""
    return "{value:.1%} ({low:.1%} to {high:.1%})".format(**metric)


class Display:
    """Shows a progress bar for one stage after another.

    What is printed meanwhile appears above the bar. Leaving the `with` block ends the last stage.
    Where standard error is not a terminal, a line per stage is printed, and one per minute.

    >>> with Display() as display:
    ...     show = display.stage("reading")
    ...     show(10, 200)
    """

    def __init__(self) -> None:
        from rich import progress

        class TimeLeft(progress.ProgressColumn):
            """The time left, where it is known."""

            def render(self, task: progress.Task) -> Text:
                seconds = task.fields["seconds"] or task.time_remaining
                return Text("" if seconds is None else f"{duration(seconds)} left")

        self.name = ""  # of the stage
        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=16),
            progress.TaskProgressColumn(),
            TimeLeft(),
            progress.TextColumn("{task.fields[more]}", markup=False),
            console=messages(),
            speed_estimate_period=600,  # seconds: a training of a study takes minutes
            transient=True,
            disable=not messages().is_terminal,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_stage()

    def stage(self, name: str, done: int = 0) -> Callable[..., None]:
        """Begin a stage; the previous one ends.

        `done` is what an earlier session has done, which says nothing about the speed. Returns a
        function of the amount done, of the total or `None`, of more to show, and of the seconds
        left, by default estimated.
        """
        self.end_stage()
        self.name, self._printed = name, float("-inf")
        task = self._bar.add_task(name, total=None, completed=done, more="", seconds=None)
        self._bar.start()

        def show(
            done: int, total: int | None, more: str = "", seconds: float | None = None
        ) -> None:
            if task in self._bar.task_ids:  # the stage goes on
                self._bar.update(task, completed=done, total=total, more=more, seconds=seconds)
                if self._bar.disable and time.monotonic() - self._printed >= 60:
                    self._printed = time.monotonic()
                    message(
                        "{name} {share}{more}",
                        name=name,
                        share=f"{done / total:.0%}" if total else "…",
                        more=more,
                    )

        show(done, None)
        return show

    def end_stage(self) -> None:
        """End the stage; its bar disappears."""
        self._bar.stop()
        for task in self._bar.task_ids:
            self._bar.remove_task(task)


def run_guarded(command: Callable[[], Any]) -> int:
    """Run the command line and return its exit code; whatever goes wrong is one message."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # a stream of a test or a notebook
            # Characters that the terminal's encoding lacks are printed as escapes.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = command()
        sys.stdout.flush()  # a full disk or a closed pipe shows here, not after the end
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        message("stopped")
        return STOPPED
    except BrokenPipeError:  # the reader has closed the pipe: headstart … | head
        _close_quietly()
        return BUG
    except SystemExit:
        raise
    except BaseException as error:  # a panic of a library in Rust is not an Exception
        return _report(error)


def _report(error: BaseException) -> int:
    """Print what is wrong, where, and how to fix it; of a bug also the traceback."""
    before_dashes = sys.argv[: sys.argv.index("--")] if "--" in sys.argv else sys.argv
    found = explain(error)
    if hasattr(error, "format_message"):  # of the library that parses the arguments
        command = getattr(getattr(error, "ctx", None), "command_path", "headstart")
        found = HeadstartError(
            error.format_message(), fix=f"{command} --help lists the options", code="usage"
        )
    bug = found is None
    if found is None:
        found = HeadstartError(
            f"this is a bug in Headstart: {type(error).__name__}: {error}",
            fix="please report it, with the lines above",
            code="bug",
        )
    elif found.code in FILE_CODES and (found.where or "").startswith(str(cache_folder())):
        found.fix = "let HEADSTART_CACHE name a folder that can be written to and has room"
    try:
        if bug or "--debug" in before_dashes:
            traceback.print_exception(error)
        message("[bold red]error:[/] {what}", what=found.what)
        for name, value in (("where", found.where), ("fix", found.fix)):
            if value is not None:
                message("  [bold]{name}:[/] {value}", name=name, value=value)
        if "--json" in before_dashes:
            print_json({"error": found.document()})
    except OSError:  # nothing can be written where the message should go
        _close_quietly()
    return BUG if bug else USER


def _close_quietly() -> None:
    """Discard what is left in the buffers of the standard streams."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
