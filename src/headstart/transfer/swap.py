"""The swap: another head, or another vocabulary, on the same base. The heart of transfer learning.

The rest of a base, which has learned how tokens make sense of each other, stays as it is. Pieces
that only the new vocabulary has start from the mean of those that were carried over; specials
go by their role (begin to begin, pad to pad), whatever their names are.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import nn

from headstart.errors import HeadstartError
from headstart.model.base import Transformer
from headstart.model.config import HeadConfig, LanguageModelingConfig
from headstart.model.heads import MaskedNextSentenceHead, Transform
from headstart.model.model import Model, fresh_head
from headstart.text.tokenizers.tokenizer import Tokenizer


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
    kept = _keep_transform(model.head, swapped.head)
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
                _own(model) - kept,
                _why_dropped(model.head.config, head),
            )
        )
    if kept:
        rows.append(SwapRow("transform", "kept", kept, "the layer before pieces or answers"))
    new = _own(swapped) - kept
    rows.append(SwapRow(f"{_name(head)} head", "new", new, "for the new question, to be trained"))
    return swapped, rows


@torch.no_grad()
def _keep_transform(old: nn.Module | None, new: nn.Module | None) -> int:
    """Copy the layer before the output, where both heads have one; returns its parameters."""
    if isinstance(old, MaskedNextSentenceHead):
        old = old.language_modeling
    before, after = getattr(old, "transform", None), getattr(new, "transform", None)
    if not isinstance(before, Transform) or not isinstance(after, Transform):
        return 0
    after.load_state_dict(before.state_dict())
    return _count(after)


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
        return "a fresh one was requested"
    return "it answers another question"


def shared_pieces(old: Tokenizer, new: Tokenizer) -> dict[int, int]:
    """The ids of the new vocabulary that the old one has too: {new id: old id}."""
    old_ids = {piece: number for number, piece in enumerate(old.vocabulary())}
    special = {*old.specials.values()}
    own_special = {*new.specials.values()}
    shared = {
        number: old_ids[piece]
        for number, piece in enumerate(new.vocabulary())
        if number not in own_special and piece in old_ids and old_ids[piece] not in special
    }
    for role, number in new.specials.items():
        if role in old.specials:
            shared[number] = old.specials[role]
    if new.unknown_id is not None and old.unknown_id is not None:
        shared[new.unknown_id] = old.unknown_id
    return shared


@torch.no_grad()
def match_vocabulary(model: Model, old: Tokenizer, new: Tokenizer) -> Model:
    """The model's base, without a head, with an embedding for the tokenizer `new`."""
    shared = shared_pieces(old, new)
    if not shared:
        raise HeadstartError(
            f"the two vocabularies ({old.vocab_size:,} and {new.vocab_size:,} pieces) have no "
            "piece in common",
            fix="use the base's own tokenizer: leave --match-vocabulary out",
        )
    base = model.base
    rows = base.embedding.weight
    config = replace(base.config, vocab_size=new.vocab_size, spare_pieces=0)
    matched = Transformer(config).to(rows.device)
    weights = {k: v for k, v in base.state_dict().items() if k != "embedding.weight"}
    matched.load_state_dict(weights, strict=False)
    places = torch.tensor(list(shared), device=rows.device)
    carried = rows[torch.tensor(list(shared.values()), device=rows.device)]
    matched.embedding.weight[:] = carried.mean(dim=0)
    matched.embedding.weight[places] = carried
    return Model(matched, None)
