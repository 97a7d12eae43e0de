"""A base with a head: what is trained, saved and asked."""

from torch import Tensor, nn

from headstart.model.base import Transformer
from headstart.model.config import BaseConfig, HeadConfig
from headstart.model.heads import Classification, Head, make_head
from headstart.model.initialize import initialize, seeded
from headstart.model.pooling import pooled_place


class Model(nn.Module):
    """`head(base(tokens))`; without a head, the hidden states themselves."""

    def __init__(self, base: Transformer, head: Head | None) -> None:
        super().__init__()
        self.base = base
        self.head = head

    def forward(
        self, tokens: Tensor, segments: Tensor | None = None, token_types: Tensor | None = None
    ) -> Tensor:
        hidden: Tensor
        if isinstance(self.head, Classification):
            place = pooled_place(tokens, segments, self.head.config.pooling)
            if place is not None:
                hidden = self.base(tokens, segments, token_types, only_at=place)  # (B, 1, d)
                return self.head(hidden)
        hidden = self.base(tokens, segments, token_types)  # (B, T, d)
        return hidden if self.head is None else self.head(hidden, segments)

    @property
    def head_config(self) -> HeadConfig | None:
        return None if self.head is None else self.head.config


def build_model(base: BaseConfig, head: HeadConfig | None = None, *, seed: int = 0) -> Model:
    """A fresh model; the same seed draws the same weights, and nothing else is disturbed."""
    with seeded(seed):
        transformer = Transformer(base)
        initialize(transformer, base)
    return Model(transformer, None if head is None else fresh_head(transformer, head, seed=seed))


def fresh_head(base: Transformer, config: HeadConfig, *, seed: int) -> Head:
    """A new head for an existing base, drawn from its own seed."""
    with seeded(seed):
        head = make_head(base.config, config, base.embedding)
        initialize(head, base.config, keep=base.embedding.weight)
    return head.to(base.embedding.weight.device)
