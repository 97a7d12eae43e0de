"""The store in which processes find each other, with an answer or an error in time.

PyTorch's own waits for an answer as long as the system keeps the connection: a quarter of an hour
where the network is lost without a word. So its operations run in a thread of their own, which may
be left behind.
"""

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any


class SilentStoreError(RuntimeError):
    """The store has not answered in time; it is not called again."""


class LimitedStore:
    """A `torch.distributed.Store` whose operations take `limit` seconds at most.

    Parameters
    ----------
    store : torch.distributed.Store
    limit : float
        Seconds; it may be changed.
    """

    def __init__(self, store: Any, limit: float) -> None:
        self.store, self.limit = store, limit
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._silent = False
        # A daemon: the end of the process does not wait for it.
        threading.Thread(target=self._work, name="store", daemon=True).start()

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all these keys are there."""
        found: bool = self._call(lambda: self.store.check(list(keys)))
        return found

    def get(self, key: str) -> bytes:
        """The value of a key that is there."""
        value: bytes = self._call(lambda: self.store.get(key))
        return value

    def set(self, key: str, value: str) -> None:
        self._call(lambda: self.store.set(key, value))

    def _call(self, work: Callable[[], Any]) -> Any:
        done = threading.Event()
        found: list[Any] = []
        failed: list[Exception] = []

        def call() -> None:
            try:
                found.append(work())
            except Exception as error:
                failed.append(error)
            done.set()

        if not self._silent:
            self._calls.put(call)
            self._silent = not done.wait(self.limit)
        if self._silent:
            raise SilentStoreError("the store has not answered")
        if failed:
            raise failed[0]
        return found[0]

    def close(self) -> None:
        """End the thread; nothing can be called afterwards."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
