"""The head swap: the heart of transfer learning.

The base has learned the language; its old head answers a question nobody asks any more. So the
base stays, bit for bit, and a fresh head takes the old one's place.
"""

from dataclasses import dataclass
from typing import Literal

from headstart.model.config import HeadConfig, LanguageModelingConfig
from headstart.model.model import Model, fresh_head


@dataclass(frozen=True)
class SwapRow:
    """What became of one part of the network."""

    part: str
    fate: Literal["kept", "new", "dropped"]
    parameters: int
    why: str


def swap_head(model: Model, head: HeadConfig, *, seed: int) -> tuple[Model, list[SwapRow]]:
    """Put a fresh `head`, drawn from `seed`, on the model's base; tell what became of each part.

    The new model shares the base with the old one: nothing is copied, nothing can differ.
    """
    swapped = Model(model.base, fresh_head(model.base, head, seed=seed))
    swapped.train(model.training)
    rows = [
        SwapRow("embedding", "kept", _count(model.base.embedding), "what the tokens mean"),
        SwapRow(
            f"blocks × {model.base.config.layers}",
            "kept",
            _count(model.base) - _count(model.base.embedding),
            "how tokens make sense of each other",
        ),
    ]
    if model.head is not None:
        rows.append(
            SwapRow(
                f"{_name(model.head.config)} head",
                "dropped",
                _own(model),
                _why_dropped(model.head.config, head),
            )
        )
    rows.append(
        SwapRow(f"{_name(head)} head", "new", _own(swapped), "for the new question, to be trained")
    )
    return swapped, rows


def _own(model: Model) -> int:
    """The head's own parameters; a tied output layer belongs to the base."""
    return _count(model) - _count(model.base)


def _count(module: object) -> int:
    return sum(parameter.numel() for parameter in module.parameters())  # type: ignore[attr-defined]


def _name(head: HeadConfig) -> str:
    return head.kind.replace("_", " ")


def _why_dropped(old: HeadConfig, new: HeadConfig) -> str:
    if isinstance(old, LanguageModelingConfig) and not isinstance(new, LanguageModelingConfig):
        why = "it answers with pieces of the vocabulary"
        return why + "; its weight was the embedding, which stays" if old.tied else why
    if old == new:
        return "a fresh one was asked for"
    return "it answers another question"
