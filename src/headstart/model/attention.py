"""Attention: every token gathers from the tokens it may look at.

Two ways that give the same numbers, in bf16 but for its rounding. `fused` is PyTorch's kernel,
which never holds the T × T scores. `blocks` keeps them for the backward pass, see
`blocked_attention.py`. Which one is faster depends on the precision, the mask and the length:
`bench/attention.py` measures it.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.model.blocked_attention import attend_in_blocks
from headstart.model.config import BaseConfig
from headstart.model.fused_ops import rotate, split_heads


class KeyValueCache:
    """One pair a layer, each (B, nh, T so far, hs)."""

    def __init__(self, layers: int) -> None:
        self._pairs: list[tuple[Tensor, Tensor] | None] = [None] * layers

    @property
    def length(self) -> int:
        """How many tokens every layer has seen."""
        last = self._pairs[-1]
        return 0 if last is None else last[0].size(2)

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens' keys and values; returns those of all tokens."""
        pair = self._pairs[layer]
        if pair is not None:
            key, value = torch.cat((pair[0], key), dim=2), torch.cat((pair[1], value), dim=2)
        self._pairs[layer] = (key, value)
        return key, value


LONGEST, SHORTEST_IN_FP32 = 512, 384
Path = Literal["auto", "fused", "blocks"]


class SelfAttention(nn.Module):
    """Queries, keys and values from one product; attention; one product back."""

    def __init__(self, config: BaseConfig, *, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.heads = config.heads
        self.groups = config.heads // (config.key_value_heads or config.heads)
        self.causal = config.attention == "causal"
        self.dropout = config.dropout
        self.path: Path = "auto"
        joined = config.width + 2 * config.key_value_width
        self.query_key_value = nn.Linear(config.width, joined, bias=config.biases)
        self.output = nn.Linear(config.width, config.width, bias=config.biases)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        rotary: Tensor | None,
        cache: KeyValueCache | None = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """(B, T, d) → (B, T, d), or (B, K, d) for those tokens that are `only_at` (B, K)."""
        if only_at is not None:
            return self._gather_some(x, mask, rotary, only_at)
        batch, length, width = x.shape
        query, key, value = self._queries_keys_values(self.query_key_value(x))
        if rotary is not None:
            query, key = rotate(query, rotary), rotate(key, rotary)
        if cache is not None:
            key, value = cache.extend(self.layer, key, value)
        gathered = attend(
            query,
            key,
            value,
            mask=mask,
            causal=self.causal,
            dropout=self.dropout if self.training else 0.0,
            path=self.path,
        )
        return self.output(gathered.transpose(1, 2).reshape(batch, length, width))

    def _queries_keys_values(self, joined: Tensor) -> tuple[Tensor, ...]:
        if self.groups == 1:
            return split_heads(joined, 3, self.heads)
        width = self.output.in_features
        (query,) = split_heads(joined[..., :width], 1, self.heads)
        return (query, *self._keys_values(joined[..., width:]))

    def _keys_values(self, joined: Tensor) -> tuple[Tensor, ...]:
        """Keys and values for every head; those of a group of heads are the same."""
        found = split_heads(joined, 2, self.heads // self.groups)
        if self.groups == 1:
            return found
        return tuple(one.repeat_interleave(self.groups, 1) for one in found)

    def _gather_some(
        self, x: Tensor, mask: Tensor | None, rotary: Tensor | None, only_at: Tensor
    ) -> Tensor:
        """Keys and values of all tokens, but few queries: the other tokens are not read."""
        batch, length, width = x.shape
        weight, bias = self.query_key_value.weight, self.query_key_value.bias
        biases = (None, None) if bias is None else (bias[:width], bias[width:])
        (query,) = split_heads(F.linear(take(x, only_at), weight[:width], biases[0]), 1, self.heads)
        key, value = self._keys_values(F.linear(x, weight[width:], biases[1]))
        if rotary is not None:
            # (T, ·) where all rows stand at the same positions, else (B, 1, T, ·)
            angles = rotary[only_at] if rotary.dim() == 2 else take(rotary[:, 0], only_at)
            query, key = rotate(query, angles.unsqueeze(1)), rotate(key, rotary)
        if mask is not None and mask.size(-2) > 1:
            lines = mask.expand(batch, 1, length, length)[:, 0]
            mask = take(lines, only_at).unsqueeze(1)  # (B, 1, K, T)
        elif mask is None and self.causal:
            mask = torch.arange(length, device=x.device) <= only_at[:, None, :, None]
        gathered = attend(
            query,
            key,
            value,
            mask=mask,
            dropout=self.dropout if self.training else 0.0,
            path=self.path,
        )
        return self.output(gathered.transpose(1, 2).reshape(batch, only_at.size(1), width))


def take(rows: Tensor, at: Tensor) -> Tensor:
    """Some places of each row: (B, T, ·) and (B, K) → (B, K, ·)"""
    batch, length = rows.shape[:2]
    first = torch.arange(batch, device=rows.device).unsqueeze(1) * length
    # As one long row: the gradient of selecting from it is made in whole vectors.
    found = rows.flatten(0, 1).index_select(0, (first + at).flatten())
    return found.view(batch, at.size(1), *rows.shape[2:])


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    path: Path = "auto",
) -> Tensor:
    """softmax(query · keyᵀ / √hs) · value, by the faster path. All are (B, nh, T, hs).

    A `mask` has taken `causal` in already; without one, queries and keys are the same tokens.
    """
    causal = causal and query.size(-2) == key.size(-2)
    if path == "auto":
        path = faster_path(query, key, causal=causal)
    if path == "blocks":
        return attend_in_blocks(query, key, value, mask=mask, causal=causal, dropout=dropout)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal and mask is None
    )


def faster_path(query: Tensor, key: Tensor, *, causal: bool) -> Literal["fused", "blocks"]:
    """The path for this length, precision and mask. A fixed rule, so that reruns are exact.

    On the CPU, blocks win in bf16, and in fp32 where a gradient is wanted under the square mask
    and rows are long enough to make use of it. What they keep for the gradient grows with the
    square of the length, so the longest rows are left to the kernel.
    """
    length, training = query.size(-2), query.requires_grad
    if query.device.type != "cpu" or length * key.size(-2) > LONGEST**2:
        return "fused"
    if query.dtype == torch.bfloat16:
        return "blocks"
    return "blocks" if training and causal and length >= SHORTEST_IN_FP32 else "fused"
