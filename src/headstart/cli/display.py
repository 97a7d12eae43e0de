"""What all displays share: progress with the time left, one stage after another, a live part."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import ClassVar, Self

from rich.console import Console
from rich.live import Live

from headstart.cli.output import messages

_LINE_EVERY = 10.0  # seconds, where standard error is a file


@contextmanager
def progress_bar(
    what: str, unit: str, *, scale: float = 1, done_before: int = 0
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function of what is done and, where known, of the total.

    Counts are divided by `scale` to be in `unit`s: bytes are shown as MB with a scale of 1e6.
    What was `done_before` counts as done, but not for the pace.
    """
    console = messages()
    if not console.is_terminal:
        yield _lines(what, unit, scale, done_before)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, completed=done_before, count="")
        yield lambda done, total: bar.update(
            task, completed=done, total=total, count=_count(done, total, unit, scale)
        )


def _count(done: int, total: int | None, unit: str, scale: float) -> str:
    of_total = "" if total is None else f" of {total / scale:,.0f}"
    return f"{done / scale:,.0f}{of_total} {unit}"


def _lines(
    what: str, unit: str, scale: float, done_before: int
) -> Callable[[int, int | None], None]:
    start = last = time.monotonic()

    def show(done: int, total: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LINE_EVERY or done <= done_before:
            return
        last = now
        line = f"{what}: {_count(done, total, unit, scale)}, {now - start:.0f} s"
        if total:
            pace = (now - start) / (done - done_before)
            line += f", about {pace * max(0, total - done):.0f} s left"
        messages().print(line)

    return show


class Display:
    """Writes to standard error; leaving the `with` block ends whatever is live."""

    unit: ClassVar[str] = "MB"
    scale: ClassVar[float] = 1e6

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or messages()
        self._stage = ExitStack()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rest()

    def stage(self, name: str) -> Callable[[int, int | None], None]:
        """Begin a stage; the previous one ends."""
        self._rest()
        return self._stage.enter_context(progress_bar(name, self.unit, scale=self.scale))

    def _begin_live(self, *, transient: bool = False) -> Live:
        self._rest()
        self._live = Live(console=self.console, refresh_per_second=4, transient=transient)
        self._live.start()
        return self._live

    def _rest(self) -> None:
        self._stage.close()
        if self._live is not None:
            self._live.stop()
            self._live = None
