"""What a step trains and how fast: the learning rate, and `full`, `frozen` or `gradual` training.

Depths are counted from the head down: the head has 0, the topmost block (with the norm behind it)
1, the block under it 2, and what embeds the tokens comes last.
"""

import re
from dataclasses import dataclass
from typing import Literal

from headstart.model.model import Model

Shape = Literal["linear", "constant"]


@dataclass(frozen=True)
class Schedule:
    """A straight warm-up and a straight decay, which together fit any number of steps.

    `constant` is the lab's: the same rate from the first step to the last.
    """

    learning_rate: float
    steps: int
    warmup: float = 0.05  # share of the steps
    shape: Shape = "linear"

    def at(self, step: int) -> float:
        """The learning rate of step `step`, which counts from 0."""
        if self.shape == "constant":
            return self.learning_rate
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (self.steps - step) / max(1, self.steps - warm)


Strategy = Literal["full", "frozen", "gradual"]
_BLOCK = re.compile(r"base\.blocks\.(\d+)\.")


def depth_of(name: str, layers: int) -> int:
    """How far below the head the parameter `name` of a model lies."""
    if name.startswith("head."):
        return 0
    if name.startswith("base.final_norm"):
        return 1
    block = _BLOCK.match(name)
    return layers + 1 if block is None else layers - int(block[1])


def learning_rate_scales(model: Model, decay: float) -> dict[str, float]:
    """Layer-wise falling learning rates: each depth learns `decay` times as fast as the last."""
    layers = model.base.config.layers
    return {name: decay ** depth_of(name, layers) for name, _ in model.named_parameters()}


def trained_depth(strategy: Strategy, epoch: int, layers: int) -> int:
    """The deepest part that is trained in this epoch, which counts from 0."""
    if strategy == "frozen":
        return 0
    if strategy == "gradual":  # one block more every epoch, from the top (ULMFiT)
        return min(epoch, layers + 1)
    return layers + 1


def train_down_to(model: Model, depth: int) -> None:
    """Let everything down to `depth` learn, and freeze what lies below."""
    layers = model.base.config.layers
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(depth_of(name, layers) <= depth)


def embedding_scales(model: Model, scale: float) -> dict[str, float]:
    """The learning rate of the vocabulary's rows beside that of the rest; 0 leaves it the same."""
    rows = {id(parameter) for parameter in model.vocabulary_rows}
    return {
        name: scale
        for name, parameter in model.named_parameters()
        if scale and id(parameter) in rows
    }
