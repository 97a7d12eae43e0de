"""Two small steps with gradients of their own: fewer trips through memory than PyTorch's.

At these sizes a block spends as much time moving numbers as multiplying them. Both are tested
against the plain formula, in value and gradient.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class _Rotate(torch.autograd.Function):
    """Turning by an angle; its gradient turns back."""

    @staticmethod
    def forward(context: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        context.save_for_backward(cosine, sine)
        return _turned(x, cosine, sine, 1.0)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        cosine, sine = context.saved_tensors
        return _turned(gradients[0], cosine, sine, -1.0), None, None


def _turned(x: Tensor, cosine: Tensor, sine: Tensor, direction: float) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    turned = x * cosine
    new_first, new_second = turned.chunk(2, dim=-1)
    half = first.size(-1)
    new_first.addcmul_(second, sine[..., :half], value=-direction)
    new_second.addcmul_(first, sine[..., half:], value=direction)
    return turned


def rotate(x: Tensor, cosines_and_sines: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + hs/2]) by its position's angle: (B, nh, T, hs)."""
    cosine, sine = cosines_and_sines.to(x.dtype).chunk(2, dim=-1)
    if not torch.is_grad_enabled():
        return _turned(x, cosine, sine, 1.0)
    turned: Tensor = _Rotate.apply(x, cosine, sine)
    return turned


class _Gate(torch.autograd.Function):
    """activation(a) · b for `up` = [a, b]; one gradient for both halves, without joining them."""

    @staticmethod
    def forward(
        context: Any,
        up: Tensor,
        activation: Callable[[Tensor], Tensor],
        slope: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        context.save_for_backward(up)
        context.activation, context.slope = activation, slope
        a, b = up.chunk(2, dim=-1)
        return activation(a).mul_(b)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (up,) = context.saved_tensors
        a, b = up.chunk(2, dim=-1)
        into_up = torch.empty_like(up)
        into_a, into_b = into_up.chunk(2, dim=-1)
        torch.mul(gradients[0], context.activation(a), out=into_b)
        into_a.copy_(context.slope(gradients[0] * b, a))
        return into_up, None, None


# Each activation with the way its gradient passes through: (gradient, input) -> gradient.
GATES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "swiglu": (torch.nn.functional.silu, torch.ops.aten.silu_backward),
    "geglu": (torch.nn.functional.gelu, torch.ops.aten.gelu_backward),
    "reglu": (torch.relu, lambda gradient, a: torch.where(a > 0, gradient, 0.0)),
}


def gate(up: Tensor, kind: str) -> Tensor:
    """`up` (…, 2f) → activation(first half) · second half (…, f)."""
    activation, slope = GATES[kind]
    if not torch.is_grad_enabled():
        a, b = up.chunk(2, dim=-1)
        return activation(a).mul_(b)
    gated: Tensor = _Gate.apply(up, activation, slope)
    return gated
