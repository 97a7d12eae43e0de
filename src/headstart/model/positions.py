"""Positional encodings: without them, attention sees a bag of tokens.

- `SinusoidalPositions`: computed sines, added to the embedding (Vaswani et al. 2017; the lab).
- `LearnedPositions`: a trained vector per position, added to the embedding (BERT, GPT-2).
- `RotaryPositions`: queries and keys are rotated by an angle that grows with the position, so
  that their product depends on the distance (Su et al. 2021; Llama, ModernBERT).

The computed kinds have no parameters, are not saved, and grow with the texts they meet.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from headstart.errors import HeadstartError

FIRST_ROWS = 1_024  # at most so many positions are computed before a text needs them


def sinusoids(length: int, width: int, *, device: torch.device | None = None) -> Tensor:
    """Return sines in the even and cosines in the odd columns, high frequencies first: (T, d)."""
    position = torch.arange(length, dtype=torch.float32, device=device).unsqueeze(1)  # (T, 1)
    even = torch.arange(0, width, 2, dtype=torch.float32, device=device)
    angle = position * torch.exp(even * (-math.log(10_000.0) / width))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # (T, d/2, 2) -> (T, d)


def rotary_table(
    length: int, head_width: int, base: float, *, device: torch.device | None = None
) -> Tensor:
    """Return the cosines and sines of every position and pair of columns: (T, 2·hs)."""
    position = torch.arange(length, dtype=torch.float32, device=device).unsqueeze(1)
    even = torch.arange(0, head_width, 2, dtype=torch.float32, device=device)
    angle = position / base ** (even / head_width)  # (T, hs/2)
    angle = torch.cat((angle, angle), dim=-1)
    return torch.cat((angle.cos(), angle.sin()), dim=-1)


def rotate(x: Tensor, rotary: Tensor) -> Tensor:
    """Rotate each pair (x[i], x[i + hs/2]) of x (B, nh, T, hs) by the angle of its position.

    `rotary` is (T, 2·hs) or (B, 1, T, 2·hs), from `RotaryPositions`.
    """
    cosine, sine = rotary.to(x.dtype).chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class _Table(nn.Module):
    """A computed table (positions × columns) that is recomputed only to grow."""

    table: Tensor

    def __init__(self, max_length: int, compute: Callable[..., Tensor]) -> None:
        super().__init__()
        self.compute = compute
        self.register_buffer("table", compute(min(max_length, FIRST_ROWS)), persistent=False)

    def forward(self, length: int, positions: Tensor | None) -> Tensor:
        """Return the rows of 0 … length-1 (T, ·), or those of `positions` (B, T, ·)."""
        if length > self.table.size(0):
            # Doubling: a stream of ever longer texts does not recompute it every time.
            longer = max(length, 2 * self.table.size(0))
            self.table = self.compute(longer, device=self.table.device).to(self.table.dtype)
        return self.table[:length] if positions is None else self.table[positions]


class SinusoidalPositions(_Table):
    """Fixed sines and cosines, added to the embedding."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__(max_length, partial(sinusoids, width=width))


class RotaryPositions(_Table):
    """Cosines and sines by which attention rotates queries and keys."""

    def __init__(self, max_length: int, head_width: int, base: float) -> None:
        super().__init__(max_length, partial(rotary_table, head_width=head_width, base=base))

    def forward(self, length: int, positions: Tensor | None) -> Tensor:
        """Return (T, 2·hs), or (B, 1, T, 2·hs) for given positions; 1 broadcasts over heads."""
        rows = super().forward(length, positions)
        return rows if positions is None else rows.unsqueeze(1)


class LearnedPositions(nn.Module):
    """One trained vector per position, added to the embedding; the number of them is fixed."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.weight = nn.Parameter(torch.empty(max_length, width))

    def forward(self, length: int, positions: Tensor | None) -> Tensor:
        if length > self.max_length:
            raise HeadstartError(
                f"a text of {length} tokens; this base has learned {self.max_length} positions",
                fix=f"cut the texts to {self.max_length} tokens, or read them in windows",
            )
        return self.weight[:length] if positions is None else self.weight[positions]
