"""AdamW that updates only the rows a step has used, and gradient clipping.

The embedding and a sampled output layer have one row per token of the vocabulary, and a step uses
a few thousand of 50,000. Their gradients are sparse, and only these rows and their moments are
updated ("lazy" Adam: the numbers of `torch.optim.SparseAdam`, which takes no dense gradients).
Unlike dense Adam, a row that was not used does not move on by its momentum.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from headstart.model.positions import LearnedPositions


class RowAdamW(torch.optim.AdamW):
    """Fused AdamW; of a parameter with a sparse gradient, only the rows in it are updated."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Take one step; bias correction counts all steps, also those that skipped a row."""
        sparse = [
            (parameter, group, parameter.grad)
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.grad is not None and parameter.grad.is_sparse
        ]
        for parameter, _, _ in sparse:
            parameter.grad = None  # the dense step skips it
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
        step, (beta1, beta2) = float(state["step"]), group["betas"]
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
        parameter.index_add_(0, rows, change, alpha=-float(group["lr"]))


def make_optimizer(
    model: nn.Module,
    *,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float],
    embedding_learning_rate: float | None = None,
) -> RowAdamW:
    """Make the optimizer of the parameters that are trained.

    Matrices of linear layers decay; embeddings, output layers, positions, norms and biases do not.
    Embedding and output rows may have another learning rate: each group has its own `scale`.
    """
    row_rate = embedding_learning_rate or learning_rate
    rows = {id(parameter) for parameter in getattr(model, "vocabulary_rows", [])}
    lookups = rows | {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding | LearnedPositions)
        for parameter in module.parameters(recurse=False)
    }
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            decays = parameter.ndim >= 2 and id(parameter) not in lookups
            scale = row_rate / learning_rate if id(parameter) in rows else 1.0
            key = (weight_decay if decays else 0.0, scale)
            groups.setdefault(key, []).append(parameter)
    listed = [
        {"params": parameters, "weight_decay": decay, "scale": scale}
        for (decay, scale), parameters in groups.items()
    ]
    return RowAdamW(listed, lr=learning_rate, betas=betas, fused=True)


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients to a common norm of at most `max_norm`; return the norm."""
    gradients: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()  # one gradient for a row that occurs twice
        gradients.append(parameter.grad._values() if parameter.grad.is_sparse else parameter.grad)
    norm = float(nn.utils.get_total_norm(gradients))
    if norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / (norm + 1e-6))
    return norm


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's state as named tensors, for a file."""
    return {
        f"{name}:{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, saved: dict[str, Tensor]
) -> None:
    """Restore what `optimizer_tensors` returned."""
    parameters = dict(model.named_parameters())
    for name, value in saved.items():
        parameter_name, key = name.rsplit(":", 1)
        parameter = parameters[parameter_name]
        optimizer.state[parameter][key] = value.clone().to(parameter.device)
