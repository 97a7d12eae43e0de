"""Where a token stands. Attention alone sees a bag of tokens; these tell it the order.

- `SinusoidalPositions`: computed waves, added to the embedding (Vaswani et al. 2017; the lab).
- `LearnedPositions`: a trained vector for each position, added to the embedding (BERT, GPT-2).
- `RotaryPositions`: queries and keys are turned by an angle that grows with the position, so
  that their product depends on the distance (Su et al. 2021; Llama, ModernBERT).

The computed kinds hold no parameters, are not saved, and grow with the texts they meet.
"""

import math

import torch
from torch import Tensor, nn

from headstart.errors import HeadstartError


def sinusoids(length: int, width: int, *, device: torch.device | None = None) -> Tensor:
    """Sines on the even and cosines on the odd columns, from fast waves to slow ones: (T, d)."""
    position = torch.arange(length, dtype=torch.float32, device=device).unsqueeze(1)  # (T, 1)
    even = torch.arange(0, width, 2, dtype=torch.float32, device=device)
    angle = position * torch.exp(even * (-math.log(10_000.0) / width))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # (T, d/2, 2) -> (T, d)


def rotary_angles(length: int, width: int, base: float, *, device: torch.device | None) -> Tensor:
    """The angle of each position and pair of numbers, for both halves of a head: (T, hs)."""
    position = torch.arange(length, dtype=torch.float32, device=device).unsqueeze(1)
    even = torch.arange(0, width, 2, dtype=torch.float32, device=device)
    angle = position / base ** (even / width)  # (T, hs/2)
    return torch.cat((angle, angle), dim=-1)


class _Table(nn.Module):
    """A computed table (positions × width) that is made once and again only to grow."""

    table: Tensor

    def __init__(self, max_length: int) -> None:
        super().__init__()
        self.register_buffer("table", self.compute(max_length, None), persistent=False)

    def compute(self, length: int, device: torch.device | None) -> Tensor:
        raise AssertionError(f"{type(self).__name__} must say how its table is computed")

    def rows(self, length: int, positions: Tensor | None) -> Tensor:
        """The rows of 0 … length-1 (T, ·), or those of `positions` (B, T, ·)."""
        if length > self.table.size(0):
            # Doubling keeps a stream of ever longer texts from computing it every time.
            longer = max(length, 2 * self.table.size(0))
            self.table = self.compute(longer, self.table.device).to(self.table.dtype)
        return self.table[:length] if positions is None else self.table[positions]


class SinusoidalPositions(_Table):
    """Fixed waves (Vaswani et al. 2017), added to the embedding."""

    def __init__(self, max_length: int, width: int) -> None:
        self.width = width
        super().__init__(max_length)

    def compute(self, length: int, device: torch.device | None) -> Tensor:
        return sinusoids(length, self.width, device=device)

    def forward(self, length: int, positions: Tensor | None) -> Tensor:
        return self.rows(length, positions)


class LearnedPositions(nn.Module):
    """One trained vector per position, added to the embedding; there is a last one."""

    def __init__(self, max_length: int, width: int, *, offset: int = 0) -> None:
        super().__init__()
        self.max_length, self.offset = max_length, offset
        self.weight = nn.Parameter(torch.empty(offset + max_length, width))

    def forward(self, length: int, positions: Tensor | None) -> Tensor:
        if length > self.max_length:
            raise HeadstartError(
                f"a text of {length} tokens; this base has learned {self.max_length} positions",
                fix=f"cut the texts to {self.max_length} tokens, or read them in windows",
            )
        if positions is None:
            return self.weight[self.offset : self.offset + length]
        return self.weight[self.offset + positions]


class RotaryPositions(_Table):
    """Cosines and sines by which attention turns queries and keys (Su et al. 2021)."""

    def __init__(self, max_length: int, head_width: int, base: float) -> None:
        self.head_width, self.base = head_width, base
        super().__init__(max_length)

    def compute(self, length: int, device: torch.device | None) -> Tensor:
        angles = rotary_angles(length, self.head_width, self.base, device=device)
        return torch.cat((angles.cos(), angles.sin()), dim=-1)  # (T, 2·hs)

    def forward(self, length: int, positions: Tensor | None) -> Tensor:
        """Cosines and sines side by side, with room for the heads: (T, 2·hs) or (B, 1, T, 2·hs)."""
        rows = self.rows(length, positions)
        return rows if positions is None else rows.unsqueeze(1)
