"""N-grams of characters: counted for many texts at once, or found with their places in one.

scikit-learn cuts each n-gram out as a string and looks it up, which takes minutes for 25,000
reviews. Here all n-grams of a batch are numbered at once, by a hash that rolls over the code
points, and counted by one sort.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

BATCH = 1_000  # texts
# Odd numbers without a pattern; any would do, but they must stay: runs are read with them.
MULTIPLIER, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


class Occurrences(NamedTuple):
    """Where features are in a text: characters `starts` up to `ends` of its lower-case form.

    A feature of several parts is listed once for each, with its share of the whole.
    """

    columns: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    shares: NDArray[np.float64]


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


def find_characters(lowered: str, *, shortest: int, longest: int, bits: int) -> Occurrences:
    """The n-grams of one lower-case text with their places; columns are those of the counts."""
    plain = f" {' '.join(lowered.split())} "
    # Where each character of `plain` comes from; a blank belongs to no word and has no place.
    filled = [place for place, character in enumerate(lowered) if not character.isspace()]
    places = np.full(len(plain), -1, dtype=np.int64)
    places[[n for n, character in enumerate(plain) if character != " "]] = filled
    columns, starts, ends = [], [], []
    codes = _codes(plain)
    for inside, size, buckets in _hashed(codes, np.zeros(len(codes)), shortest, longest, bits):
        first = np.flatnonzero(inside)
        windows = places[first[:, None] + np.arange(size)]  # (n-grams, characters)
        columns.append(buckets.astype(np.int64))
        starts.append(np.where(windows < 0, len(lowered), windows).min(axis=1))
        ends.append(windows.max(axis=1) + 1)
    where, begin, end = (np.concatenate(parts) for parts in (columns, starts, ends))
    return Occurrences(where, begin, end, np.ones(len(where)))


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while batch := list(islice(stream, BATCH)):
        yield batch


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _hashed(
    codes: NDArray[np.uint32], owners: NDArray[Any], shortest: int, longest: int, bits: int
) -> Iterator[tuple[NDArray[np.bool_], int, NDArray[np.uint64]]]:
    """For each size: which places begin an n-gram inside of one text, and their columns."""
    hashes = np.ones(len(codes), dtype=np.uint64)  # not 0: a leading NUL would leave no trace
    for size in range(1, longest + 1):
        hashes = hashes[: len(codes) - size + 1] * MULTIPLIER + codes[size - 1 :]
        if size >= shortest:
            inside = owners[: len(hashes)] == owners[size - 1 :]
            buckets = (hashes[inside] ^ (hashes[inside] >> np.uint64(29))) * SPREAD
            yield inside, size, buckets >> np.uint64(64 - bits)


def _count_batch(texts: list[str], shortest: int, longest: int, bits: int) -> sparse.csr_array:
    plain = [f" {' '.join(text.lower().split())} " for text in texts]
    codes = _codes("".join(plain))
    owners = np.repeat(np.arange(len(plain), dtype=np.uint64), [len(text) for text in plain])
    keys = [
        owners[: len(inside)][inside] << np.uint64(bits) | buckets
        for inside, _, buckets in _hashed(codes, owners, shortest, longest, bits)
    ]
    return _tally(np.concatenate(keys), len(texts), bits)


def _tally(keys: NDArray[np.uint64], rows: int, bits: int) -> sparse.csr_array:
    keys.sort()
    first = np.flatnonzero(np.concatenate([keys[:1] == keys[:1], keys[1:] != keys[:-1]]))
    times = np.diff(first, append=len(keys)).astype(np.float32)
    distinct = keys[first]
    columns = (distinct & np.uint64(2**bits - 1)).astype(np.int32)
    pointers = np.searchsorted(distinct >> np.uint64(bits), np.arange(rows + 1, dtype=np.uint64))
    return sparse.csr_array((times, columns, pointers.astype(np.int32)), (rows, 2**bits))
