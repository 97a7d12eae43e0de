"""Counts of character n-grams, hashed: the same features as scikit-learn's, many times faster.

scikit-learn cuts each n-gram out as a string and looks it up, which takes minutes for 25,000
reviews. Here all n-grams of a batch are numbered at once, by a hash that rolls over the code
points, and counted by one sort.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

BATCH = 1_000  # texts
# Odd numbers without a pattern; any would do, but they must stay: runs are read with them.
MULTIPLIER, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def count_characters(
    texts: Sequence[str], *, shortest: int, longest: int, bits: int
) -> sparse.csr_array:
    """Rows × 2^bits: how often each n-gram of `shortest` to `longest` characters is in a text.

    Case and the kind of blanks do not count; a text begins and ends with a blank.
    """
    blocks = [_count_batch(batch, shortest, longest, bits) for batch in _batches(texts)]
    if not blocks:
        return sparse.csr_array((0, 2**bits), dtype=np.float32)
    return sparse.vstack(blocks, format="csr")


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while batch := list(islice(stream, BATCH)):
        yield batch


def _count_batch(texts: list[str], shortest: int, longest: int, bits: int) -> sparse.csr_array:
    plain = [f" {' '.join(text.lower().split())} " for text in texts]
    codes = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    owners = np.repeat(np.arange(len(plain), dtype=np.uint64), [len(text) for text in plain])
    hashes = np.ones(len(codes), dtype=np.uint64)  # not 0: a leading NUL would leave no trace
    keys = []
    for size in range(1, longest + 1):
        hashes = hashes[: len(codes) - size + 1] * MULTIPLIER + codes[size - 1 :]
        if size >= shortest:
            first = owners[: len(hashes)]
            inside = first == owners[size - 1 :]
            buckets = (hashes[inside] ^ (hashes[inside] >> np.uint64(29))) * SPREAD
            keys.append(first[inside] << np.uint64(bits) | buckets >> np.uint64(64 - bits))
    return _tally(np.concatenate(keys), len(texts), bits)


def _tally(keys: NDArray[np.uint64], rows: int, bits: int) -> sparse.csr_array:
    keys.sort()
    first = np.flatnonzero(np.concatenate([keys[:1] == keys[:1], keys[1:] != keys[:-1]]))
    times = np.diff(first, append=len(keys)).astype(np.float32)
    distinct = keys[first]
    columns = (distinct & np.uint64(2**bits - 1)).astype(np.int32)
    pointers = np.searchsorted(distinct >> np.uint64(bits), np.arange(rows + 1, dtype=np.uint64))
    return sparse.csr_array((times, columns, pointers.astype(np.int32)), (rows, 2**bits))
