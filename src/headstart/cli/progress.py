"""Progress with the time left, on standard error: a bar on a terminal, else a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headstart.cli.output import messages

_LINE_EVERY = 10.0  # seconds, where standard error is a file


@contextmanager
def progress(
    what: str, unit: str, *, scale: float = 1
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that takes what is done and, where known, the total.

    One `unit` is `scale` of what is counted: bytes are shown as MB with a scale of a million.
    """
    console = messages()
    if not console.is_terminal:
        yield _lines(what, unit, scale)
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
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, count="")
        yield lambda done, total: bar.update(
            task, completed=done, total=total, count=_count(done, total, unit, scale)
        )


def _count(done: int, total: int | None, unit: str, scale: float) -> str:
    of_total = "" if total is None else f" of {total / scale:,.0f}"
    return f"{done / scale:,.0f}{of_total} {unit}"


def _lines(what: str, unit: str, scale: float) -> Callable[[int, int | None], None]:
    start = last = time.monotonic()

    def show(done: int, total: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LINE_EVERY or not done:
            return
        last = now
        line = f"{what}: {_count(done, total, unit, scale)}, {now - start:.0f} s"
        if total:
            line += f", about {(now - start) * max(0, total - done) / done:.0f} s left"
        messages().print(line, markup=False)

    return show
