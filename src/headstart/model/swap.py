"""Another head, or another vocabulary, on the same base: the core step of transfer learning."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from headstart.errors import HeadstartError
from headstart.model.base import Transformer
from headstart.model.config import HeadConfig, LanguageModelingConfig
from headstart.model.heads import Transform
from headstart.model.model import Model, new_head

if TYPE_CHECKING:
    from headstart.text.tokenizers.tokenizer import Tokenizer


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
        SwapRow("embedding", "kept", embedding, "the meaning of the tokens"),
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
    before = getattr(old.language_modeling_head or old.head, "transform", None)
    after = getattr(new.language_modeling_head or new.head, "transform", None)
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


def shared_tokens(old: "Tokenizer", new: "Tokenizer") -> dict[int, int]:
    """Map the ids of the new vocabulary that the old one has too: {new id: old id}.

    Special tokens are matched by their role (begin, pad, …), not by their names.
    """
    old_ids = {token: number for number, token in enumerate(old.vocabulary())}
    old_special, new_special = {*old.specials.values()}, {*new.specials.values()}
    shared = {
        number: old_ids[token]
        for number, token in enumerate(new.vocabulary())
        if number not in new_special and token in old_ids and old_ids[token] not in old_special
    }
    for role, number in new.specials.items():
        if role in old.specials:
            shared[number] = old.specials[role]
    if new.unknown_id is not None and old.unknown_id is not None:
        shared[new.unknown_id] = old.unknown_id
    return shared


@torch.no_grad()
def match_vocabulary(model: Model, old: "Tokenizer", new: "Tokenizer") -> Model:
    """Return the model's base, without a head, with an embedding for the tokenizer `new`.

    Tokens of both vocabularies keep their vectors; the others start from the mean of these.
    """
    shared = shared_tokens(old, new)
    if not shared:
        raise HeadstartError(
            f"the two vocabularies ({old.vocab_size:,} and {new.vocab_size:,} tokens) have no "
            "token in common",
            fix="use the tokenizer of the base, without --match-vocabulary",
        )
    base = model.base
    rows = base.embedding.weight
    matched = Transformer(replace(base.config, vocab_size=new.vocab_size, vocab_padding=0))
    matched = matched.to(rows.device)
    weights = {k: v for k, v in base.state_dict().items() if k != "embedding.weight"}
    matched.load_state_dict(weights, strict=False)
    carried = rows[torch.tensor(list(shared.values()), device=rows.device)]
    matched.embedding.weight[:] = carried.mean(dim=0)
    matched.embedding.weight[torch.tensor(list(shared), device=rows.device)] = carried
    return Model(matched, None)
