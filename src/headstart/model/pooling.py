"""From a text's hidden states to one vector: only its real tokens count, wherever they stand."""

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.model.config import Pooling


def pool(hidden: Tensor, segments: Tensor | None, how: Pooling) -> Tensor:
    """(B, T, d) → (B, d), or (B, 2d) for `mean+max`."""
    real = _real(hidden, segments)
    place = _place(real, how)
    if place is not None:
        return hidden[torch.arange(hidden.size(0), device=hidden.device), place]
    if how == "mean":
        return _mean(hidden, real)
    if how == "max":
        return _max(hidden, real)
    return torch.cat((_mean(hidden, real), _max(hidden, real)), dim=-1)


def join_windows(vectors: Tensor, sizes: Tensor, owners: Tensor, how: Pooling) -> Tensor:
    """The vectors of texts from those of their windows, as if each text had been pooled whole.

    Parameters
    ----------
    vectors : Tensor of shape (W, d)
        What `pool` gave for each window.
    sizes : Tensor of shape (W,)
        Tokens of each window: a mean over all tokens weights its windows by them.
    owners : Tensor of shape (W,)
        The text of each window: 0, 0, 1, 2, 2, …
    how : str
        `last` and `first` average the windows' tokens; `max` takes the largest.

    Returns
    -------
    Tensor of shape (B, d)
    """
    if how == "mean+max":
        means, maxima = vectors.chunk(2, dim=-1)
        parts = (
            join_windows(means, sizes, owners, "mean"),
            join_windows(maxima, sizes, owners, "max"),
        )
        return torch.cat(parts, dim=-1)
    texts = int(owners[-1]) + 1
    joined = vectors.new_zeros(texts, vectors.size(-1))
    if how == "max":
        index = owners.unsqueeze(-1).expand_as(vectors)
        return joined.scatter_reduce(0, index, vectors, "amax", include_self=False)
    weights = sizes.to(vectors.dtype) if how == "mean" else torch.ones_like(vectors[:, 0])
    total = torch.zeros_like(joined[:, 0]).index_add(0, owners, weights)
    share = (weights / total[owners]).unsqueeze(-1)
    return joined.index_add(0, owners, vectors * share)


def pooled_place(tokens: Tensor, segments: Tensor | None, how: Pooling) -> Tensor | None:
    """Where the one token stands that is read of each row (B); None where all of them are."""
    return _place(_real(tokens, segments), how)


def asked_places(
    positions: Tensor, tokens: Tensor, first: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Which places of each row are asked for, and where these then stand.

    Parameters
    ----------
    positions : Tensor of shape (N,)
        In the flattened batch (B·T), each once.
    tokens : Tensor of shape (B, T)
    first : Tensor of shape (B,), optional
        A place of each row that is read for something else; it becomes the first.

    Returns
    -------
    Tensor of shape (B, K)
        Rows that are asked less often give their first token again, which nobody reads. K is a
        multiple of eight: products of few different sizes are prepared once.
    Tensor of shape (N,)
        The positions, now in B·K.
    """
    batch, length = tokens.shape
    rows = positions // length
    order = rows.argsort(stable=True)
    counts = rows.bincount(minlength=batch)
    before = (counts.cumsum(0) - counts)[rows[order]]
    number = torch.empty_like(rows)  # of each position, within its row
    number[order] = torch.arange(len(rows), device=rows.device) - before
    if first is not None:
        number += 1
        counts += 1
    most = max(8, -(-int(counts.max()) // 8) * 8)
    places = rows.new_zeros(batch, most)
    if first is not None:
        places[:, 0] = first
    places[rows, number] = positions % length
    return places, rows * most + number


def window_sizes(tokens: Tensor, segments: Tensor | None) -> Tensor:
    """How many real tokens each row has: (B,)."""
    if segments is None:
        return torch.full((tokens.size(0),), tokens.size(1), device=tokens.device)
    return (segments > 0).sum(dim=1)


def _real(rows: Tensor, segments: Tensor | None) -> Tensor:
    """Which tokens are not padding: (B, T)."""
    if segments is None:
        return torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
    real = segments > 0
    if not bool(real.any(dim=1).all()):
        raise HeadstartError("a text without a single token cannot be pooled")
    return real


def _place(real: Tensor, how: Pooling) -> Tensor | None:
    """`last` is the last *real* token, which under the square mask is the only one that has seen
    the whole text; reading a padding position instead is a classic mistake.
    """
    if how == "first":
        return real.int().argmax(dim=1)
    if how == "last":
        return real.size(1) - 1 - real.flip(1).int().argmax(dim=1)
    return None


def _mean(hidden: Tensor, real: Tensor) -> Tensor:
    # where, not a product: a padding position may hold anything, even NaN
    kept = torch.where(real.unsqueeze(-1), hidden, 0.0)
    return kept.sum(dim=1) / real.sum(dim=1, keepdim=True).to(hidden.dtype)


def _max(hidden: Tensor, real: Tensor) -> Tensor:
    return hidden.masked_fill(~real.unsqueeze(-1), float("-inf")).amax(dim=1)
