"""AdamW with weight decay where it belongs, and with work only for the rows a step touched.

The embedding and an output layer over candidates have one row per piece of the vocabulary, and a
step touches a few thousand of 50,000. Their gradients are sparse, and only the touched rows and
their moments are updated ("lazy" Adam, the same numbers as `torch.optim.SparseAdam`, which takes
no dense gradients and keeps its step count outside of tensors). Against dense Adam this changes one
thing: a row that was not touched does not coast on its momentum; see docs/architecture.md.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headstart.model.positions import LearnedPositions


class RowAdamW(torch.optim.AdamW):
    """Fused AdamW; of parameters with a sparse gradient, only the rows in it are updated."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """One step; bias correction counts all steps, also those that left a row alone."""
        sparse = [
            (parameter, group, parameter.grad)
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.grad is not None and parameter.grad.is_sparse
        ]
        for parameter, _, _ in sparse:
            parameter.grad = None  # the dense step passes over it
        result = super().step(closure)
        for parameter, group, gradient in sparse:
            self._update_rows(parameter, group, gradient.coalesce())
            parameter.grad = gradient
        return result

    def _update_rows(self, parameter: nn.Parameter, group: dict[str, Any], grad: Tensor) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step, (beta1, beta2), rate = float(state["step"]), group["betas"], float(group["lr"])
        rows, values = grad._indices()[0], grad._values()
        mean = state["exp_avg"].index_select(0, rows).lerp_(values, 1 - beta1)
        square = state["exp_avg_sq"].index_select(0, rows)
        square.mul_(beta2).addcmul_(values, values, value=1 - beta2)
        state["exp_avg"].index_copy_(0, rows, mean)
        state["exp_avg_sq"].index_copy_(0, rows, square)
        scale = square.div_(1 - beta2**step).sqrt_().add_(group["eps"])
        change = mean.div_(1 - beta1**step).div_(scale)
        if group["weight_decay"]:
            change.add_(parameter.index_select(0, rows), alpha=group["weight_decay"])
        parameter.index_add_(0, rows, change, alpha=-rate)


def clip_gradients(parameters: Iterable[nn.Parameter], most: float) -> float:
    """Scale all gradients so that their common norm is at most `most`; returns the norm.

    Sparse gradients are coalesced on the way: a row that occurs twice has one gradient.
    """
    gradients = gradient_values(parameters)
    norm = float(nn.utils.get_total_norm(gradients))
    limit_norm(gradients, norm, most)
    return norm


def limit_norm(gradients: list[Tensor], norm: float, most: float) -> None:
    """Scale gradients whose common norm is `norm` so that it is at most `most`."""
    if norm > most:
        torch._foreach_mul_(gradients, most / (norm + 1e-6))


def gradient_values(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """The numbers of the gradients that are there, to be read and changed."""
    gradients: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
        gradients.append(parameter.grad._values() if parameter.grad.is_sparse else parameter.grad)
    return gradients


def make_optimizer(
    model: nn.Module,
    *,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float],
    scales: Mapping[str, float] | None = None,
) -> RowAdamW:
    """The optimizer over the parameters that are trained.

    `scales` multiplies the learning rate of a parameter, by its name (1 where it says nothing).
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    # One call updates a group, and takes no sharded parameters (DTensors) beside whole ones.
    groups: dict[tuple[float, float, type], list[nn.Parameter]] = {}
    for decay, members in zip((weight_decay, 0.0), split_by_decay(model), strict=True):
        for parameter in members:
            scale = (scales or {}).get(names[id(parameter)], 1.0)
            groups.setdefault((decay, scale, type(parameter)), []).append(parameter)
    listed = [
        {"params": members, "weight_decay": decay, "scale": scale}
        for (decay, scale, _), members in groups.items()
    ]
    return RowAdamW(listed, lr=learning_rate, betas=betas, fused=True)


def split_by_decay(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices of linear layers, and everything else.

    An output layer has one row per piece, like an embedding, and does not decay either.
    """
    lookups = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding | LearnedPositions)
        for parameter in module.parameters(recurse=False)
    } | {id(parameter) for parameter in getattr(model, "vocabulary_rows", [])}
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        matrix = parameter.ndim >= 2 and id(parameter) not in lookups
        (decayed if matrix else plain).append(parameter)
    return decayed, plain


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the rate of a step, times the scale of each group of parameters."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("scale", 1.0)


def moments(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state as named tensors, ready for a file."""
    named = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            named[f"{name}:{key}"] = value
    return named


def restore_moments(
    optimizer: torch.optim.Optimizer, model: nn.Module, saved: dict[str, Tensor]
) -> None:
    """Put back what `moments` gave."""
    parameters = dict(model.named_parameters())
    for name, value in saved.items():
        parameter_name, key = name.rsplit(":", 1)
        parameter = parameters[parameter_name]
        optimizer.state[parameter][key] = value.clone().to(parameter.device)
