"""Several processes as one training: the tensors that they exchange and copy.

They go through PyTorch's process group: gloo on processors, nccl on GPUs. What else the processes
tell each other goes through their store (`store_ranks.py`).
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]

from headstart.errors import HeadstartError
from headstart.training.checkpoints import Saved
from headstart.training.optimizer import moments, restore_moments
from headstart.training.processes.exchange import GradientExchange, replicated
from headstart.training.processes.ranks import REPLICATED
from headstart.training.processes.shared_memory import SharedSum, share_memory
from headstart.training.processes.store_ranks import StoreRanks

T = TypeVar("T")
BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


class ProcessGroup(StoreRanks):
    """The ranks of a training in several processes; its parameters are those of `StoreRanks`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._stop_requested = self._stop_agreed = False
        self._exchange: tuple[nn.Module, GradientExchange] | None = None
        self._group: Any = None

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
        return None if parts is None else SharedSum(parts, self.rank, self._meet)

    def _meet(self) -> None:
        with self.watched():
            dist.barrier()

    def _all_reduce(self, tensor: Tensor, largest: bool) -> None:
        with self.watched():
            dist.all_reduce(tensor, dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM)

    @property
    def exchanged_bytes(self) -> int:
        """Of the last exchange of gradients."""
        return 0 if self._exchange is None else self._exchange[1].bytes

    def _disconnect(self) -> None:
        if self._group is not None:
            self._group = None
            with suppress(RuntimeError):
                dist.destroy_process_group()
