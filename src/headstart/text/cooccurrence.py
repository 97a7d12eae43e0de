"""What a token means is in the company it keeps: vectors from counting, in seconds.

Three steps, each a function:
1. `count_pairs`: how often do two tokens stand within `window` of each other?
2. `positive_pmi`: is that more often than chance (pointwise mutual information above 0)? The
   contexts' counts are smoothed, so that rare ones do not stand out by luck (Levy, Goldberg and
   Dagan 2015).
3. A truncated singular value decomposition to the wanted width: rows of U·√S.

Memory is bounded whatever the corpus's size. The stream is counted in chunks of `CHUNK_PAIRS` pairs
(a sort and the lengths of its runs); a chunk's distinct pairs are added to a sparse matrix of
at most `max_pairs` entries. When it outgrows that, its rarest pairs are dropped: all pairs seen
once, then, if need be, twice, and so on until half of the room is free. The tokens' totals stay
exact, so a kept pair's PMI errs only downwards, by the sightings that were dropped before it was
kept for good, and only for pairs that are rare in a huge corpus. Up to `MAX_PAIRS` distinct pairs
(33 MB of reviews with a vocabulary of 8,192 have a third of that) nothing is dropped.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback

TokenIds = NDArray[np.integer]

CHUNK_PAIRS = 16_000_000  # at 4 bytes each, and as much again while they are sorted
MAX_PAIRS = 16_000_000  # at 12 bytes each; twice that while a chunk is added
OVERSAMPLES, ITERATIONS = 16, 3  # of the randomized decomposition


def cooccurrence_vectors(
    documents: Iterable[TokenIds],
    *,
    vocab_size: int,
    width: int,
    window: int = 5,
    smoothing: float = 0.75,
    power: float = 0.5,
    ignore: Sequence[int] = (),
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> NDArray[np.float32]:
    """A vector for every token id (vocab_size × width), from documents of token ids.

    Windows do not cross documents. Tokens in `ignore` (the special ones) keep their places but
    are not counted; they, and tokens that the documents do not have, get the zero vector. The same
    input gives the same bits. `progress` is called with the tokens counted so far.
    """
    found = cooccurrence_decomposition(
        documents,
        vocab_size=vocab_size,
        width=width,
        window=window,
        smoothing=smoothing,
        ignore=ignore,
        seed=seed,
        progress=progress,
    )
    return scale_columns(*found, power=power)


def cooccurrence_decomposition(
    documents: Iterable[TokenIds],
    *,
    vocab_size: int,
    width: int,
    window: int = 5,
    smoothing: float = 0.75,
    ignore: Sequence[int] = (),
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """U and S, of which `scale_columns` makes the vectors of any power."""
    counts = count_pairs(
        documents, vocab_size=vocab_size, window=window, ignore=ignore, progress=progress
    )
    information = positive_pmi(counts, smoothing=smoothing)
    return singular_vectors(information, width=width, seed=seed)


@dataclass(frozen=True)
class PairCounts:
    """How often each two tokens stood together, in both orders (a symmetric matrix).

    `totals` are the row sums, also of pairs that were dropped to save memory; `dropped` says
    how many sightings that cost.
    """

    pairs: sparse.csr_array
    totals: NDArray[np.int64]
    dropped: int


def count_pairs(
    documents: Iterable[TokenIds],
    *,
    vocab_size: int,
    window: int,
    ignore: Sequence[int] = (),
    max_pairs: int = MAX_PAIRS,
    chunk_pairs: int = CHUNK_PAIRS,
    progress: ProgressCallback | None = None,
) -> PairCounts:
    """Count the pairs of tokens at a distance of 1 to `window`, in one pass over the documents."""
    if window < 1:
        raise ValueError(f"a window has at least 1 token, not {window}")
    # Each two tokens are counted once, the smaller id first: half of the entries to keep.
    upper = sparse.csr_array((vocab_size, vocab_size), dtype=np.int64)
    lost = np.zeros(vocab_size, dtype=np.int64)
    done = 0
    tokens, owners = np.zeros(0, dtype=_code_type(vocab_size)), np.zeros(0, dtype=np.int64)
    for new, new_owners in _chunks(documents, max(1, chunk_pairs // window), vocab_size, ignore):
        carried = min(window, len(tokens))
        tokens = np.concatenate([tokens[len(tokens) - carried :], new])
        owners = np.concatenate([owners[len(owners) - carried :], new_owners])
        upper = upper + _count_chunk(tokens, owners, carried, vocab_size, window)
        if upper.nnz > max_pairs:
            upper = _drop_rarest(upper, max_pairs // 2, lost)
        done += len(new)
        if progress is not None:
            progress(done, None)
    pairs = (upper + upper.T).tocsr()
    return PairCounts(pairs, pairs.sum(axis=1) + lost, int(lost.sum()) // 2)


def positive_pmi(counts: PairCounts, *, smoothing: float) -> sparse.csr_array:
    """max(0, ln(p(token, context) / (p(token) · p(context)))), p(context) from counts^smoothing."""
    pairs, totals = counts.pairs, counts.totals.astype(np.float64)
    contexts = totals**smoothing * (totals > 0)
    with np.errstate(divide="ignore"):  # the log of an absent token's count is never looked up
        of_token = np.log(totals)
        of_context = np.log(contexts / max(contexts.sum(), 1.0))
    # p(token, context) / p(token) is the pair's count by the token's: the corpus's size cancels.
    values = np.log(pairs.data.astype(np.float32))
    values -= np.repeat(of_token.astype(np.float32), np.diff(pairs.indptr))
    values -= of_context.astype(np.float32)[pairs.indices]
    np.maximum(values, 0, out=values)
    # Copies, because zeros are eliminated in place, and the counts are the caller's.
    places = (pairs.indices.copy(), pairs.indptr.copy())
    information = sparse.csr_array((values, *places), shape=pairs.shape)
    information.eliminate_zeros()
    return information


def decompose(
    information: sparse.csr_array, *, width: int, power: float, seed: int
) -> NDArray[np.float32]:
    """U·S^power of the truncated decomposition; columns beyond the matrix's rank are zero."""
    return scale_columns(*singular_vectors(information, width=width, seed=seed), power=power)


def singular_vectors(
    information: sparse.csr_array, *, width: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """U (vocab_size × width) and S of the truncated decomposition, zero beyond the rank."""
    size = information.shape[0]
    vectors = np.zeros((size, width), dtype=np.float32)
    values = np.zeros(width, dtype=np.float32)
    if information.nnz == 0:
        return vectors, values
    # Sparse products take the time, and they run on one core. A second one for the small dense
    # parts saves nothing (on a busy machine it costs seconds), and the bits would depend on it.
    with threadpool_limits(1):
        u, s, _ = randomized_svd(
            information,
            min(width, size),
            n_oversamples=OVERSAMPLES,
            n_iter=ITERATIONS,
            power_iteration_normalizer="LU",
            random_state=seed,
        )
    # What lies below rounding is direction without meaning.
    kept = s > s[0] * size * np.finfo(np.float32).eps
    vectors[:, : len(s)] = np.where(kept, u, 0)
    values[: len(s)] = np.where(kept, s, 0)
    vectors[np.diff(information.indptr) == 0] = 0  # else 1e-9 or so, by rounding
    return vectors, values


def scale_columns(
    vectors: NDArray[np.float32], values: NDArray[np.float32], *, power: float
) -> NDArray[np.float32]:
    """U·S^power: the same decomposition serves several powers."""
    return np.asarray(vectors * np.where(values > 0, values, 1) ** power, dtype=np.float32)


def _chunks(
    documents: Iterable[TokenIds], size: int, vocab_size: int, ignore: Sequence[int]
) -> Iterator[tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]]:
    """The stream in pieces of at most `size` tokens, each token with its document's number.

    A pair counts if both have the same number, so ignored tokens get numbers of their own.
    """
    code = _code_type(vocab_size)
    ignored = np.zeros(vocab_size, dtype=bool)
    ignored[list(ignore)] = True
    parts: list[TokenIds] = []
    numbers: list[int] = []
    filled, place = 0, 0

    def joined() -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        tokens = np.concatenate(parts)
        if tokens.min() < 0 or tokens.max() >= vocab_size:
            worst = tokens.max() if tokens.max() >= vocab_size else tokens.min()
            raise HeadstartError(
                f"token id {worst} in a vocabulary of {vocab_size}",
                fix="use the tokenizer that the documents were encoded with",
            )
        owners = np.repeat(np.array(numbers, dtype=np.int64), [len(part) for part in parts])
        alone = np.flatnonzero(ignored[tokens])
        owners[alone] = -1 - place - alone
        return tokens.astype(code), owners

    for number, document in enumerate(documents):
        begin = 0
        while begin < len(document):
            part = document[begin : begin + size - filled]
            parts.append(part)
            numbers.append(number)
            filled += len(part)
            begin += len(part)
            if filled == size:
                yield joined()
                place += filled
                parts, numbers, filled = [], [], 0
    if filled:
        yield joined()


def _code_type(vocab_size: int) -> type[np.unsignedinteger]:
    """What holds a pair's code, token · vocab_size + token: 4 bytes sort much faster than 8."""
    return np.uint32 if vocab_size <= 2**16 else np.uint64


def _count_chunk(
    tokens: NDArray[np.unsignedinteger],
    owners: NDArray[np.int64],
    carried: int,
    vocab_size: int,
    window: int,
) -> sparse.csr_array:
    """The pairs whose later token comes after the first `carried` ones (those had their turn)."""
    codes = []
    for distance in range(1, window + 1):
        begin = max(distance, carried)
        later, earlier = slice(begin, None), slice(begin - distance, -distance)
        if begin >= len(tokens):
            break
        together = owners[later] == owners[earlier]
        one, other = tokens[later][together], tokens[earlier][together]
        code = np.minimum(one, other)
        code *= code.dtype.type(vocab_size)
        code += np.maximum(one, other)
        codes.append(code)
    merged = np.concatenate(codes) if codes else tokens[:0]
    merged.sort()
    first = np.flatnonzero(np.concatenate([merged[:1] == merged[:1], merged[1:] != merged[:-1]]))
    distinct = merged[first]
    times = np.diff(first, append=len(merged))
    rows, columns = np.divmod(distinct, distinct.dtype.type(vocab_size))
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=vocab_size))])
    shape = (vocab_size, vocab_size)
    return sparse.csr_array((times, columns.astype(np.int32), pointers.astype(np.int32)), shape)


def _drop_rarest(upper: sparse.csr_array, room: int, lost: NDArray[np.int64]) -> sparse.csr_array:
    """Keep at most `room` pairs, the most frequent; add what is dropped to `lost`, by token."""
    highest = np.partition(upper.data, upper.nnz - room - 1)[upper.nnz - room - 1]
    dropped = upper.copy()
    dropped.data[upper.data > highest] = 0
    lost += dropped.sum(axis=1) + dropped.sum(axis=0)
    upper.data[upper.data <= highest] = 0
    upper.eliminate_zeros()
    return upper
