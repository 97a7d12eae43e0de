"""PPMI-SVD embeddings: token vectors from co-occurrence counts, in seconds.

1. `count_pairs` counts how often two tokens occur within `window` tokens of each other.
2. `positive_pmi` compares these counts with independence (positive pointwise mutual information).
   Context counts are smoothed, so that rare contexts do not get high values by chance (Levy,
   Goldberg and Dagan 2015).
3. `truncated_svd` reduces the matrix to the wanted width; the vectors are U·S^power.

Memory is bounded: documents are counted in chunks, whose distinct pairs are added to a sparse
matrix of at most `MAX_PAIRS` entries. If it becomes larger, the rarest pairs are dropped until it
is half full. The totals of the tokens remain exact, so the PMI of the other pairs can only be too
low. 33 MB of reviews with a vocabulary of 8,192 fill a third of the matrix.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from headstart.data.dataset import batched
from headstart.progress import ProgressCallback

TokenIds = NDArray[np.integer]
Floats = NDArray[np.float32]

CHUNK_PAIRS = 16_000_000  # at 4 bytes each, and as much again while they are sorted
MAX_PAIRS = 16_000_000  # at 12 bytes each; twice that while a chunk is added


def ppmi_svd(
    documents: Iterable[TokenIds],
    *,
    vocab_size: int,
    width: int,
    window: int = 5,
    smoothing: float = 0.75,
    ignore: Sequence[int] = (),
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> tuple[Floats, Floats]:
    """Decompose the positive PMI matrix of documents into U and S; see `scale_columns`.

    `window` tokens on each side count, within a document; `smoothing` is the exponent of the
    contexts' counts. Special tokens to `ignore` have positions but are not counted; like tokens
    that do not occur they have a row of zeros in U (vocab_size, width). `progress` is called with
    the tokens counted so far. The same input gives the same bits.
    """
    pairs, totals = count_pairs(
        documents, vocab_size=vocab_size, window=window, ignore=ignore, progress=progress
    )
    return truncated_svd(positive_pmi(pairs, totals, smoothing=smoothing), width=width, seed=seed)


def scale_columns(vectors: Floats, values: Floats, *, power: float) -> Floats:
    """Return the vectors U·S^power."""
    return np.asarray(vectors * np.where(values > 0, values, 1) ** power, dtype=np.float32)


def count_pairs(
    documents: Iterable[TokenIds],
    *,
    vocab_size: int,
    window: int,
    ignore: Sequence[int] = (),
    max_pairs: int = MAX_PAIRS,
    chunk_pairs: int = CHUNK_PAIRS,
    progress: ProgressCallback | None = None,
) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Count pairs at a distance of 1 to `window`; return a symmetric matrix and exact row sums."""
    # Each two tokens are counted once, the smaller id first: half of the entries.
    upper = sparse.csr_array((vocab_size, vocab_size), dtype=np.int64)
    lost = np.zeros(vocab_size, dtype=np.int64)
    ignored = np.zeros(vocab_size, dtype=bool)
    ignored[list(ignore)] = True
    done = 0
    for chunk in batched(documents, len, most=chunk_pairs // window, count=chunk_pairs):
        upper = upper + _count_chunk(chunk, ignored, window)
        if upper.nnz > max_pairs:
            upper = _drop_rarest(upper, max_pairs // 2, lost)
        done += sum(map(len, chunk))
        if progress is not None:
            progress(done, None)
    pairs = (upper + upper.T).tocsr()
    return pairs, pairs.sum(axis=1) + lost


def positive_pmi(
    pairs: sparse.csr_array, totals: NDArray[np.int64], *, smoothing: float
) -> sparse.csr_array:
    """Compute max(0, ln(p(token, context) / (p(token) · p(context)))), p(context) smoothed."""
    contexts = totals.astype(np.float64) ** smoothing * (totals > 0)
    with np.errstate(divide="ignore"):  # the log of an absent token's count is never used
        log_tokens = np.log(totals).astype(np.float32)
        log_contexts = np.log(contexts / max(contexts.sum(), 1.0)).astype(np.float32)
    # p(token, context) / p(token) is the pair's count by the token's: the corpus's size cancels.
    values = np.log(pairs.data.astype(np.float32))
    values -= np.repeat(log_tokens, np.diff(pairs.indptr))
    values -= log_contexts[pairs.indices]
    np.maximum(values, 0, out=values)
    information = sparse.csr_array((values, pairs.indices, pairs.indptr), pairs.shape, copy=True)
    information.eliminate_zeros()
    return information


def truncated_svd(information: sparse.csr_array, *, width: int, seed: int) -> tuple[Floats, Floats]:
    """Return U (vocab_size × width) and S, zero beyond the rank of the matrix."""
    size = information.shape[0]
    vectors = np.zeros((size, width), dtype=np.float32)
    values = np.zeros(width, dtype=np.float32)
    if information.nnz == 0:
        return vectors, values
    # Sparse products take the time, and they run on one core. More threads for the small dense
    # parts save nothing, and the bits would depend on their number.
    with threadpool_limits(1):
        u, s, _ = randomized_svd(
            information,
            min(width, size),
            n_oversamples=16,
            n_iter=3,
            power_iteration_normalizer="LU",
            random_state=seed,
        )
    above_rounding = s > s[0] * size * np.finfo(np.float32).eps
    vectors[:, : len(s)] = np.where(above_rounding, u, 0)
    values[: len(s)] = np.where(above_rounding, s, 0)
    vectors[np.diff(information.indptr) == 0] = 0  # else about 1e-9, by rounding
    return vectors, values


def _count_chunk(
    documents: Sequence[TokenIds], ignored: NDArray[np.bool_], window: int
) -> sparse.csr_array:
    """Count the pairs of documents; an ignored token is in none."""
    vocab_size = len(ignored)
    tokens = np.concatenate(documents)
    # A pair's code is token · vocab_size + token: 4 bytes sort much faster than 8.
    tokens = tokens.astype(np.uint32 if vocab_size <= 2**16 else np.uint64)
    # A pair counts if both have the same owner; each ignored token is its only one.
    owners = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    alone = np.flatnonzero(ignored[tokens])
    owners[alone] = -1 - alone
    codes = [tokens[:0]]
    for distance in range(1, min(window + 1, len(tokens))):
        later, earlier = slice(distance, None), slice(None, -distance)
        together = owners[later] == owners[earlier]
        one, other = tokens[later][together], tokens[earlier][together]
        code = np.minimum(one, other)
        code *= code.dtype.type(vocab_size)
        code += np.maximum(one, other)
        codes.append(code)
    merged, times = np.unique(np.concatenate(codes), return_counts=True)
    rows, columns = np.divmod(merged, merged.dtype.type(vocab_size))
    pointers = np.searchsorted(rows, np.arange(vocab_size + 1)).astype(np.int32)
    return sparse.csr_array((times, columns.astype(np.int32), pointers), (vocab_size, vocab_size))


def _drop_rarest(upper: sparse.csr_array, room: int, lost: NDArray[np.int64]) -> sparse.csr_array:
    """Drop all but at most `room` frequent pairs; add what is dropped to `lost`, by token."""
    highest = np.partition(upper.data, upper.nnz - room - 1)[upper.nnz - room - 1]
    dropped = upper.copy()
    dropped.data[upper.data > highest] = 0
    lost += dropped.sum(axis=1) + dropped.sum(axis=0)
    upper.data[upper.data <= highest] = 0
    upper.eliminate_zeros()
    return upper
