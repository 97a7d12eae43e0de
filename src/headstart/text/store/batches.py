"""Which items belong to which step: a pure function of the seed and the step.

A resumed run asks for step k and gets exactly what the uninterrupted run had there; nothing is
replayed and there is no position to save. `DataOrder` gives full batches of rows, for pretraining;
`LengthBatches` gives batches of texts of similar length, for fine-tuning: little padding, still
shuffled.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer]
_POOL = 100  # batches in a pool: sorting in larger ones saves little and shuffles less


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


@lru_cache(maxsize=2)  # a batch touches at most two epochs, unless there are few items
def shuffled(items: int, *key: int) -> Indices:
    """0 to `items` - 1 in an order that depends on the key alone."""
    order: Indices = np.arange(items, dtype=np.int32 if items < 1 << 31 else np.int64)
    np.random.default_rng([items, *key]).shuffle(order)
    order.flags.writeable = False  # it is shared
    return order


class LengthBatches:
    """Every epoch has each text once, in `steps_per_epoch` batches; only one may be smaller."""

    def __init__(self, lengths: Sequence[int] | Indices, *, batch_size: int, seed: int) -> None:
        if len(lengths) < 1 or batch_size < 1:
            raise ValueError(
                f"{len(lengths)} texts and batch_size {batch_size}: both must be at least 1"
            )
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.steps_per_epoch = -(-len(self.lengths) // batch_size)
        self._epoch = lru_cache(maxsize=1)(self._make_epoch)

    def batch(self, step: int) -> Indices:
        """The texts of step `step`, which counts from 0 and goes on through the epochs."""
        epoch, number = divmod(step, self.steps_per_epoch)
        return self._epoch(epoch)[number]

    def _make_epoch(self, epoch: int) -> list[Indices]:
        order = shuffled(len(self.lengths), self.seed, epoch)
        batches: list[Indices] = []
        pool_size = _POOL * self.batch_size
        for start in range(0, len(order), pool_size):
            pool = order[start : start + pool_size]
            # Texts of equal length keep their shuffled order, so batches differ between epochs.
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches += [pool[i : i + self.batch_size] for i in range(0, len(pool), self.batch_size)]
        # The third number keeps this shuffle apart from that of the texts.
        return [batches[i] for i in shuffled(len(batches), self.seed, epoch, 1)]
