"""The processes that share a training, as the training sees them: by default there is only one."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from headstart.training.checkpoints import Saved
from headstart.training.optimizer import clip_gradients, moments

T = TypeVar("T")


class Placement:
    """How the processes hold a model: each has all of it; `Sharded` shares out its blocks.

    Where blocks are shared out, all processes must call these methods together.
    """

    def shard(self, model: nn.Module, blocks: nn.ModuleList) -> None:
        """Leave this process with its part of every block, before there is an optimizer."""

    def held(self, model: nn.Module) -> int:
        """How many of the model's weights this process holds between two steps."""
        return sum(parameter.numel() for parameter in model.parameters())

    def passes(self, parts: int) -> int:
        """How many parts are computed where there are so many: as many by every process."""
        return parts

    def clip_gradients(self, model: nn.Module, most: float) -> float:
        """Scale all gradients so that their common norm is at most `most`; returns the norm."""
        return clip_gradients(model.parameters(), most)

    def agree_to_save(self, wanted: bool) -> bool:
        """Whether a checkpoint is written now."""
        return wanted

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        """The whole weights by name, where they are written."""
        return {name: value.detach() for name, value in model.named_parameters()}

    def moments(self, optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
        """The optimizer's whole state by name, where it is written."""
        return moments(optimizer, model)

    def copy_training(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, saved: Saved | None
    ) -> dict[str, Any]:
        """Put what rank 0 has read where it belongs; returns the rest of its state."""
        if saved is None:
            return {"progress": {}}
        saved.restore(model, optimizer)
        return saved.state


REPLICATED = Placement()


class Ranks:
    """One process that trains alone; `ProcessGroup` has the same methods for several.

    Rank 0 alone prints and writes. Whatever one rank has measured or read, all of them must know:
    each takes the same steps, with the same weights, on its share of every batch.
    """

    rank = 0
    count = 1
    local_count = 1  # of this machine
    step = 0  # where the training stands, for messages
    placement: Placement = REPLICATED

    @property
    def first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    def share(self, parts: Sequence[T]) -> Sequence[T]:
        """Those of a step's parts that this process computes."""
        return parts

    def sum_gradients(self, model: nn.Module, loss: float) -> float:
        """Let every process have the gradients of all; returns the sum of their losses."""
        return loss

    def agree_to_stop(self, requested: bool) -> bool:
        """Whether all end after this step, because one of them was asked to."""
        return requested

    def agree(self, value: T) -> T:
        """The value that rank 0 has; it is something that JSON can express."""
        return value

    def from_first(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, however long that takes; the others wait for it."""
        return make()

    def gather(self, value: T, *, limit: float | None = None) -> list[T]:
        """The values of all processes, by rank; `limit` is how many seconds each is waited for."""
        return [value]

    def wait_turn(self) -> None:
        """Wait until one process of this machine has filled the cache."""

    def end_turn(self) -> None:
        """Let the other processes of this machine use the cache."""

    def connect(self, device: torch.device) -> None:
        """Make ready for exchanging tensors, once all processes are there."""

    def copy_weights(self, model: nn.Module) -> None:
        """Give every process rank 0's weights."""

    def copy_training(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, saved: Saved | None
    ) -> dict[str, Any]:
        """Give every process what rank 0 has read: weights, moments, and the state."""
        return self.placement.copy_training(model, optimizer, saved)


ONE = Ranks()
