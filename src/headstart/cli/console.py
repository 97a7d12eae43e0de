"""Where output goes and how it looks.

Results go to standard output. Messages, warnings and progress go to standard error, so that
`--json` leaves exactly one document on standard output.

Strings are printed literally: a label `[neg]` is not markup. Styles come from `styled`, whose
template may hold markup while its values may not. Control characters are printed as escapes.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from string import Formatter
from typing import Any, Self

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
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


@cache
def messages() -> Console:
    """Return the console for messages, warnings and progress; it takes no markup.

    There is one: what is printed while a progress bar is shown appears above the bar.
    """
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


def write(template: str, **values: Any) -> None:
    """Print a line of the result: a template as in `styled`, which the terminal wraps."""
    results().print(styled(template, **values), soft_wrap=True)


def note(text: str) -> None:
    """Print a note for the user on standard error."""
    messages().print(styled("[yellow]note:[/] {text}", text=text), soft_wrap=True)


def print_json(document: dict[str, Any]) -> None:
    """Print `document` as the only thing on standard output; NaN is not JSON and is rejected."""
    # Where the terminal's encoding is another, JSON's own escapes are read back as the characters.
    plain = not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    text = json.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def record_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Make a table of records.

    Parameters
    ----------
    rows : the records; a missing value is an empty cell, a text is shown as it is.
    columns : the keys to show, with the format of each value; numbers are aligned to the right.
    """
    header = any(map(str.strip, columns))
    table = Table(box=None, header_style="dim", pad_edge=False, show_header=header)
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


def print_sections(sections: Mapping[str, Sequence[RenderableType]]) -> None:
    """Print titles, each with its lines and tables; a section without any is skipped."""
    for title, body in sections.items():
        if body:
            results().print(Text(title, style="bold"))
            results().print(Padding(Group(*body), (0, 0, 1, 2)))


def duration(seconds: float) -> str:
    """Write a time as people do: 42 s, 3 min 05 s, 1 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def shortened(text: str, length: int = 160) -> str:
    """Write the beginning of a text in one line, with invisible characters as escapes.

    Example
    -------
    >>> shortened("two\\nlines"), shortened("cut", 2)
    ('two lines', 'cu…')
    """
    shown = text[:length].replace("\n", " ") + "…" * (len(text) > length)
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)


def interval(metric: dict[str, float]) -> str:
    """Write a metric with its interval, in percent."""
    return "{value:.1%} ({low:.1%} to {high:.1%})".format(**metric)


@contextmanager
def progress_bar(
    what: str, unit: str, *, scale: float = 1, done_before: int = 0
) -> Iterator[ShowProgress]:
    """Yield a function of the amount done, of the total where known, and of more to show.

    Counts are divided by `scale` to be in `unit`s: bytes are shown as MB with a scale of 1e6.
    `done_before` counts as done, but not for the speed. Where standard error is not a terminal,
    a line is printed every ten seconds.
    """
    from rich import progress

    console = messages()
    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=16),
        progress.TextColumn("{task.fields[count]}", markup=False),
        progress.TimeRemainingColumn(compact=True),
        progress.TextColumn("left"),
    )
    bar = progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    )
    task = bar.add_task(what, total=None, completed=done_before, count="")
    start = last = time.monotonic()

    def show(done: int, total: int | None, more: str = "") -> None:
        nonlocal last
        of_total = "" if total is None else f" of {total / scale:,.0f}"
        count = f"{done / scale:,.0f}{of_total} {unit}{more}"
        bar.update(task, completed=done, total=total, count=count)
        now = time.monotonic()
        if console.is_terminal or now - last < _SECONDS_BETWEEN_LINES or done <= done_before:
            return
        last = now
        line = f"{what}: {count}, {now - start:.0f} s"
        if total:
            seconds = (now - start) / (done - done_before) * max(0, total - done)
            line += f", about {seconds:.0f} s left"
        console.print(line)

    with bar:
        yield show


class Display:
    """Shows the progress of one stage after another; leaving the `with` block ends the last."""

    def __init__(self, unit: str = "MB", scale: float = 1e6) -> None:
        self.unit, self.scale = unit, scale
        self._bar = ExitStack()
        self._training: ShowProgress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_stage()

    def stage(self, name: str) -> ShowProgress:
        """Begin a stage, counted in the display's units; the previous one ends."""
        self.end_stage()
        return self._bar.enter_context(progress_bar(name, self.unit, scale=self.scale))

    def show_training(self, unit: str, done: int, total: int, more: str) -> None:
        """Show the progress of the training itself, the stage that begins with the first call."""
        if self._training is None:
            self.end_stage()
            bar = progress_bar("training", unit, done_before=done)
            self._training = self._bar.enter_context(bar)
        self._training(done, total, more)

    def end_stage(self) -> None:
        """End the bar."""
        self._bar.close()
        self._training = None
