"""Four small steps with gradients of their own: fewer trips through memory than PyTorch's.

At these sizes a block spends as much time moving numbers as multiplying them. All are tested
against the plain formula, in value and gradient.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _SplitHeads(torch.autograd.Function):
    """Views of one joined product; their gradients are written side by side at once.

    PyTorch would stack them first and put them in order in a second pass.
    """

    @staticmethod
    def forward(context: Any, joined: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
        split = _split(joined, parts, heads)
        context.shape = split.shape
        return split.permute(2, 0, 3, 1, 4).unbind()

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        into_joined = gradients[0].new_empty(context.shape)
        for part, gradient in enumerate(gradients):
            into_joined[:, :, part] = gradient.transpose(1, 2)
        return into_joined.flatten(2), None, None


def _split(joined: Tensor, parts: int, heads: int) -> Tensor:
    """(B, T, parts · nh · hs) → (B, T, parts, nh, hs)"""
    batch, length, width = joined.shape
    return joined.view(batch, length, parts, heads, width // (parts * heads))


def split_heads(joined: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """(B, T, parts · nh · hs) → so many parts of (B, nh, T, hs), such as queries, keys, values."""
    if not torch.is_grad_enabled():
        return _split(joined, parts, heads).permute(2, 0, 3, 1, 4).unbind()
    split: tuple[Tensor, ...] = _SplitHeads.apply(joined, parts, heads)
    return split


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


Slope = Callable[[Tensor, Tensor, Tensor], Any]


class _Gate(torch.autograd.Function):
    """activation(a) · b for `up` = [a, b]; one gradient for both halves, without joining them."""

    @staticmethod
    def forward(
        context: Any, up: Tensor, activation: Callable[[Tensor], Tensor], slope: Slope
    ) -> Tensor:
        a, b = up.chunk(2, dim=-1)
        active = activation(a)
        context.save_for_backward(up, active)
        context.slope = slope
        return active * b

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        up, active = context.saved_tensors
        a, b = up.chunk(2, dim=-1)
        into_up = torch.empty_like(up)
        into_a, into_b = into_up.chunk(2, dim=-1)
        torch.mul(gradients[0], active, out=into_b)
        context.slope(gradients[0] * b, a, into_a)
        return into_up, None, None


def _silu_slope(gradient: Tensor, x: Tensor, out: Tensor) -> None:
    if out.device.type == "cpu":
        torch.ops.aten.silu_backward.grad_input(gradient, x, grad_input=out)
    else:  # other devices' kernels may not expect half of a row
        out.copy_(torch.ops.aten.silu_backward(gradient, x))


def _gelu_slope(gradient: Tensor, x: Tensor, out: Tensor) -> None:
    if out.device.type == "cpu":
        torch.ops.aten.gelu_backward.grad_input(gradient, x, grad_input=out)
    else:
        out.copy_(torch.ops.aten.gelu_backward(gradient, x))


def _relu_slope(gradient: Tensor, x: Tensor, out: Tensor) -> None:
    torch.mul(gradient, x > 0, out=out)


# Each activation with the way its gradient passes through: (gradient, input, where it goes).
GATES: dict[str, tuple[Callable[[Tensor], Tensor], Slope]] = {
    "swiglu": (torch.nn.functional.silu, _silu_slope),
    "geglu": (torch.nn.functional.gelu, _gelu_slope),
    "reglu": (torch.relu, _relu_slope),
}


def gate(up: Tensor, kind: str) -> Tensor:
    """`up` (…, 2f) → activation(first half) · second half (…, f)."""
    activation, slope = GATES[kind]
    if not torch.is_grad_enabled():
        a, b = up.chunk(2, dim=-1)
        return activation(a).mul_(b)
    gated: Tensor = _Gate.apply(up, activation, slope)
    return gated


class _RootMeanSquareNorm(torch.autograd.Function):
    """x / √(mean of x² + ε) · weight."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        factor = _factor(x, epsilon)  # (…, 1)
        context.save_for_backward(x, weight, factor)
        return (x * factor).mul_(weight)

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, factor = context.saved_tensors
        width = x.size(-1)
        # Steps are taken back inside of autocast, too, which would round this sum over a row.
        with torch.autocast(x.device.type, enabled=False):
            into_x = (gradients[0] * x).mul_(factor)
            rows = into_x.reshape(-1, width)
            into_weight = rows.sum(0)
            # What a longer row would have been shrunk by: (…, 1).
            shrunk = (rows @ weight).view_as(factor).div_(-width).mul_(factor)
            torch.mul(gradients[0], weight, out=into_x)
            return into_x.addcmul_(x, shrunk).mul_(factor), into_weight, None


def _factor(x: Tensor, epsilon: float) -> Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length.square_().div_(x.size(-1)).add_(epsilon).rsqrt_()


class RMSNorm(torch.nn.RMSNorm):
    """PyTorch's norm; on the CPU, where that is ten small steps, in three."""

    def forward(self, x: Tensor) -> Tensor:
        exact = x.dtype == self.weight.dtype and x.dtype in (torch.float32, torch.float64)
        if x.device.type != "cpu" or not exact or self.eps is None:
            return super().forward(x)
        if not torch.is_grad_enabled():
            return (x * _factor(x, self.eps)).mul_(self.weight)
        normed: Tensor = _RootMeanSquareNorm.apply(x, self.weight, self.eps)
        return normed
