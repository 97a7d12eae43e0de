"""Which items belong to which step: a pure function of the seed and the step.

A resumed run asks for step k and gets exactly what the uninterrupted run had there; nothing is
replayed and there is no position to save.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer]


class DataOrder:
    """Endless full batches of `items` things: each epoch has its own shuffle of all of them.

    A batch may reach from one epoch into the next, so that every item is seen once an epoch and
    every batch has the same size.
    """

    def __init__(self, items: int, *, batch_size: int, seed: int) -> None:
        if items < 1 or batch_size < 1:
            raise ValueError(f"items {items} and batch_size {batch_size} must be at least 1")
        self.items = items
        self.batch_size = batch_size
        self.seed = seed

    def batch(self, step: int) -> Indices:
        """The items of step `step`, which counts from 0."""
        first = step * self.batch_size
        parts = []
        left = self.batch_size
        while left:
            epoch, start = divmod(first, self.items)
            part = shuffled(self.items, self.seed, epoch)[start : start + left]
            parts.append(part)
            first += len(part)
            left -= len(part)
        return np.concatenate(parts)

    def epoch(self, step: int) -> float:
        """How many times the data has been seen before step `step`."""
        return step * self.batch_size / self.items


@lru_cache(maxsize=2)  # a batch touches at most two epochs, unless there are few items
def shuffled(items: int, *key: int) -> Indices:
    """0 to `items` - 1 in an order that depends on the key alone."""
    order: Indices = np.arange(items, dtype=np.int32 if items < 1 << 31 else np.int64)
    np.random.default_rng([items, *key]).shuffle(order)
    order.flags.writeable = False  # it is shared
    return order
