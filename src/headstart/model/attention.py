"""Self-attention.

Two implementations with the same results up to rounding: PyTorch's fused kernel, and the plain
formula for bf16 on the CPU. With the kernel, a training step in bf16 takes longer by 13 to 39 %
(lengths of 128 tokens).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.model.config import BaseConfig
from headstart.model.mask import causal_mask
from headstart.model.positions import rotate

LONGEST_PLAIN = 512  # tokens; the plain formula holds T × T scores per head
# Keys and values of the tokens so far, (B, nh, T, hs) each, by the number of the layer.
KeyValueCache = dict[int, tuple[Tensor, Tensor]]


class SelfAttention(nn.Module):
    """Multi-head self-attention; queries, keys and values come from one linear layer."""

    def __init__(self, config: BaseConfig, *, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.heads = config.heads
        self.head_width = config.head_width
        self.causal = config.attention == "causal"
        self.dropout = config.dropout
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=config.biases)
        self.output = nn.Linear(config.width, config.width, bias=config.biases)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        rotary: Tensor | None,
        cache: KeyValueCache | None = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """Compute (B, T, d) → (B, T, d), or (B, K, d) for the tokens `only_at` (B, K)."""
        if only_at is None:
            joined = _split_heads(self.query_key_value(x), self.head_width)
            query_key, value = joined[:, : 2 * self.heads], joined[:, 2 * self.heads :]
            if rotary is not None:
                query_key = rotate(query_key, rotary)
            query, key = query_key[:, : self.heads], query_key[:, self.heads :]
        else:  # keys and values of all tokens, few queries
            width = x.size(2)
            weight, bias = self.query_key_value.weight, self.query_key_value.bias
            biases = (None, None) if bias is None else (bias[:width], bias[width:])
            some = F.linear(take(x, only_at), weight[:width], biases[0])
            query = _split_heads(some, self.head_width)  # (B, nh, K, hs)
            joined = _split_heads(F.linear(x, weight[width:], biases[1]), self.head_width)
            key, value = joined.chunk(2, dim=1)
            if rotary is not None:
                rows = rotary[only_at] if rotary.dim() == 2 else take(rotary[:, 0], only_at)
                query, key = rotate(query, rows.unsqueeze(1)), rotate(key, rotary)
            if mask is None and self.causal:
                mask = causal_mask(x.size(1), device=x.device)[only_at].unsqueeze(1)
            elif mask is not None and mask.size(-2) > 1:
                mask = take(mask[:, 0], only_at).unsqueeze(1)  # (B, 1, K, T)
        if cache is not None:
            if self.layer in cache:
                old_key, old_value = cache[self.layer]
                key, value = torch.cat((old_key, key), dim=2), torch.cat((old_value, value), dim=2)
            cache[self.layer] = key, value
        attended = attend(
            query,
            key,
            value,
            mask=mask,
            causal=self.causal and only_at is None,
            dropout=self.dropout if self.training else 0.0,
        )
        return self.output(attended.transpose(1, 2).flatten(2))


def _split_heads(x: Tensor, head_width: int) -> Tensor:
    """(B, T, nh · hs) → (B, nh, T, hs)"""
    return x.unflatten(-1, (-1, head_width)).transpose(1, 2)


def take(rows: Tensor, at: Tensor) -> Tensor:
    """Select places of each row: (B, T, ·) and (B, K) → (B, K, ·)."""
    batch, length = rows.shape[:2]
    first = torch.arange(batch, device=rows.device).unsqueeze(1) * length
    # index_select on the flattened rows has a faster gradient than gather.
    taken = rows.flatten(0, 1).index_select(0, (first + at).flatten())
    return taken.view(batch, at.size(1), *rows.shape[2:])


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Compute softmax(query · keyᵀ / √hs) · value, each (B, nh, T, hs).

    `mask` broadcasts to (B, nh, T, T) and is True where a query may attend to a key, the causal
    mask included. Without one, `causal` hides later tokens from queries of the same tokens.
    """
    small = query.size(-2) * key.size(-2) <= LONGEST_PLAIN**2
    if query.dtype == torch.bfloat16 and query.device.type == "cpu" and small:
        if mask is None and causal:
            mask = causal_mask(query.size(-2))
        scores = (query * query.size(-1) ** -0.5) @ key.mT  # (B, nh, T, T)
        if mask is not None:  # a sum, because the gradient of masked_fill is another pass
            hidden = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill_(~mask, float("-inf"))
            scores = scores + hidden
        return F.dropout(scores.softmax(dim=-1), dropout) @ value
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal and mask is None
    )
