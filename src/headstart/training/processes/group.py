"""Several processes as one training: what they agree on, exchange and copy, and who is missing.

Small things (a measured pace, the sums of an evaluation) go as JSON through the store in which
PyTorch's processes find each other; nothing that is received can run code. Tensors go through the
process group: gloo on processors, nccl on GPUs.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from operator import itemgetter
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]

from headstart.errors import HeadstartError
from headstart.explain_errors import explain
from headstart.training.checkpoints import Saved
from headstart.training.optimizer import moments, restore_moments
from headstart.training.processes.exchange import GradientExchange, replicated
from headstart.training.processes.limited_store import LimitedStore, SilentStoreError
from headstart.training.processes.ranks import REPLICATED, Ranks
from headstart.training.processes.shared_memory import SharedSum, share_memory

GRACE_SECONDS = 5.0  # for those that live to say so, before the others are called lost
BETWEEN_LOOKS = 0.02
BACKENDS = {"cpu": "gloo", "cuda": "nccl"}
GO_ON = "go on from the last checkpoint with --resume, with as many --processes as you like"
T = TypeVar("T")


class LostProcessError(HeadstartError):
    """Other processes of this training have died, or do not answer."""

    ranks: Sequence[int] = ()


class Ended(BaseException):
    """Rank 0 has ended, so this process has nothing left to do."""


@dataclass(frozen=True)
class Place:
    """Where a process stands among all of them."""

    rank: int
    count: int
    local_rank: int
    local_count: int
    machine: int = 0


class ProcessGroup(Ranks):
    """The ranks of a training in several processes.

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
        self._stop_requested = self._stop_agreed = False
        self._exchange: tuple[nn.Module, GradientExchange] | None = None
        self._group: Any = None

    # What the store carries.

    def from_first(self, make: Callable[[], T]) -> T:
        key = self._key()
        if self.first:
            value = make()
            self._set(key, value)
            return value
        found: T = self._get(key)
        return found

    def agree(self, value: T) -> T:
        return self.from_first(lambda: value)

    def gather(self, value: T, *, limit: float | None = None) -> list[T]:
        key = self._key()
        self._set(f"{key}/{self.rank}", value)
        limit = self.stuck_seconds if limit is None else limit
        return [self._get(f"{key}/{rank}", limit, rank) for rank in range(self.count)]

    def wait_turn(self) -> None:
        if self.place.local_rank:
            self._get(f"stored/{self.place.machine}")

    def end_turn(self) -> None:
        if not self.place.local_rank:
            self._set(f"stored/{self.place.machine}", True)

    def report(self, error: BaseException) -> None:
        """Tell rank 0 why this process ends."""
        told = explain(error) or HeadstartError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):
            self._set("error", [self.rank, told.what, told.fix])

    def close(self, patience: float = 0.0) -> None:
        """Leave the group; rank 0 ends the others, too, and may wait for them: it has the store."""
        with suppress(RuntimeError):
            self._set("end" if self.first else f"left/{self.rank}", True)
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
        try:
            while not self.store.check([key]):
                if limit is not None and time.monotonic() - began > limit:
                    raise self.lost([whose], f"has not answered for {limit:g} seconds")
                if not self.first and self.store.check(["end"]) and not self.store.check([key]):
                    raise Ended
                if self.first and (gone := self._gone()):
                    raise gone
                time.sleep(BETWEEN_LOOKS)
            return json.loads(self.store.get(key))
        except SilentStoreError:
            raise self.lost([0], self._silent) from None
        except RuntimeError:
            raise self.lost([0], "has ended") from None  # the store went with it

    # What the process group carries.

    def connect(self, device: torch.device) -> None:
        if device.type == "cuda":
            torch.cuda.set_device(self.place.local_rank)
        if device.type not in BACKENDS:
            raise HeadstartError(
                f"several processes cannot share a training on {device.type}",
                fix="use --device cpu or --device cuda, or one process",
            )
        with self.watched():
            dist.init_process_group(
                BACKENDS[device.type],
                store=PrefixStore("group", self.store.store),
                rank=self.rank,
                world_size=self.count,
                timeout=timedelta(seconds=self.stuck_seconds),
            )
        self._group = dist.group.WORLD

    def share(self, parts: Sequence[T]) -> Sequence[T]:
        return parts[self.rank :: self.count]

    def sum_gradients(self, model: nn.Module, loss: float) -> float:
        if self._exchange is None or self._exchange[0] is not model:
            self._exchange = (model, GradientExchange(model, self._all_reduce, self._shared(model)))
        with self.watched():
            total, self._stop_agreed = self._exchange[1](loss, stop=self._stop_requested)
        return total

    def agree_to_stop(self, requested: bool) -> bool:
        self._stop_requested = requested  # goes with the next step's gradients
        return self._stop_agreed

    def copy_weights(self, model: nn.Module) -> None:
        self.from_first(lambda: True)  # rank 0 may have counted and loaded for minutes
        with self.watched(), torch.no_grad():
            for value in [*model.parameters(), *model.buffers()]:
                dist.broadcast(value, 0)

    def copy_training(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, saved: Saved | None
    ) -> dict[str, Any]:
        state = super().copy_training(model, optimizer, saved)
        if self.placement is not REPLICATED:
            return state
        self.copy_weights(model)
        named = moments(optimizer, model)
        told: list[Any] = [state, [[name, list(value.shape)] for name, value in named.items()]]
        state, shapes = self.agree(told)
        device = next(model.parameters()).device
        with self.watched():
            for name, shape in shapes:
                named[name] = named[name] if self.first else torch.empty(shape, device=device)
                dist.broadcast(named[name], 0)
        if not self.first:
            restore_moments(optimizer, model, named)
        return state

    def _shared(self, model: nn.Module) -> SharedSum | None:
        """The memory through which processes of one machine add up their gradients."""
        if next(model.parameters()).device.type != "cpu":
            return None
        parts = share_memory(self, sum(p.numel() for p in replicated(model)) + 1)  # and the loss
        return None if parts is None else SharedSum(parts, self.rank, dist.barrier)

    def _all_reduce(self, tensor: Tensor, largest: bool) -> None:
        dist.all_reduce(tensor, dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM)

    @property
    def _silent(self) -> str:
        return f"has not answered for {self.stuck_seconds:g} seconds"

    @property
    def exchanged_bytes(self) -> int:
        """Of the last exchange of gradients."""
        return 0 if self._exchange is None else self._exchange[1].bytes

    # Who is missing.

    @contextmanager
    def watched(self) -> Iterator[None]:
        """An exchange that fails is the fault of another process: say whose."""
        began = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            waited = time.monotonic() - began >= 0.9 * self.stuck_seconds
            raise (self._diagnosis(waited) or error) from error

    def _diagnosis(self, waited: bool) -> HeadstartError | None:
        """Who is to blame for an exchange that has failed; None if all processes live."""
        self._disconnect()  # who is waiting for this process need not wait longer
        self.store.limit = GRACE_SECONDS
        how = self._silent if waited else "has ended"
        try:
            self._set(f"lives/{self.rank}", True)
            others = [rank for rank in range(self.count) if rank != self.rank]
            until = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < until:
                if self.first and (gone := self._gone()):
                    return gone
                missing = [rank for rank in others if not self.store.check([f"lives/{rank}"])]
                if not missing and not self.first:  # rank 0 may still hear of an error
                    break
                time.sleep(BETWEEN_LOOKS)
        except RuntimeError:
            missing = [0]
        return self.lost(missing, how) if missing else None

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
        if self._group is not None:
            self._group = None
            with suppress(RuntimeError):
                dist.destroy_process_group()
