"""What processes of one training agree on, and which of them is missing.

Small things (a measured pace, the sums of an evaluation) go as JSON through the store in which
PyTorch's processes find each other; nothing that is received can run code.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from headstart.errors import HeadstartError
from headstart.explain_errors import explain
from headstart.training.processes.limited_store import LimitedStore, SilentStoreError
from headstart.training.processes.ranks import Ranks

GRACE_SECONDS = 5.0  # for those that live to say so, before the others are called lost
BETWEEN_LOOKS = 0.02
GO_ON = "go on from the last checkpoint with --resume, with as many --processes as you like"
T = TypeVar("T")


class LostProcessError(HeadstartError):
    """Other processes of this training have died, or do not answer."""

    ranks: Sequence[int] = ()


class Ended(BaseException):
    """Rank 0 has ended, so this process has nothing left to do."""

    def __init__(self, failed: bool = False) -> None:
        super().__init__(failed)
        self.failed = failed  # with an error, which rank 0 has told


@dataclass(frozen=True)
class Place:
    """Where a process stands among all of them."""

    rank: int
    count: int
    local_rank: int
    local_count: int
    machine: int = 0


class StoreRanks(Ranks):
    """Processes that agree through a store, and tell who of them is missing.

    Parameters
    ----------
    store : torch.distributed.Store
    place : Place
    stuck_seconds : float
        How long an exchange waits for a process that lives but does not answer.
    exit_codes : callable
        The exit codes of the ranks that have ended by themselves, where they were started here.
    """

    def __init__(
        self,
        store: Any,
        place: Place,
        *,
        stuck_seconds: float,
        exit_codes: Callable[[], dict[int, int]] = dict,
    ) -> None:
        self.store, self.place = LimitedStore(store, stuck_seconds), place
        self.rank, self.count, self.local_count = place.rank, place.count, place.local_count
        self.stuck_seconds, self.exit_codes = stuck_seconds, exit_codes
        self._numbers = 0

    # What the store carries.

    def from_first(self, make: Callable[[], T]) -> T:
        key = self._key()
        if self.first:
            value = make()
            with self._store_watched():
                self._set(key, value)
            return value
        found: T = self._get(key)
        return found

    def agree(self, value: T) -> T:
        return self.from_first(lambda: value)

    def gather(self, value: T, *, limit: float | None = None) -> list[T]:
        key = self._key()
        with self._store_watched():
            self._set(f"{key}/{self.rank}", value)
        limit = self.stuck_seconds if limit is None else limit
        return [self._get(f"{key}/{rank}", limit, rank) for rank in range(self.count)]

    def wait_turn(self) -> None:
        if self.place.local_rank:
            self._get(f"stored/{self.place.machine}")

    def end_turn(self) -> None:
        if not self.place.local_rank:
            with self._store_watched():
                self._set(f"stored/{self.place.machine}", True)

    def report(self, error: BaseException) -> None:
        """Tell rank 0 why this process ends."""
        told = explain(error) or HeadstartError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):
            self._set("error", [self.rank, told.what, told.fix])

    def close(self, patience: float = 0.0, *, failed: bool = False) -> None:
        """Leave the group; rank 0 ends the others, too, and may wait for them: it has the store."""
        with suppress(RuntimeError):
            self._set("end" if self.first else f"left/{self.rank}", failed)
            left = [f"left/{rank}" for rank in range(1, self.count)]
            until = time.monotonic() + patience
            while self.first and time.monotonic() < until and not self.store.check(left):
                time.sleep(BETWEEN_LOOKS)
        self.store.close()
        self._disconnect()

    def _key(self) -> str:
        self._numbers += 1  # every process asks for the same things in the same order
        return str(self._numbers)

    def _set(self, key: str, value: Any) -> None:
        self.store.set(key, json.dumps(value))

    def _get(self, key: str, limit: float | None = None, whose: int = 0) -> Any:
        """The value of a key, once it is there; nobody waits for the dead."""
        began = time.monotonic()
        with self._store_watched():
            while not self.store.check([key]):
                if limit is not None and time.monotonic() - began > limit:
                    raise self.lost([whose], f"has not answered for {limit:g} seconds")
                if not self.first and self.store.check(["end"]) and not self.store.check([key]):
                    raise Ended(json.loads(self.store.get("end")))
                if self.first and (gone := self._gone()):
                    raise gone
                time.sleep(BETWEEN_LOOKS)
            return json.loads(self.store.get(key))

    @contextmanager
    def _store_watched(self) -> Iterator[None]:
        """What the store does not carry is the fault of rank 0, which has it."""
        try:
            yield
        except SilentStoreError:
            raise self.lost([0], _silent(self.stuck_seconds)) from None
        except RuntimeError:
            raise self.lost([0], "has ended") from None  # the store went with it

    # Who is missing.

    @contextmanager
    def watched(self) -> Iterator[None]:
        """An exchange that fails is the fault of another process: say whose."""
        began = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            waited = time.monotonic() - began >= 0.9 * self.stuck_seconds
            raise self._diagnosis(error, waited) from error

    def _diagnosis(self, error: RuntimeError, waited: bool) -> Exception:
        """Who is to blame for an exchange that has failed."""
        self._disconnect()  # who is waiting for this process need not wait longer
        self.store.limit = GRACE_SECONDS
        missing = others = [rank for rank in range(self.count) if rank != self.rank]
        how = _silent(self.stuck_seconds) if waited else "has ended"
        try:
            self._set(f"lives/{self.rank}", waited)
            until = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < until:
                if self.first and (gone := self._gone()):
                    return gone
                missing = [rank for rank in others if not self.store.check([f"lives/{rank}"])]
                if not missing and not self.first:  # rank 0 may still hear of an error
                    break
                time.sleep(BETWEEN_LOOKS)
            if not missing:
                return self._all_live(error, waited, others)
        except SilentStoreError:
            missing, how = [0], _silent(self.stuck_seconds if waited else GRACE_SECONDS)
        except RuntimeError:
            missing = [0]
        return self.lost(missing, how)

    def _all_live(self, error: RuntimeError, waited: bool, others: Sequence[int]) -> Exception:
        """Why processes that all reach the store could not exchange: a network lost in part, say.

        Rank 0 says it, so nobody is called lost.
        """
        if explain(error) is not None:  # a lack of memory
            return error
        if waited:
            return self._apart(others, f"{_silent(self.stuck_seconds)}, but lives")
        patient = [rank for rank in others if json.loads(self.store.get(f"lives/{rank}"))]
        if patient:
            how = f"has waited for process {self.rank} for {self.stuck_seconds:g} seconds"
            return self._apart(patient, how)
        return self._apart(others, f"lives, but cannot be exchanged with: {error}")

    def _apart(self, ranks: Sequence[int], how: str) -> LostProcessError:
        apart = self.lost(ranks, how)
        apart.ranks = ()
        return apart

    def _gone(self) -> HeadstartError | None:
        """Why another process has ended, where that is known."""
        if self.store.check(["error"]):
            rank, what, fix = json.loads(self.store.get("error"))
            return HeadstartError(f"process {rank}: {what}", fix=fix)
        codes = self.exit_codes()
        if not codes:
            return None
        rank, code = min(codes.items(), key=itemgetter(1))  # a signal (below 0) says most
        if code >= 0:
            return self.lost([rank], f"has ended with exit code {code}")
        memory = "; the system may have run out of memory" if code == -9 else ""
        return self.lost([rank], f"was ended by signal {-code}{memory}")

    def lost(self, ranks: Sequence[int], how: str) -> LostProcessError:
        """The error that names the processes, the step, and how to go on."""
        numbers = " and ".join(map(str, ranks))
        place = f"at step {self.step}" if self.step else "before the first step"
        error = LostProcessError(
            f"{place}, process {numbers} of {self.count} (counted from 0) {how}", fix=GO_ON
        )
        error.ranks = ranks
        return error

    def speaks_for(self, lost: LostProcessError) -> bool:
        """Whether this is the first process that is left."""
        return self.rank == min(set(range(self.count)) - set(lost.ranks))

    def _disconnect(self) -> None:
        """Leave the exchange of tensors, where there is one."""


def _silent(seconds: float) -> str:
    return f"has not answered for {seconds:g} seconds"
