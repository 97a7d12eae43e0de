"""Requests become batches: a bounded queue, and threads of their own that run the model.

A thread takes what is waiting as soon as it is free, so nobody waits for company: batches grow
only while the model is busy. A batch holds the oldest text and those of about its length. A text's
answer does not depend on its batch: padding is masked, and what fails is tried again alone.
"""

import asyncio
import math
import threading
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from headstart.serve.model import Question, ServedModel

# Padding included; some 500 tokens. A small network reads no more of them per second in larger
# batches, and with several threads each should find something to do.
BATCH_CHARACTERS = 2_048
BATCH_TEXTS = 128
SHORTEST = 48  # characters; below it, padding costs next to nothing
WAITING_CHARACTERS = 16_000_000  # the memory that a queue of long texts may take
SMOOTHING = 0.2  # the weight of the last batch in the pace


class QueueFullError(Exception):
    """The queue has no room for a request; it will after `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__("the queue is full")
        self.seconds = seconds


class StoppingError(Exception):
    """The server stops and takes no new requests."""


class RowError(Exception):
    """The model failed on one question (or on a row of it) of a request."""

    def __init__(self, place: int, error: BaseException) -> None:
        super().__init__(f"number {place}: {error!r}")
        self.place = place
        self.error = error


class Job:
    """The rows of one request, and their answers as they come in."""

    __slots__ = ("answers", "left", "model", "outcome")

    def __init__(self, model: ServedModel, rows: int, outcome: "asyncio.Future[list[Any]]") -> None:
        self.model = model
        self.answers: list[Any] = [None] * rows
        self.left = rows
        self.outcome = outcome


class Waiting(NamedTuple):
    """A row in the queue; it is ordered by its size, then by its arrival."""

    size: int
    number: int
    job: Job
    place: int
    row: Any


class BatchObserver(Protocol):
    """What the queue and the batches are reported to."""

    def waiting(self, texts: int) -> None: ...

    def batch(self, texts: int, seconds: float) -> None: ...


class Batcher:
    """A queue of at most `limit` texts, and the threads that answer them.

    Parameters
    ----------
    limit : texts that may wait.
    deadline : seconds that a request may take; one that would wait longer is refused at once.
    observer : told about the queue and the batches.
    threads : batches that are run at the same time.
    prepare : called in each of these threads before anything else.
    """

    def __init__(
        self,
        *,
        limit: int,
        deadline: float,
        observer: BatchObserver,
        threads: int = 1,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.limit = limit
        self.deadline = deadline
        self._observer = observer
        self._prepare = prepare
        self._changed = threading.Condition()
        self._by_size: list[Waiting] = []
        self._by_arrival: deque[Waiting] = deque()
        self._taken: set[int] = set()  # numbers of those that are no longer in `_by_size`
        self._number = 0
        self._characters = 0
        self._pace = 0.0  # characters per second of all threads; 0 before the first batch
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, name=f"headstart-model-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start the model's threads."""
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether texts are being answered."""
        return not self._closing and all(thread.is_alive() for thread in self._threads)

    async def answer(self, model: ServedModel, questions: Sequence[Question]) -> list[Any]:
        """The answers to questions; raises `QueueFullError`, `StoppingError` or `TimeoutError`."""
        loop = asyncio.get_running_loop()
        count = sum(len(one.rows) for one in questions)
        job = Job(model, count, loop.create_future())
        self._add(job, questions)
        timer = loop.call_later(self.deadline, _expire, job.outcome)
        try:
            answers = await job.outcome
        except RowError as error:
            raise RowError(_question_of(error.place, questions), error.error) from None
        finally:
            timer.cancel()
        if count == len(questions):
            return [model.join(one, [found]) for one, found in zip(questions, answers, strict=True)]
        found = iter(answers)
        return [model.join(one, [next(found) for _ in one.rows]) for one in questions]

    def close(self) -> None:
        """Take nothing new, answer what waits, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _add(self, job: Job, questions: Sequence[Question]) -> None:
        size = sum(max(one.size, SHORTEST) * len(one.rows) for one in questions)
        with self._changed:
            if not self.alive:
                raise StoppingError
            waiting = len(self._by_size)
            if waiting and (
                waiting + job.left > self.limit
                or self._characters + size > WAITING_CHARACTERS
                or (self._pace and self._characters > self._pace * self.deadline)
            ):
                seconds = math.ceil(self._characters / self._pace) if self._pace else 1
                raise QueueFullError(min(60, max(1, seconds)))
            place = 0
            for question in questions:
                for row in question.rows:
                    self._number += 1
                    one = Waiting(max(question.size, SHORTEST), self._number, job, place, row)
                    insort(self._by_size, one)
                    self._by_arrival.append(one)
                    place += 1
            self._characters += size
            self._observer.waiting(len(self._by_size))
            self._changed.notify(min(job.left, len(self._threads)))

    def _work(self) -> None:
        """One of the model's threads: batch after batch until the queue is closed and empty."""
        if self._prepare is not None:
            self._prepare()
        while True:
            with self._changed:
                while not self._by_size and not self._closing:
                    self._changed.wait()
                if not self._by_size:
                    return
                picked = self._pick()
                self._observer.waiting(len(self._by_size))
            # Whoever has given up (a deadline, a client that left) costs nothing any more.
            batch = [one for one in picked if not one.job.outcome.done()]
            if not batch:
                continue
            start = time.perf_counter()
            answers = _answer(batch[0].job.model, [one.row for one in batch])
            seconds = time.perf_counter() - start
            pace = len(self._threads) * sum(one.size for one in batch) / max(seconds, 1e-6)
            with self._changed:
                known = self._pace or pace
                self._pace = (1 - SMOOTHING) * known + SMOOTHING * pace
            self._observer.batch(len(batch), seconds)
            with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                batch[0].job.outcome.get_loop().call_soon_threadsafe(_deliver, batch, answers)

    def _pick(self) -> list[Waiting]:
        """Take the oldest text and its neighbours in length out of the queue."""
        while (oldest := self._by_arrival.popleft()).number in self._taken:
            self._taken.discard(oldest.number)
        rows, model = self._by_size, oldest.job.model
        low = bisect_left(rows, oldest)
        high = low + 1
        while high - low < BATCH_TEXTS:
            # The neighbour whose length is closer to the oldest's; else the one on the other side.
            below = oldest.size - rows[low - 1].size if low else math.inf
            above = rows[high].size - oldest.size if high < len(rows) else math.inf
            for first, stop in sorted([(low - 1, high), (low, high + 1)], reverse=above < below):
                if first >= 0 and stop <= len(rows) and _fits(rows, first, stop, model):
                    low, high = first, stop
                    break
            else:
                break
        picked = rows[low:high]
        del rows[low:high]
        self._taken.update(one.number for one in picked)
        self._taken.discard(oldest.number)
        self._characters -= sum(one.size for one in picked)
        if not rows:
            self._by_arrival.clear()
            self._taken.clear()
        return picked


def _fits(rows: Sequence[Waiting], first: int, stop: int, model: ServedModel) -> bool:
    """Whether these rows, ordered by size, are of one model, of similar length, and not too many.

    Of all but the outermost two that is known already.
    """
    shortest, longest = rows[first], rows[stop - 1]
    return (
        shortest.job.model is longest.job.model is model
        and longest.size <= 2 * shortest.size
        and longest.size * (stop - first) <= BATCH_CHARACTERS
    )


def _answer(model: ServedModel, rows: Sequence[Any]) -> list[Any]:
    """The answers of rows; of one that cannot be answered, the exception."""
    try:
        return list(model.answer(rows))
    except BaseException as error:  # also a panic of a library in Rust, which is no Exception
        if len(rows) == 1:
            return [error]
    return [_answer(model, [row])[0] for row in rows]


def _deliver(batch: Sequence[Waiting], answers: Sequence[Any]) -> None:
    """In the event loop: hand each request its answers, and finish those that have all."""
    for one, answer in zip(batch, answers, strict=True):
        job = one.job
        if job.outcome.done():
            continue
        if isinstance(answer, BaseException):
            job.outcome.set_exception(RowError(one.place, answer))
            continue
        job.answers[one.place] = answer
        job.left -= 1
        if not job.left:
            job.outcome.set_result(job.answers)


def _question_of(place: int, questions: Sequence[Question]) -> int:
    """Which question a row belongs to."""
    for number, one in enumerate(questions):
        place -= len(one.rows)
        if place < 0:
            return number
    return len(questions) - 1


def _expire(outcome: "asyncio.Future[list[Any]]") -> None:
    if not outcome.done():
        outcome.set_exception(TimeoutError())
