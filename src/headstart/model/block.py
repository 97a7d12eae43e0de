"""One layer of the base: attention and a feed-forward network, each with its norm."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.model.attention import KeyValueCache, SelfAttention, take
from headstart.model.config import BaseConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "swiglu": F.silu,
    "geglu": F.gelu,
    "reglu": torch.relu,
}


def make_norm(config: BaseConfig) -> nn.Module:
    """Make the norm that the config names."""
    if config.norm == "rms":
        return nn.RMSNorm(config.width, eps=config.norm_epsilon)
    return nn.LayerNorm(config.width, eps=config.norm_epsilon, bias=config.biases)


class FeedForward(nn.Module):
    """Up, activation, down. Gated kinds multiply the activation by a second projection."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.kind = config.feed_forward
        self.gated = config.gated
        projections = 2 if self.gated else 1
        inner = config.feed_forward_width
        self.up = nn.Linear(config.width, projections * inner, bias=config.biases)
        self.down = nn.Linear(inner, config.width, bias=config.biases)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # (B, T, f), or (B, T, 2f) for a gated kind
        activation = ACTIVATIONS[self.kind]
        if self.gated:
            a, b = up.chunk(2, dim=-1)
            inner = activation(a) * b
        else:
            inner = activation(up)
        return self.down(self.dropout(inner))


class Block(nn.Module):
    """Norm `after` each sum as in 2017 (the lab, BERT), or `before` each part (GPT-2, Llama)."""

    def __init__(self, config: BaseConfig, *, layer: int) -> None:
        super().__init__()
        self.norm_before = config.norm_place == "before"
        # A normalized embedding is not normalized a second time (as in ModernBERT).
        already_normed = layer == 0 and self.norm_before and config.embedding_norm
        self.attention = SelfAttention(config, layer=layer)
        self.attention_norm = nn.Identity() if already_normed else make_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        rotary: Tensor | None,
        cache: KeyValueCache | None = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """Compute (B, T, d) → (B, T, d), or (B, K, d) for the tokens `only_at` (B, K)."""
        attention_input = self.attention_norm(x) if self.norm_before else x
        attended = self.dropout(self.attention(attention_input, mask, rotary, cache, only_at))
        x = attended + (x if only_at is None else take(x, only_at))
        if self.norm_before:
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.attention_norm(x)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
