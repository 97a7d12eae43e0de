"""The base: a Transformer without a head. Tokens go in, hidden states come out."""

import math

import torch
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.model.attention import KeyValueCache
from headstart.model.block import Block, make_norm
from headstart.model.config import BaseConfig
from headstart.model.mask import layout, local_mask, square_mask
from headstart.model.positions import LearnedPositions, RotaryPositions, SinusoidalPositions


class Transformer(nn.Module):
    """Embedding (+ positions) → blocks → hidden states, as `config` says.

    `segments` (B, T) says which tokens are real: 0 is padding, 1 the row's text; packed rows
    number their texts 1, 2, 3 … and no text sees another. A boolean mask of the real tokens is
    the simplest case. Without it every token is real. With a `cache` (causal bases, one text per
    row) the tokens continue those that it holds. Pass `only_at` (B, K), places of each row, if
    just these tokens are needed: the last block then computes only them, (B, K, d).
    """

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        self.scale = math.sqrt(config.width) if config.embedding_scale else 1.0
        self.token_types = (
            nn.Embedding(config.token_types, config.width) if config.token_types else None
        )
        self.positions = _added_positions(config)
        self.rotary = (
            RotaryPositions(config.max_length, config.head_width, config.rotary_base)
            if config.positions == "rotary"
            else None
        )
        self.local_rotary = (
            RotaryPositions(config.max_length, config.head_width, config.local_rotary_base)
            if config.local_window
            else None
        )
        self.embedding_norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, layer=number) for number in range(config.layers))
        # Blocks with the norm before leave their sum unnormed.
        self.final_norm = make_norm(config) if config.norm_place == "before" else nn.Identity()

    def forward(
        self,
        tokens: Tensor,
        segments: Tensor | None = None,
        token_types: Tensor | None = None,
        cache: KeyValueCache | None = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        mask, positions = layout(segments, causal=self.config.attention == "causal")
        past, length = (0, 0) if cache is None else (cache.length, cache.length + tokens.size(1))
        if past:  # the new tokens stand behind those in the cache, and see them all
            mask = square_mask(length, device=tokens.device)[past:]  # (new, T)
            positions = torch.arange(past, length, device=tokens.device).unsqueeze(0)
        x = self.embed(tokens, positions, token_types)  # (B, T, d)
        length = max(length, tokens.size(1))
        rotary = None if self.rotary is None else self.rotary(length, positions)
        near, turned = mask, rotary
        if self.local_rotary is not None:
            near = local_mask(mask, tokens, self.config.local_window)
            turned = self.local_rotary(length, positions)
        for number, block in enumerate(self.blocks):
            local = self.config.is_local(number)
            last = number == self.config.layers - 1
            sight = (near, turned) if local else (mask, rotary)
            x = block(x, *sight, cache, only_at if last else None)
        return self.final_norm(x)

    def embed(self, tokens: Tensor, positions: Tensor | None, token_types: Tensor | None) -> Tensor:
        """What the first block sees: the tokens' vectors, with their places and kinds added."""
        try:
            x = self.embedding(tokens) * self.scale
        except IndexError:
            raise HeadstartError(
                f"token {int(tokens.max())} is outside of the vocabulary: this base has "
                f"{self.config.vocab_size:,} pieces, numbered from 0",
                fix="use the tokenizer that the base was trained with",
            ) from None
        if self.positions is not None:
            last = tokens.size(1) if positions is None else int(positions.max()) + 1
            x = x + self.positions(max(last, tokens.size(1)), positions)
        if self.token_types is not None:
            one_kind = token_types is None or self.config.token_types == 1
            kinds = torch.zeros_like(tokens) if one_kind else token_types
            x = x + self.token_types(kinds)
        return self.dropout(self.embedding_norm(x))


def _added_positions(config: BaseConfig) -> nn.Module | None:
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.max_length, config.width)
    if config.positions == "learned":
        return LearnedPositions(config.max_length, config.width, offset=config.position_offset)
    return None
