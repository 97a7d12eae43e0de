"""AdamW with weight decay where it belongs: on matrices, not on norms, biases, embeddings."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from headstart.model.positions import LearnedPositions


def make_optimizer(
    model: nn.Module,
    *,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float],
    scales: Mapping[str, float] | None = None,
) -> torch.optim.AdamW:
    """Fused AdamW over the parameters that are trained.

    `scales` multiplies the learning rate of a parameter, by its name (1 where it says nothing).
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for decay, members in zip((weight_decay, 0.0), split_by_decay(model), strict=True):
        for parameter in members:
            scale = (scales or {}).get(names[id(parameter)], 1.0)
            groups.setdefault((decay, scale), []).append(parameter)
    listed = [
        {"params": members, "weight_decay": decay, "scale": scale}
        for (decay, scale), members in groups.items()
    ]
    return torch.optim.AdamW(listed, lr=learning_rate, betas=betas, fused=True)


def split_by_decay(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices of linear layers, and everything else. A tied output layer is an embedding."""
    lookups = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding | LearnedPositions)
        for parameter in module.parameters(recurse=False)
    }
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        matrix = parameter.ndim >= 2 and id(parameter) not in lookups
        (decayed if matrix else plain).append(parameter)
    return decayed, plain


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
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
        optimizer.state[parameters[parameter_name]][key] = value.clone()
