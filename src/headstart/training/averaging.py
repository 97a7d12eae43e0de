"""The mean of a network's weights at the ends of its last epochs, as stochastic weight averaging.

At a constant rate the weights wander around a good place, and their mean often lies nearer to it
than any of them (Izmailov and others, 2018; docs/lab.md has what it did here). One more copy of
the weights is all it costs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Takes the weights after each of the last epochs into a mean.

    Parameters
    ----------
    model : the network that is trained; it goes on from its own weights, not from the mean.
    share : of the epochs, counted from the end.
    every : steps of an epoch.
    """

    def __init__(self, model: nn.Module, *, share: float, every: int) -> None:
        self.model, self.share, self.every = model, share, every
        self.mean: dict[str, Tensor] = {}  # empty until the first epoch that counts has ended

    def counted(self, steps: int) -> int:
        """How many epochs of so many steps count; below two, there is nothing to average."""
        return int(self.share * -(-steps // self.every) + 1e-9)

    def update(self, step: int, steps: int) -> None:
        """Take the weights after `step` of `steps` in, if an epoch that counts ends there."""
        epoch, epochs = step // self.every, -(-steps // self.every)
        number = epoch - (epochs - self.counted(steps))  # 1 for the first that counts
        if step % self.every or number < 1:
            return
        with torch.no_grad():
            for name, weights in self.model.named_parameters():
                if number == 1:
                    self.mean[name] = weights.clone()
                else:
                    self.mean[name].lerp_(weights, 1 / number)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the model has the mean as its weights, if there is one yet."""
        parameters = dict(self.model.named_parameters())
        own = {name: parameters[name].data for name in self.mean}
        for name, mean in self.mean.items():
            parameters[name].data = mean  # no copy
        try:
            yield
        finally:
            for name, weights in own.items():
                parameters[name].data = weights
