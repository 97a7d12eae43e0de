"""The matrix products of a training step alone: a lower bound of its time."""

import time

import torch

from headstart.model.presets import preset


def seconds(
    name: str, kind: str, sizes: dict[str, int], tokens: int, share: float, dtype: torch.dtype
) -> float:
    """Time the products of a step: one forward, two backward (for input and weight)."""
    base = preset(name, objective="causal" if kind == "causal" else "masked", **sizes).base
    ways_up = 2 if base.gated else 1
    shapes = [
        (tokens, base.width, 3 * base.width),
        (tokens, base.width, base.width),
        (tokens, base.width, ways_up * base.feed_forward_width),
        (tokens, base.feed_forward_width, base.width),
    ] * base.layers
    shapes.append((round(tokens * share), base.width, base.vocab_size))
    total = 0.0
    for rows, inner, columns in shapes:
        x, w = torch.randn(rows, inner).to(dtype), torch.randn(columns, inner).to(dtype)
        chunk = min(rows, 256) if columns == base.vocab_size else rows
        out = torch.empty(chunk, columns, dtype=dtype)
        into_x, into_w = torch.empty(chunk, inner, dtype=dtype), torch.zeros_like(w)
        for repetition in range(2):  # the first one warms up
            start = time.perf_counter()
            for first in range(0, rows - chunk + 1, chunk):
                part = x[first : first + chunk]
                torch.mm(part, w.t(), out=out)
                torch.mm(out, w, out=into_x)
                torch.mm(out.t(), part, out=into_w)
            if repetition:
                total += time.perf_counter() - start
    return total
