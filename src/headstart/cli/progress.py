"""Progress with the time left, on standard error: a bar on a terminal, else a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headstart.cli.output import messages

_LINE_EVERY = 10.0  # seconds, where standard error is a file


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that takes what is done and, where known, the total."""
    console = messages()
    if not console.is_terminal:
        yield _lines(what, unit)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
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
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str, unit: str) -> Callable[[int, int | None], None]:
    start = last = time.monotonic()

    def show(done: int, total: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LINE_EVERY or not done:
            return
        last = now
        line = f"{what}: {done:,} {unit}, {now - start:.0f} s"
        if total:
            line = f"{what}: {done:,} of {total:,} {unit}"
            line += f", about {(now - start) * (total - done) / done:.0f} s left"
        messages().print(line, markup=False)

    return show
