"""Another head on the same base: the core step of transfer learning."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from headstart.model.config import HeadConfig, LanguageModelingConfig
from headstart.model.heads import Transform
from headstart.model.model import Model, new_head


@dataclass(frozen=True)
class SwapRow:
    """What happened to one part of the network."""

    part: str
    status: Literal["kept", "new", "dropped"]
    parameters: int
    why: str


def swap_head(model: Model, head: HeadConfig, *, seed: int) -> tuple[Model, list[SwapRow]]:
    """Put a new head on the model's base.

    Parameters
    ----------
    model : Model
        The new model shares its base; nothing is copied.
    head : HeadConfig
    seed : int
        For the new head's random weights. A `Transform` layer that both heads have is copied.

    Returns
    -------
    Model
    list of SwapRow
        The table of the swap: what was kept, dropped and added, and why.
    """
    swapped = Model(model.base, new_head(model.base, head, seed=seed))
    swapped.train(model.training)
    copied = _copy_transform(model, swapped)
    base, embedding = _count(model.base), _count(model.base.embedding)
    rows = [
        SwapRow("embedding", "kept", embedding, "token vectors"),
        SwapRow(
            f"blocks × {model.base.config.layers}",
            "kept",
            base - embedding,
            "how tokens relate to each other",
        ),
    ]
    if model.head is not None:
        old = model.head.config
        dropped = _count(model) - base - copied  # a tied output layer belongs to the base
        rows.append(SwapRow(_name(old), "dropped", dropped, _why_dropped(old, head)))
    if copied:
        rows.append(SwapRow("transform", "kept", copied, "the layer before the output"))
    new = _count(swapped) - base - copied
    rows.append(SwapRow(_name(head), "new", new, "for the new task, to be trained"))
    return swapped, rows


@torch.no_grad()
def _copy_transform(old: Model, new: Model) -> int:
    """Copy the layer before the output where both heads have one; return its parameters."""
    before = getattr(old.head, "transform", None)
    after = getattr(new.head, "transform", None)
    if not isinstance(before, Transform) or not isinstance(after, Transform):
        return 0
    after.load_state_dict(before.state_dict())
    return _count(after)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _name(head: HeadConfig) -> str:
    return head.kind.replace("_", " ") + " head"


def _why_dropped(old: HeadConfig, new: HeadConfig) -> str:
    if isinstance(old, LanguageModelingConfig) and not isinstance(new, LanguageModelingConfig):
        why = "it predicts tokens of the vocabulary"
        return why + "; its weight was the embedding, which stays" if old.tied else why
    return "a new one was requested" if old == new else "it was trained for another task"
