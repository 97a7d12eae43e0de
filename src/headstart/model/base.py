"""The base: a Transformer without a head. Tokens in, hidden states out.

A block is attention and a feed-forward network, each with its norm; the base is an embedding and a
stack of blocks.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.model.attention import KeyValueCache, SelfAttention, take
from headstart.model.config import BaseConfig
from headstart.model.mask import attention_layout, causal_mask
from headstart.model.positions import LearnedPositions, RotaryPositions, SinusoidalPositions

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "swiglu": F.silu,
    "geglu": F.gelu,
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
        self.activation, self.gated = ACTIVATIONS[config.feed_forward], config.gated
        inner = config.feed_forward_width
        self.up = nn.Linear(config.width, (1 + self.gated) * inner, bias=config.biases)
        self.down = nn.Linear(inner, config.width, bias=config.biases)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        up = self.up(x)  # (B, T, f), or (B, T, 2f) for a gated kind
        if self.gated:
            gate, inner = up.chunk(2, dim=-1)
            inner = self.activation(gate) * inner
        else:
            inner = self.activation(up)
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


class Transformer(nn.Module):
    """Embedding (+ positions) → blocks → hidden states."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        self.scale = math.sqrt(config.width) if config.embedding_scale else 1.0
        self.positions: SinusoidalPositions | LearnedPositions | None = None
        self.token_types = self.rotary = None
        if config.token_types:
            self.token_types = nn.Embedding(config.token_types, config.width)
        if config.positions == "sinusoidal":
            self.positions = SinusoidalPositions(config.max_length, config.width)
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.max_length, config.width)
        elif config.positions == "rotary":
            self.rotary = RotaryPositions(config.max_length, config.head_width, config.rotary_base)
        self.embedding_norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer=number) for number in range(config.layers))
        # Blocks with the norm before leave their sum without one.
        self.final_norm = make_norm(config) if config.norm_place == "before" else nn.Identity()

    def forward(
        self,
        tokens: Tensor,
        segments: Tensor | None = None,
        token_types: Tensor | None = None,
        cache: Any = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """Compute hidden states (B, T, d) of tokens (B, T).

        Parameters
        ----------
        segments : Tensor of shape (B, T), optional
            0 is padding, 1 the row's text; packed rows number their texts 1, 2, 3 … and no text
            sees another. A boolean mask of the real tokens works too. By default all are real.
        cache : optional
            From `new_cache`: the tokens continue those in it. For causal bases, one text per row.
        only_at : Tensor of shape (B, K), optional
            The last block computes only these positions of each row; returns (B, K, d).
        """
        mask, positions = attention_layout(segments, causal=self.config.attention == "causal")
        length = tokens.size(1)
        if cache:
            past = cache[0][0].size(2)
            length += past
            mask = causal_mask(length, device=tokens.device)[past:]  # (new, T)
            positions = torch.arange(past, length, device=tokens.device).unsqueeze(0)
        x = self.embed(tokens, length, positions, token_types)  # (B, T, d)
        rotary = None if self.rotary is None else self.rotary(length, positions)
        for number, block in enumerate(self.blocks):
            last = number == self.config.layers - 1
            x = block(x, mask, rotary, cache, only_at if last else None)
        return self.final_norm(x)

    def new_cache(self) -> Any:
        """Make an empty cache of keys and values for `forward`."""
        return {}

    def stock_layers(self, kind: str, outputs: int) -> tuple[nn.Module, nn.Linear]:
        """Make the layers of a head of `transformers`; only its own models have some."""
        raise HeadstartError(f"this base has no {kind} head of transformers", code="config")

    def embed(
        self, tokens: Tensor, length: int, positions: Tensor | None, token_types: Tensor | None
    ) -> Tensor:
        """Compute the input of the first block; `positions` None means 0, 1, 2, … in every row."""
        x = self.embedding(tokens) * self.scale
        if self.positions is not None:
            x = x + self.positions(length, positions)
        if self.token_types is not None:
            if token_types is None or self.config.token_types == 1:
                token_types = torch.zeros_like(tokens)
            x = x + self.token_types(token_types)
        return self.dropout(self.embedding_norm(x))
