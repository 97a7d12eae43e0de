"""Batches of texts of similar length, for fine-tuning: little padding, still shuffled.

Padding goes to the longest text of a batch. A shuffled batch of the lab's reviews is half padding;
here the texts of an epoch are shuffled, sorted by length within large pools, cut into batches, and
the batches shuffled. Like `DataOrder` it is a pure function of the seed and the step.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from headstart.text.store.order import Indices, shuffled

_POOL = 100  # batches in a pool: sorting in larger ones saves little and shuffles less


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


def padding_share(lengths: Sequence[int] | Indices, batches: Iterable[Indices]) -> float:
    """The share of positions that are padding when each batch is padded to its longest text."""
    lengths = np.asarray(lengths)
    used = total = 0
    for batch in batches:
        used += int(lengths[batch].sum())
        total += int(lengths[batch].max()) * len(batch)
    return 1 - used / total if total else 0.0
