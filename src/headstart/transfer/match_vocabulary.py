"""Go over to another vocabulary: pieces that both know keep their vectors.

The rest of a base, which has learned how tokens make sense of each other, stays as it is. Pieces
that only the new vocabulary has start from the mean of those that were carried over; specials
go by their role (begin to begin, pad to pad), whatever their names are.
"""

from dataclasses import replace

import torch

from headstart.errors import HeadstartError
from headstart.model.base import Transformer
from headstart.model.model import Model
from headstart.text.tokenizers.tokenizer import Tokenizer


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
    matched = Transformer(replace(base.config, vocab_size=new.vocab_size)).to(rows.device)
    weights = {k: v for k, v in base.state_dict().items() if k != "embedding.weight"}
    matched.load_state_dict(weights, strict=False)
    places = torch.tensor(list(shared), device=rows.device)
    carried = rows[torch.tensor(list(shared.values()), device=rows.device)]
    matched.embedding.weight[:] = carried.mean(dim=0)
    matched.embedding.weight[places] = carried
    return Model(matched, None)
