"""One layer of the base: attention, then a feed-forward network, each with its norm."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.model.attention import KeyValueCache, SelfAttention, take
from headstart.model.config import BaseConfig
from headstart.model.fused_ops import RMSNorm, gate

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
}


def make_norm(config: BaseConfig) -> nn.Module:
    """The norm that the config names, over the width of the base."""
    if config.norm == "rms":
        return RMSNorm(config.width, eps=config.norm_epsilon)
    return nn.LayerNorm(config.width, eps=config.norm_epsilon, bias=config.biases)


class FeedForward(nn.Module):
    """Each token by itself: up, activation, down. Gated kinds multiply by a second way up."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.kind = config.feed_forward
        self.gated = config.gated
        ways_up = 2 if self.gated else 1
        self.up = nn.Linear(config.width, ways_up * config.feed_forward_width, bias=config.biases)
        self.down = nn.Linear(config.feed_forward_width, config.width, bias=config.biases)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # (B, T, f), or (B, T, 2f) for a gated kind
        inner = gate(up, self.kind) if self.gated else ACTIVATIONS[self.kind](up)
        return self.down(self.dropout(inner))


class Block(nn.Module):
    """Norm `after` each sum as in 2017 (the lab, BERT), or `before` each part as today."""

    def __init__(self, config: BaseConfig, *, layer: int) -> None:
        super().__init__()
        self.norm_before = config.norm_place == "before"
        # A normed embedding is not normed a second time (as in ModernBERT).
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
        """(B, T, d) → (B, T, d), or (B, K, d) for those tokens that are `only_at` (B, K)."""
        seen = self.attention_norm(x) if self.norm_before else x
        gathered = self.dropout(self.attention(seen, mask, rotary, cache, only_at))
        x = gathered + (x if only_at is None else take(x, only_at))
        if self.norm_before:
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.attention_norm(x)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
