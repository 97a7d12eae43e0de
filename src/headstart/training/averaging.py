"""The mean of a network's weights at the ends of its last epochs, as stochastic weight averaging.

At a constant rate the weights wander around a good place, and their mean lies nearer to it than
any of them (Izmailov and others, 2018). One more copy of the weights is all it costs.
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

    def update(self, step: int, steps: int) -> None:
        """Take the weights after `step` of `steps` in, if an epoch that counts ends there."""
        epoch, epochs = step // self.every, -(-steps // self.every)
        number = epoch - (epochs - int(self.share * epochs))  # 1 for the first that counts
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
        own = {name: weights.detach().clone() for name, weights in self._covered()}
        self._put(self.mean)
        try:
            yield
        finally:
            self._put(own)

    def _covered(self) -> list[tuple[str, nn.Parameter]]:
        return [pair for pair in self.model.named_parameters() if pair[0] in self.mean]

    def _put(self, values: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, weights in self._covered():
                weights.copy_(values[name])
