"""A base with a head: what is trained, saved and asked."""

from typing import Any, NamedTuple

from torch import Tensor, nn

from headstart.model.base import Transformer
from headstart.model.config import BaseConfig, HeadConfig
from headstart.model.heads import (
    Classification,
    Head,
    LanguageModeling,
    MaskedNextSentence,
    make_head,
)
from headstart.model.initialize import initialize, seeded
from headstart.model.pooling import join_windows, pool, pooled_place, window_sizes
from headstart.model.vocabulary_loss import VocabularyTargets


class LanguageModelingLoss(NamedTuple):
    """What predicting the targets costs."""

    pieces: Tensor  # summed cross-entropy
    next_sentence: Tensor | None = None  # (B, 2): scores, for heads with that question


class Model(nn.Module):
    """`head(base(tokens))`; without a head, the hidden states themselves.

    Training and inference both go through `forward`, so that wrappers which hook into it
    (`DistributedDataParallel`, `fully_shard`) see every call.
    """

    def __init__(self, base: Transformer, head: Head | None) -> None:
        super().__init__()
        self.base = base
        self.head = head

    def forward(
        self,
        tokens: Tensor,
        segments: Tensor | None = None,
        token_types: Tensor | None = None,
        targets: VocabularyTargets | None = None,
        owners: Tensor | None = None,
    ) -> Any:
        """The head's scores; with `targets`, what it costs to predict them.

        Parameters
        ----------
        tokens : Tensor of shape (B, T)
        segments : Tensor of shape (B, T), optional
            0 is padding; the texts of a packed row are 1, 2, …
        token_types : Tensor of shape (B, T), optional
        targets : VocabularyTargets, optional
            For heads that predict pieces.
        owners : Tensor of shape (B,), optional
            For classification: rows are windows, and this is the text of each (0, 0, 1, …).

        Returns
        -------
        Tensor
            Scores; or with `targets` a `LanguageModelingLoss`.
        """
        if targets is not None:
            return self._loss(self.base(tokens, segments, token_types), segments, targets)
        if isinstance(self.head, Classification):
            vectors = self.vectors(tokens, segments, token_types)
            if owners is not None:
                sizes = window_sizes(tokens, segments)
                vectors = join_windows(vectors, sizes, owners, self.head.config.pooling)
            return self.head.answer(vectors)
        hidden = self.base(tokens, segments, token_types)  # (B, T, d)
        return hidden if self.head is None else self.head(hidden, segments)

    def vectors(
        self, tokens: Tensor, segments: Tensor | None = None, token_types: Tensor | None = None
    ) -> Tensor:
        """What the classification head reads of each row: (B, d), or (B, 2d) for `mean+max`."""
        assert isinstance(self.head, Classification)
        pooling = self.head.config.pooling
        place = pooled_place(tokens, segments, pooling)
        if place is not None:
            hidden: Tensor = self.base(tokens, segments, token_types, only_at=place)  # (B, 1, d)
            return hidden[:, 0]
        return pool(self.base(tokens, segments, token_types), segments, pooling)

    def _loss(
        self, hidden: Tensor, segments: Tensor | None, targets: VocabularyTargets
    ) -> LanguageModelingLoss:
        assert isinstance(self.head, LanguageModeling | MaskedNextSentence)
        pieces = self.head.loss(hidden, targets)
        if isinstance(self.head, LanguageModeling):
            return LanguageModelingLoss(pieces)
        return LanguageModelingLoss(pieces, self.head.next_sentence(hidden, segments))

    @property
    def head_config(self) -> HeadConfig | None:
        return None if self.head is None else self.head.config

    @property
    def vocabulary_rows(self) -> list[nn.Parameter]:
        """Parameters with one row per piece: a step touches few of them."""
        rows: list[Any] = [self.base.embedding.weight]
        head = (
            self.head.language_modeling if isinstance(self.head, MaskedNextSentence) else self.head
        )
        if isinstance(head, LanguageModeling):
            rows += [] if head.config.tied else [head.output.weight]
            rows += [] if head.output.bias is None else [head.output.bias]
        return rows


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
