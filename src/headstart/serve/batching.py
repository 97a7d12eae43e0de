"""Requests become batches: one bounded queue with a bucket per length, and the model's threads.

A thread takes what is waiting as soon as it is free, so that nobody waits for a batch to fill:
batches grow only while all threads are busy.
"""

import asyncio
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from headstart.errors import HeadstartError
from headstart.serve.metrics import BATCH_SECONDS, BATCH_SIZE, WAITING

# Padding included; some 500 tokens. A small network reads no more of them per second in larger
# batches, and each thread should find something to do.
BATCH_CHARACTERS = 2_048
BATCH_TEXTS = 128
SHORTEST = 48  # characters; below it, padding costs next to nothing


class Waiting(NamedTuple):
    """A row in the queue."""

    arrived: float
    row: Any
    size: int  # characters
    result: asyncio.Future[Any]


class BatchQueue:
    """At most `limit` waiting rows, and the threads, of one core each, that predict batches."""

    def __init__(
        self, predict: Callable[[list[Any]], Sequence[Any]], *, limit: int, threads: int
    ) -> None:
        self.predict = predict
        self.limit = limit
        self.waiting = 0
        self._buckets: dict[int, deque[Waiting]] = defaultdict(deque)
        self._closing = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether rows are predicted."""
        return not self._closing and all(thread.is_alive() for thread in self._threads)

    async def submit(self, rows: Sequence[Any]) -> list[Any]:
        """Predict the rows of one request; rows are skipped if the request is cancelled."""
        results = [asyncio.get_running_loop().create_future() for _ in rows]
        with self._changed:
            if not self.alive:
                raise HeadstartError(
                    "the server is stopping", fix="try again later", code="stopping"
                )
            if self.waiting and self.waiting + len(rows) > self.limit:
                raise HeadstartError(
                    "too many requests are waiting", fix="try again in a second", code="busy"
                )
            for row, result in zip(rows, results, strict=True):
                size = max(SHORTEST, len(row) if isinstance(row, str) else sum(map(len, row)))
                self._buckets[size.bit_length()].append(
                    Waiting(time.perf_counter(), row, size, result)
                )
            self.waiting += len(rows)
            WAITING.inc(len(rows))
            self._changed.notify(len(rows))
        return await asyncio.gather(*results)

    def close(self) -> None:
        """Accept nothing new, predict what waits, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _take(self) -> list[Waiting]:
        """Wait for rows, and take the oldest with its bucket; nothing once closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self.waiting or self._closing)
            if not self.waiting:
                return []
            bucket = min(filter(None, self._buckets.values()), key=lambda rows: rows[0].arrived)
            batch = [bucket.popleft()]
            longest = batch[0].size
            while bucket and len(batch) < BATCH_TEXTS:
                longest = max(longest, bucket[0].size)
                if longest * (len(batch) + 1) > BATCH_CHARACTERS:
                    break
                batch.append(bucket.popleft())
            self.waiting -= len(batch)
            WAITING.dec(len(batch))
            return batch

    def _work(self) -> None:
        """Predict batch after batch, on one core."""
        torch.set_num_threads(1)
        while taken := self._take():
            batch = [one for one in taken if not one.result.done()]  # others were cancelled
            if not batch:
                continue
            start = time.perf_counter()
            found = self._predict([one.row for one in batch])
            BATCH_SIZE.observe(len(batch))
            BATCH_SECONDS.observe(time.perf_counter() - start)
            with suppress(RuntimeError):  # the event loop has ended
                batch[0].result.get_loop().call_soon_threadsafe(_deliver, batch, found)

    def _predict(self, rows: list[Any]) -> list[Any]:
        """Predict rows; if that fails, one by one, so that only the bad row fails."""
        try:
            return list(self.predict(rows))
        except BaseException as error:  # a panic of a library in Rust is not an Exception
            if len(rows) == 1:
                return [error]
        return [self._predict([row])[0] for row in rows]


def _deliver(batch: Sequence[Waiting], found: Sequence[Any]) -> None:
    """Hand out results, in the event loop."""
    for one, result in zip(batch, found, strict=True):
        if one.result.done():
            continue
        if isinstance(result, BaseException):
            one.result.set_exception(result)
        else:
            one.result.set_result(result)
