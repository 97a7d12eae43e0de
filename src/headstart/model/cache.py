"""Keys and values of the tokens read so far, so that writing on costs one token, not all."""

import torch
from torch import Tensor


class KeyValueCache:
    """One pair a layer, each (B, nh, T so far, hs)."""

    def __init__(self, layers: int) -> None:
        self._pairs: list[tuple[Tensor, Tensor] | None] = [None] * layers

    @property
    def length(self) -> int:
        """How many tokens every layer has seen."""
        last = self._pairs[-1]
        return 0 if last is None else last[0].size(2)

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens' keys and values; returns those of all tokens."""
        pair = self._pairs[layer]
        if pair is not None:
            key, value = torch.cat((pair[0], key), dim=2), torch.cat((pair[1], value), dim=2)
        self._pairs[layer] = (key, value)
        return key, value
