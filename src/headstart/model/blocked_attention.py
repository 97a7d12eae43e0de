"""Attention in blocks of queries, with a gradient of its own.

PyTorch's fused kernel never holds the T × T probabilities, and pays for it when training: its
backward pass computes them a second time, and in bf16 on a CPU it is slow at the lengths that are
trained here. This one keeps them, a block of queries of some texts at a time, which stays in the
cache. Under the square mask a block does not even look at the keys behind it: with four blocks,
three eighths of the products are never computed. `bench/attention.py` measures both. In bf16 the
scores are rounded before the softmax, which the fused kernel keeps in fp32.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headstart.model.mask import square_mask

# Queries of a block: fewer save more products, more make larger and thus faster ones.
BLOCK = {torch.bfloat16: 128, torch.float32: 64}
MOST_SCORES = 1 << 20  # of a piece, over all of its heads


class Piece(NamedTuple):
    """What is computed at once: some texts, a block of queries, and the keys that it may see."""

    texts: slice
    queries: slice
    keys: slice


def pieces(query: Tensor, key: Tensor, *, causal: bool) -> Iterator[Piece]:
    """All pieces, the last queries of some texts first: their keys are all keys.

    The size of a block depends on the sizes alone, so a backward pass finds the same pieces.
    """
    batch, heads, length, _ = query.shape
    keys = key.size(-2)
    whole = max(1, length)
    block = min(whole, BLOCK.get(query.dtype, whole)) if causal else whole
    if heads * block * keys > MOST_SCORES:  # of a single text
        block = min(block, max(1, MOST_SCORES // (heads * keys)))
    texts = max(1, MOST_SCORES // max(1, heads * block * keys))
    for text in range(0, batch, texts):
        for first in reversed(range(0, length, block)):
            last = min(length, first + block)
            seen = slice(0, last if causal else keys)
            yield Piece(slice(text, min(batch, text + texts)), slice(first, last), seen)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool,
        dropout: float,
    ) -> Tensor:
        scale = query.size(-1) ** -0.5
        # Rows of a product must lie side by side, which parts of one joined product do not.
        query, key, value = (query * scale).contiguous(), key.contiguous(), value.contiguous()
        gathered = torch.empty_like(query)
        hidden = None if mask is None else _hidden(mask, query.size(0))
        future = ~square_mask(query.size(-2), device=query.device) if causal else None
        keep = any(context.needs_input_grad)
        kept = []
        with torch.autocast(query.device.type, enabled=False):
            for piece in pieces(query, key, causal=causal):
                texts, queries, keys = piece
                scores = _product(query[texts, :, queries], key[texts, :, keys].mT)
                if hidden is not None:
                    rows = queries if hidden.size(2) > 1 else slice(None)
                    scores.masked_fill_(hidden[texts, :, rows, keys], float("-inf"))
                elif future is not None:
                    scores[..., queries].masked_fill_(future[queries, queries], float("-inf"))
                chances = scores.softmax(-1)
                survivors = _scaled_survivors(chances, dropout) if dropout else None
                if keep:
                    kept += [chances] if survivors is None else [chances, survivors]
                if survivors is not None:
                    chances = chances * survivors
                gathered[texts, :, queries] = _product(chances, value[texts, :, keys])
        context.save_for_backward(query, key, value, *kept)
        context.scale, context.causal, context.dropout = scale, causal, dropout
        return gathered

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *kept = context.saved_tensors
        gradient = gradients[0].contiguous()
        into_query, into_key, into_value = (torch.empty_like(one) for one in (query, key, value))
        remaining = iter(kept)
        with torch.autocast(query.device.type, enabled=False):
            for texts, queries, keys in pieces(query, key, causal=context.causal):
                chances = used = next(remaining)
                incoming = gradient[texts, :, queries]
                into_chances = _product(incoming, value[texts, :, keys].mT)
                if context.dropout:
                    survivors = next(remaining)
                    used = chances * survivors
                    into_chances = into_chances * survivors
                into_scores = torch.ops.aten._softmax_backward_data(
                    into_chances, chances, -1, chances.dtype
                )
                into_query[texts, :, queries] = _product(into_scores, key[texts, :, keys])
                parts = (
                    (into_key[texts, :, keys], _product(into_scores.mT, query[texts, :, queries])),
                    (into_value[texts, :, keys], _product(used.mT, incoming)),
                )
                for whole, part in parts:
                    # The first block of a text reaches all of its keys: it writes, later ones add.
                    whole.copy_(part) if queries.stop == query.size(-2) else whole.add_(part)
        return into_query.mul_(context.scale), into_key, into_value, None, None, None


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Both are (B, nh, ·, ·); one product for each text and head."""
    product = torch.bmm(left.flatten(0, 1), right.flatten(0, 1))
    return product.view(*left.shape[:2], *product.shape[1:])


def _hidden(mask: Tensor, batch: int) -> Tensor:
    """Who may not look, for every text: (B, 1, T or 1, T)."""
    hidden = ~mask[(None,) * (4 - mask.dim())]
    return hidden.expand(batch, *hidden.shape[1:])


def _scaled_survivors(chances: Tensor, dropout: float) -> Tensor:
    """What to multiply by: 0 for what is dropped, and the rest makes up for it."""
    return torch.empty_like(chances).bernoulli_(1 - dropout).div_(1 - dropout)


def attend_in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """softmax(query · keyᵀ / √hs) · value; all are (B, nh, T, hs).

    `mask`, which broadcasts to (B, 1, T or 1, T), says who may look. If `causal`, queries and keys
    are the same tokens, and the mask, where there is one, hides the future already.
    """
    gathered: Tensor = _Attend.apply(query, key, value, mask, causal, dropout)
    return gathered
