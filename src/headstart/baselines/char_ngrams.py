"""Character n-grams of many texts at once, hashed into columns.

scikit-learn makes a string of each n-gram and looks it up; docs/architecture.md has the times. Here
all n-grams of a batch are hashed at once, by a hash that rolls over the code points, and counted by
one sort.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

SIZES = range(3, 6)  # characters of an n-gram
HASH_BITS = 20  # a million columns: few n-grams share one
BATCH = 1_000  # texts
# Odd numbers without a pattern; any would do, but saved runs are read with these.
MULTIPLIER, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def count_char_ngrams(texts: Sequence[str]) -> sparse.csr_array:
    """Count the n-grams of each text: (texts, 2^HASH_BITS).

    Case and the kind of white space do not matter; a text begins and ends with a space.
    """
    blocks = [_count(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
    if not blocks:
        return sparse.csr_array((0, 2**HASH_BITS), dtype=np.float32)
    return sparse.vstack(blocks, format="csr")


def find_char_ngrams(lowered: str) -> NDArray[np.int64]:
    """Find the n-grams of one lower-case text: rows of column, start and end in the text."""
    plain = f" {' '.join(lowered.split())} "
    # Where each character of `plain` comes from; a space belongs to no word and has no place.
    filled = [place for place, character in enumerate(lowered) if not character.isspace()]
    places = np.full(len(plain), -1, dtype=np.int64)
    places[[n for n, character in enumerate(plain) if character != " "]] = filled
    tables = []
    for first, size, columns in _hashed(plain, np.zeros(len(plain))):
        windows = places[first[:, None] + np.arange(size)]  # (n-grams, characters)
        starts = np.where(windows < 0, len(lowered), windows).min(axis=1)
        ends = windows.max(axis=1) + 1
        tables.append(np.column_stack([columns.astype(np.int64), starts, ends]))
    return np.concatenate(tables)


def _count(texts: Sequence[str]) -> sparse.csr_array:
    plain = [f" {' '.join(text.lower().split())} " for text in texts]
    owners = np.repeat(np.arange(len(plain), dtype=np.uint64), [len(text) for text in plain])
    bits = np.uint64(HASH_BITS)
    keys = np.concatenate(
        [owners[first] << bits | columns for first, _, columns in _hashed("".join(plain), owners)]
    )
    keys.sort()
    first = np.flatnonzero(np.concatenate([keys[:1] == keys[:1], keys[1:] != keys[:-1]]))
    times = np.diff(first, append=len(keys)).astype(np.float32)
    distinct = keys[first]
    columns = (distinct & np.uint64(2**HASH_BITS - 1)).astype(np.int32)
    pointers = np.searchsorted(distinct >> bits, np.arange(len(texts) + 1, dtype=np.uint64))
    shape = (len(texts), 2**HASH_BITS)
    return sparse.csr_array((times, columns, pointers.astype(np.int32)), shape)


def _hashed(
    text: str, owners: NDArray[np.generic]
) -> Iterator[tuple[NDArray[np.int64], int, NDArray[np.uint64]]]:
    """Yield for each size where n-grams begin that lie inside of one text, and their columns."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    hashes = np.ones(len(codes), dtype=np.uint64)  # not 0: a leading NUL would leave no trace
    for size in range(1, SIZES.stop):
        hashes = hashes[: len(codes) - size + 1] * MULTIPLIER + codes[size - 1 :]
        if size in SIZES:
            first = np.flatnonzero(owners[: len(hashes)] == owners[size - 1 :])
            found = hashes[first]
            mixed = (found ^ (found >> np.uint64(29))) * SPREAD
            yield first, size, mixed >> np.uint64(64 - HASH_BITS)
