"""Pooling: from the hidden states of a text to one vector. Padding never counts."""

import torch
from torch import Tensor

from headstart.config import Pooling
from headstart.errors import HeadstartError


def pool(hidden: Tensor, segments: Tensor | None, how: Pooling) -> Tensor:
    """Pool (B, T, d) to (B, d), or to (B, 2d) for `mean+max`."""
    if how == "mean+max":
        mean, largest = pool(hidden, segments, "mean"), pool(hidden, segments, "max")
        return torch.cat((mean, largest), dim=-1)
    position = pooled_position(hidden, segments, how)
    if position is not None:
        return hidden[torch.arange(hidden.size(0), device=hidden.device), position]
    real = real_tokens(hidden, segments)
    if how == "max":
        return hidden.masked_fill(~real.unsqueeze(-1), float("-inf")).amax(dim=1)
    # where instead of a product: a padding position may hold anything, even NaN
    visible = torch.where(real.unsqueeze(-1), hidden, 0.0)
    return visible.sum(dim=1) / real.sum(dim=1, keepdim=True).to(hidden.dtype)


def pooled_position(rows: Tensor, segments: Tensor | None, how: Pooling) -> Tensor | None:
    """Return the one position (B,) that `how` reads from each row, or None if it reads all.

    `last` is the last *real* token, the only one that sees the whole text under a causal mask.
    Reading the last position instead, which may be padding, is a common mistake.
    """
    if how not in ("first", "last"):
        return None
    real = real_tokens(rows, segments).int()
    if how == "first":
        return real.argmax(dim=1)
    return real.size(1) - 1 - real.flip(1).argmax(dim=1)


def real_tokens(rows: Tensor, segments: Tensor | None) -> Tensor:
    """Return which tokens of rows (B, T) or (B, T, d) are not padding: (B, T)."""
    if segments is None:
        return torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
    real = segments > 0
    if not torch.compiler.is_exporting() and not bool(real.any(dim=1).all()):
        raise HeadstartError("a text without tokens cannot be pooled")
    return real


def join_windows(vectors: Tensor, sizes: Tensor, owners: Tensor, how: Pooling) -> Tensor:
    """Combine the pooled vectors of windows, as if each text had been pooled as a whole.

    `vectors` (W, d) are results of `pool`; `sizes` (W,) are the tokens of each window, the weights
    of a mean over all tokens; `owners` (W,) are the texts of the windows: 0, 0, 1, 2, 2, …
    `last` and `first` average the windows' vectors; `max` takes the largest values.

    The result is (B, d), in an exported graph (W, d), because its sizes depend on no values.
    """
    if how == "mean+max":
        means, maxima = vectors.chunk(2, dim=-1)
        means = join_windows(means, sizes, owners, "mean")
        return torch.cat((means, join_windows(maxima, sizes, owners, "max")), dim=-1)
    texts = vectors.size(0) if torch.compiler.is_exporting() else int(owners[-1]) + 1
    joined = vectors.new_zeros(texts, vectors.size(-1))
    if how == "max":
        index = owners.unsqueeze(-1).expand_as(vectors)
        return (joined - torch.inf).scatter_reduce(0, index, vectors, "amax")
    weights = sizes.to(vectors.dtype) if how == "mean" else torch.ones_like(vectors[:, 0])
    total = torch.zeros_like(joined[:, 0]).index_add(0, owners, weights)
    share = (weights / total[owners]).unsqueeze(-1)
    return joined.index_add(0, owners, vectors * share)


def positions_per_row(
    positions: Tensor, tokens: Tensor, first: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Group positions (N,) of a flattened batch (B·T), each once, by the rows of `tokens` (B, T).

    `first` (B,) is a further position of each row, placed in column 0 of the result.

    Returns
    -------
    Tensor of shape (B, K)
        The positions within each row. Rows with fewer positions are filled with 0. K is a multiple
        of 8, because matrix products of few different sizes are faster.
    Tensor of shape (N,)
        The index of each input position in the flattened result (B·K).
    """
    batch, length = tokens.shape
    rows = positions // length
    order = rows.argsort(stable=True)
    counts = rows.bincount(minlength=batch)
    before = (counts.cumsum(0) - counts)[rows[order]]
    column = torch.empty_like(rows)
    column[order] = torch.arange(len(rows), device=rows.device) - before
    if first is not None:
        column += 1
        counts += 1
    most = max(8, -(-int(counts.max()) // 8) * 8)
    grouped = rows.new_zeros(batch, most)
    if first is not None:
        grouped[:, 0] = first
    grouped[rows, column] = positions % length
    return grouped, rows * most + column
