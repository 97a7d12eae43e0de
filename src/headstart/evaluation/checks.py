"""Labels and probabilities are looked at before any number is made from them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-3  # how far from 1 a row may sum: fp32 and half-precision softmax stay well inside


def checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
    """Rows × classes of probabilities, normed in double precision, and the rows' class numbers."""
    p, y = checked_scores(probabilities, labels)
    sums = p.sum(axis=1, keepdims=True)
    if (p < 0).any() or (abs(sums - 1) > TOLERANCE).any():
        raise ValueError("probabilities must be at least 0 and sum to 1 in every row")
    return p / sums, y


def checked_scores(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
    """Rows × classes of any finite scores (logits, say) and the rows' class numbers."""
    s, y = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    if s.ndim != 2 or s.shape[1] < 2 or y.shape != s.shape[:1]:
        raise ValueError(f"need (rows, classes) and (rows,), not {s.shape} and {y.shape}")
    if not len(y):
        raise ValueError("there are no rows to evaluate")
    if not np.isfinite(s).all():
        raise ValueError("scores must be finite; there is a NaN or an infinity")
    if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= s.shape[1]:
        raise ValueError(f"labels must be whole numbers from 0 to {s.shape[1] - 1}")
    return s, y.astype(np.int64)
