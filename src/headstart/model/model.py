"""A base with a head: what is trained, saved and run."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headstart.model.attention import SelfAttention
from headstart.model.base import Transformer
from headstart.model.block import FeedForward
from headstart.model.config import BaseConfig, HeadConfig
from headstart.model.heads import (
    ClassificationHead,
    Head,
    LanguageModelingHead,
    MaskedNextSentenceHead,
    make_head,
)
from headstart.model.pooling import asked_places, join_windows, pool, pooled_place, window_sizes
from headstart.model.positions import LearnedPositions
from headstart.model.vocabulary_loss import VocabularyTargets

# Where at most this share of every row is asked for, the last block works for these tokens alone.
MOST_READ = 0.5


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
            return self._loss(tokens, segments, token_types, targets)
        if isinstance(self.head, ClassificationHead):
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
        assert isinstance(self.head, ClassificationHead)
        pooling = self.head.config.pooling
        place = pooled_place(tokens, segments, pooling)
        if place is not None:
            hidden: Tensor = self.base(tokens, segments, token_types, only_at=place.unsqueeze(1))
            return hidden[:, 0]  # of (B, 1, d)
        return pool(self.base(tokens, segments, token_types), segments, pooling)

    def _loss(
        self,
        tokens: Tensor,
        segments: Tensor | None,
        token_types: Tensor | None,
        targets: VocabularyTargets,
    ) -> LanguageModelingLoss:
        assert isinstance(self.head, LanguageModelingHead | MaskedNextSentenceHead)
        only_at = first = None
        if isinstance(self.head, MaskedNextSentenceHead):
            first = pooled_place(tokens, segments, "first")
        if len(targets.positions) <= MOST_READ * tokens.numel():
            places, positions = asked_places(targets.positions, tokens, first)
            if places.size(1) <= MOST_READ * tokens.size(1):  # rows differ
                only_at, targets = places, replace(targets, positions=positions)
        hidden = self.base(tokens, segments, token_types, only_at=only_at)  # (B, T or K, d)
        pieces = self.head.loss(hidden, targets)
        if isinstance(self.head, LanguageModelingHead):
            return LanguageModelingLoss(pieces)
        if only_at is not None:
            hidden, segments = hidden[:, :1], None
        return LanguageModelingLoss(pieces, self.head.next_sentence(hidden, segments))

    @property
    def head_config(self) -> HeadConfig | None:
        return None if self.head is None else self.head.config

    @property
    def vocabulary_rows(self) -> list[nn.Parameter]:
        """Parameters with one row per piece: a step touches few of them."""
        rows: list[Any] = [self.base.embedding.weight]
        head = self._language_modeling
        if head is not None:
            rows += [] if head.config.tied else [head.output.weight]
            rows += [] if head.output.bias is None else [head.output.bias]
        return rows

    @property
    def tied(self) -> bool:
        """Whether the output layer is the embedding itself."""
        return self._language_modeling is not None and self._language_modeling.config.tied

    @property
    def _language_modeling(self) -> LanguageModelingHead | None:
        if isinstance(self.head, MaskedNextSentenceHead):
            return self.head.language_modeling
        return self.head if isinstance(self.head, LanguageModelingHead) else None


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
