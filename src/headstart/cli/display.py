"""What all displays of a training share: one stage after another, then a live part."""

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import ClassVar, Self

from rich.console import Console
from rich.live import Live

from headstart.cli.output import messages
from headstart.cli.progress import progress as progress_bar


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
