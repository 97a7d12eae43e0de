"""Where output goes and how it looks.

Results go to standard output. Messages, warnings and progress go to standard error, so that
`--json` leaves exactly one document on standard output.

Strings are printed literally: a label `[neg]` is not markup. Styles come from `styled`, whose
template may hold markup while its values may not. Control characters are printed as escapes.
"""

import json as json_module
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from string import Formatter
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed
ShowProgress = Callable[..., None]
_SECONDS_BETWEEN_LINES = 10.0  # of progress, where standard error is a file


def visible(text: str) -> str:
    """Return the text with its control characters as escapes.

    Example
    -------
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


def messages() -> Console:
    """Return the console for messages, warnings and progress; it takes no markup."""
    return _SafeConsole(stderr=True, highlight=False, markup=False, emoji=False)


class _Literal(Formatter):
    """Formats the values of a template so that markup in them has no meaning."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return escape(visible(format(value, format_spec)))


def styled(template: str, **values: Any) -> Text:
    """Fill a template that has Rich markup with values that are taken literally.

    Parameters
    ----------
    template : text with markup and with fields as in `str.format`: `"[bold]{run}[/]: {rows:,}"`.
    values : what is put into the fields; square brackets in them have no meaning.

    Example
    -------
    >>> styled("label [bold]{label}[/], {share:.0%}", label="[/]", share=0.5).plain
    'label [/], 50%'
    """
    return Text.from_markup(_Literal().vformat(template, (), values), emoji=False)


def note(text: str) -> Text:
    """Return a note, as it is printed before and after a training."""
    return styled("[yellow]note:[/] {text}", text=text)


def print_json(document: dict[str, Any]) -> None:
    """Print `document` as the only thing on standard output; NaN is not JSON and is rejected."""
    # Where the terminal's encoding is another, JSON's own escapes are read back as the characters.
    plain = not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    text = json_module.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False)
    sys.stdout.write(text + "\n")


def plain_table(*columns: str, **options: Any) -> Table:
    """Make a table without lines, with a dim header."""
    return Table(*columns, **{"box": None, "header_style": "dim", "pad_edge": False, **options})


def record_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Make a table of records.

    Parameters
    ----------
    rows : the records; a missing value is an empty cell.
    columns : the keys to show, with the format of each value; numbers are aligned to the right.
    """
    table = plain_table()
    for name, spec in columns.items():
        table.add_column(metric_name(name), justify="right" if spec else "left", overflow="fold")
    for row in rows:
        values = [(row.get(name), spec) for name, spec in columns.items()]
        table.add_row(*("" if value is None else format(value, spec) for value, spec in values))
    return table


def duration(seconds: float) -> str:
    """Write a time as people do: 42 s, 3 min 05 s, 1 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def metric_name(name: str) -> str:
    """Write a metric's name for people.

    Example
    -------
    >>> metric_name("macro_f1"), metric_name("exact_match")
    ('macro-F1', 'exact match')
    """
    return name.replace("_f1", "-F1").replace("f1", "F1").replace("_", " ")


def interval(metric: dict[str, float]) -> str:
    """Write a metric with its interval, in percent."""
    return "{value:.1%} ({low:.1%} to {high:.1%})".format(**metric)


@contextmanager
def progress_bar(
    what: str, unit: str, *, scale: float = 1, done_before: int = 0
) -> Iterator[ShowProgress]:
    """Yield a function of the amount done, of the total where known, and of more to show.

    Counts are divided by `scale` to be in `unit`s: bytes are shown as MB with a scale of 1e6.
    `done_before` counts as done, but not for the speed.
    """
    console = messages()
    if not console.is_terminal:
        yield _progress_lines(what, unit, scale, done_before)
        return
    from rich import progress

    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=16),
        progress.TextColumn("{task.fields[count]}"),
        progress.TimeRemainingColumn(compact=True),
        progress.TextColumn("left"),
    )
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, completed=done_before, count="")
        yield lambda done, total, more="": bar.update(
            task, completed=done, total=total, count=_count(done, total, unit, scale) + more
        )


def _count(done: int, total: int | None, unit: str, scale: float) -> str:
    of_total = "" if total is None else f" of {total / scale:,.0f}"
    return f"{done / scale:,.0f}{of_total} {unit}"


def _progress_lines(what: str, unit: str, scale: float, done_before: int) -> ShowProgress:
    start = last = time.monotonic()

    def show(done: int, total: int | None, more: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _SECONDS_BETWEEN_LINES or done <= done_before:
            return
        last = now
        line = f"{what}: {_count(done, total, unit, scale)}{more}, {now - start:.0f} s"
        if total:
            pace = (now - start) / (done - done_before)
            line += f", about {pace * max(0, total - done):.0f} s left"
        messages().print(line)

    return show


class Display:
    """Writes to standard error, one stage after another; leaving the `with` block ends it."""

    def __init__(self, unit: str = "MB", scale: float = 1e6) -> None:
        self.unit, self.scale = unit, scale
        self.console = messages()
        self._stage = ExitStack()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_stage()

    def stage(self, name: str) -> ShowProgress:
        """Begin a stage; the previous one ends."""
        self.end_stage()
        return self._stage.enter_context(progress_bar(name, self.unit, scale=self.scale))

    def begin_live(self, *, transient: bool = False) -> Live:
        """Begin a part of the terminal that is redrawn; the previous stage ends."""
        self.end_stage()
        self._live = Live(console=self.console, refresh_per_second=4, transient=transient)
        self._live.start()
        return self._live

    def end_stage(self) -> None:
        """End the bar or the live part."""
        self._stage.close()
        if self._live is not None:
            self._live.stop()
            self._live = None
