"""Blocks of which each process holds a part: weights, gradients and moments (`fully_shard`).

PyTorch gathers a block's weights for its forward and backward pass, adds up its gradients, and
leaves each process the rows of every matrix that are its own. Everything outside of the blocks
(the vocabulary's matrices, the last norm, the head) stays whole in every process and is exchanged
as before. Each pass through a block is a meeting of all processes, so all of them make the same
number of passes.
"""

import gc
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from headstart.training.checkpoints import Saved
from headstart.training.optimizer import gradient_values, limit_norm, moments
from headstart.training.processes.exchange import is_sharded
from headstart.training.processes.group import ProcessGroup
from headstart.training.processes.ranks import Placement, Ranks

Watched = Callable[[], AbstractContextManager[None]]


class Sharded(Placement):
    """Each process holds its rows of every matrix in the blocks.

    Parameters
    ----------
    group : the processes, which are connected.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group
        # The group that has `stuck_seconds` as its time limit, not one that PyTorch would make.
        world: Any = dist.group.WORLD
        self.mesh = DeviceMesh.from_group(world, "cpu")

    def shard(self, model: nn.Module, blocks: nn.ModuleList) -> None:
        gc.collect()  # sharded modules refer to themselves; those that were tried out go now
        inside = {id(parameter) for parameter in blocks.parameters()}
        outside = {one for one in model.parameters() if id(one) not in inside}
        gather: Any = _Exchange(dist.all_gather_single, self.group.watched)
        add_up: Any = _Exchange(dist.reduce_scatter_single, self.group.watched)
        for block in blocks:
            part = fully_shard(block, mesh=self.mesh, reshard_after_forward=True)
            part.set_gradient_divide_factor(1.0)  # the loss is divided by all targets already
            part.set_force_sum_reduction_for_comms(True)  # gloo has no other
            part.set_custom_all_gather(gather)
            part.set_custom_reduce_scatter(add_up)
        # With a common root, a block's buffer of gradients goes when the next one's is needed.
        fully_shard(model, mesh=self.mesh, ignored_params=outside)

    def held(self, model: nn.Module) -> int:
        return sum((_rows(p) if is_sharded(p) else p).numel() for p in model.parameters())

    def passes(self, parts: int) -> int:
        return -(-parts // self.group.count) * self.group.count

    @torch.no_grad()
    def clip_gradients(self, model: nn.Module, most: float) -> float:
        parameters = [one for one in model.parameters() if one.grad is not None]
        everyones = gradient_values(one for one in parameters if not is_sharded(one))
        own = [_rows(one.grad) for one in parameters if is_sharded(one)]
        square = nn.utils.get_total_norm(own).double().square().view(1)
        squares = torch.empty(self.group.count, dtype=square.dtype)  # (processes,)
        with self.group.watched():
            dist.all_gather_single(squares, square)
        # Added in the same order by all: the weights that all have must stay the same.
        whole = float(nn.utils.get_total_norm(everyones))
        norm = math.sqrt(whole**2 + sum(squares.tolist()))
        limit_norm(own + everyones, norm, most)
        return norm

    def agree_to_save(self, wanted: bool) -> bool:
        said = torch.tensor([wanted])
        with self.group.watched():
            dist.broadcast(said, 0)
        return bool(said)

    def weights(self, model: nn.Module) -> dict[str, Tensor]:
        return self._collected(dict(model.named_parameters()))

    def moments(self, optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
        return self._collected(moments(optimizer, model))

    @torch.no_grad()
    def copy_training(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, saved: Saved | None
    ) -> dict[str, Any]:
        told: list[Any] = []
        if saved is not None:
            told = [saved.state, [[name, one.ndim] for name, one in saved.moments.items()]]
        state, names = self.group.agree(told)
        parameters = dict(model.named_parameters())
        with self.group.watched():
            for name, parameter in parameters.items():
                self._give(parameter, None if saved is None else saved.weights[name])
            for name, dimensions in names:
                parameter_name, key = name.rsplit(":", 1)
                parameter = parameters[parameter_name]
                # The step count is a number, and whole; everything else is like its parameter.
                value = torch.zeros_like(parameter) if dimensions else torch.zeros(())
                self._give(value, None if saved is None else saved.moments[name])
                optimizer.state[parameter][key] = value
        copied: dict[str, Any] = state
        return copied

    @torch.no_grad()
    def _collected(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The whole tensors on rank 0, one after the other; nothing on the others."""
        found = {}
        with self.group.watched():
            for name, value in tensors.items():
                whole = self._collect(value) if is_sharded(value) else value.detach()
                if self.group.first:
                    found[name] = whole
        return found

    def _collect(self, value: Tensor) -> Tensor:
        own = _rows(value)
        if not self.group.first:
            if own.numel():
                dist.send(own, 0)
            return own
        whole = torch.empty(value.shape, dtype=value.dtype)
        for rank, rows in enumerate(whole.chunk(self.group.count)):  # as `fully_shard` cuts
            if rank:
                dist.recv(rows, rank)
            else:
                rows.copy_(own)
        return whole

    def _give(self, value: Tensor, whole: Tensor | None) -> None:
        """Put what rank 0 has into a tensor of every process, or into each one's rows of it."""
        if not is_sharded(value):
            if whole is not None:
                value.copy_(whole)
            dist.broadcast(value, 0)
            return
        own = _rows(value)
        if whole is None:
            if own.numel():
                dist.recv(own, 0)
            return
        for rank, rows in enumerate(whole.chunk(self.group.count)):
            if rank:
                dist.send(rows, rank)
            else:
                own.copy_(rows)


def share_blocks(ranks: Ranks) -> None:
    """Let processes that are connected share out the blocks of the models they make from now on."""
    assert isinstance(ranks, ProcessGroup), "one process has nobody to share with"
    ranks.placement = Sharded(ranks)


def _rows(value: Any) -> Tensor:
    """This process's rows of a sharded tensor, in place."""
    rows: Tensor = value.to_local()
    return rows


class _Exchange:
    """How `fully_shard` is to exchange: where that fails, the error names the missing process."""

    def __init__(self, exchange: Callable[..., Any], watched: Watched) -> None:
        self.exchange, self.watched = exchange, watched

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, **more: Any) -> Any:
        with self.watched():
            return self.exchange(output_tensor, input_tensor, **more)
