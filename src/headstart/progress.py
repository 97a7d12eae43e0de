"""The one form in which long work reports how far it is."""

from collections.abc import Callable

# Called with what is done so far and the total, or None where only the end will tell.
ProgressCallback = Callable[[int, int | None], None]
