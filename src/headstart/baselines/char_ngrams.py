"""Character n-grams of many texts at once, hashed into columns.

scikit-learn makes a string of each n-gram and looks it up; docs/architecture.md has the times. Here
all n-grams of a batch are hashed at once, by a hash that rolls over the code points, and counted by
one sort.
"""

from collections.abc import Sequence

import numpy as np
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


def _count(texts: Sequence[str]) -> sparse.csr_array:
    plain = [f" {' '.join(text.lower().split())} " for text in texts]
    owners = np.repeat(np.arange(len(plain), dtype=np.uint64), [len(text) for text in plain])
    codes = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    hashes = np.ones(len(codes), dtype=np.uint64)  # not 0: a leading NUL would leave no trace
    bits, found = np.uint64(HASH_BITS), []
    for size in range(1, SIZES.stop):
        hashes = hashes[: len(codes) - size + 1] * MULTIPLIER + codes[size - 1 :]
        if size in SIZES:
            first = np.flatnonzero(owners[: len(hashes)] == owners[size - 1 :])  # in one text
            mixed = (hashes[first] ^ (hashes[first] >> np.uint64(29))) * SPREAD
            found.append(owners[first] << bits | mixed >> np.uint64(64 - HASH_BITS))
    distinct, times = np.unique(np.concatenate(found), return_counts=True)
    columns = (distinct & np.uint64(2**HASH_BITS - 1)).astype(np.int32)
    pointers = np.searchsorted(distinct >> bits, np.arange(len(texts) + 1, dtype=np.uint64))
    shape = (len(texts), 2**HASH_BITS)
    return sparse.csr_array((times.astype(np.float32), columns, pointers.astype(np.int32)), shape)
