"""Fresh weights, drawn from a seed and nothing else."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from headstart.model.attention import SelfAttention
from headstart.model.block import FeedForward
from headstart.model.config import BaseConfig
from headstart.model.positions import LearnedPositions


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from `seed` inside, and leave the process's random state as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def initialize(module: nn.Module, base: BaseConfig, *, keep: Tensor | None = None) -> None:
    """Draw the weights of a fresh base or head; `keep` (a tied embedding) stays as it is.

    `normal` (GPT-2): a deviation of 0.02, and less for what is summed up over the layers.
    `lab`: PyTorch's own start of its encoder layer; ±0.1 for the embedding and the head.
    """
    for part in module.modules():
        if (
            isinstance(part, nn.Linear | nn.Embedding | LearnedPositions)
            and part.weight is not keep
        ):
            if base.initialization == "lab":
                nn.init.uniform_(part.weight, -0.1, 0.1)
            else:
                nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    for part in module.modules():
        if isinstance(part, SelfAttention | FeedForward):
            _start_layer(part, base)


def _start_layer(part: SelfAttention | FeedForward, base: BaseConfig) -> None:
    summed = part.output if isinstance(part, SelfAttention) else part.down
    if base.initialization == "normal":
        nn.init.normal_(summed.weight, std=0.02 / math.sqrt(2 * base.layers))
        return
    if isinstance(part, SelfAttention):
        nn.init.xavier_uniform_(part.query_key_value.weight)
        nn.init.kaiming_uniform_(part.output.weight, a=math.sqrt(5))
    else:
        part.up.reset_parameters()
        part.down.reset_parameters()
