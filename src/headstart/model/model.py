"""A base with a head: what is trained, saved and run; and another head on the same base."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.model.attention import SelfAttention
from headstart.model.base import FeedForward, Transformer
from headstart.model.config import BaseConfig, HeadConfig, LanguageModelingConfig
from headstart.model.heads import (
    HEADS,
    ClassificationHead,
    Head,
    LanguageModelingHead,
    MaskedNextSentenceHead,
    Transform,
)
from headstart.model.pooling import (
    join_windows,
    pool,
    pooled_position,
    positions_per_row,
    real_tokens,
)
from headstart.model.positions import LearnedPositions
from headstart.model.sampled_softmax import SoftmaxTargets

# The last block computes only the predicted positions if they are at most this share of a row.
MOST_READ = 0.5
PROJECTED = 256  # width of the projection of contrastive pretraining


class LanguageModelingLoss(NamedTuple):
    """The result of `Model.forward` with targets."""

    tokens: Tensor  # summed cross-entropy
    next_sentence: Tensor | None = None  # (B, 2): scores, for `MaskedNextSentenceHead`


class Projection(nn.Sequential):
    """Two layers, after which the views of a text are compared (SimCLR, Chen et al. 2020)."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


class Model(nn.Module):
    """`head(base(tokens))`; without a head, the hidden states.

    Training and inference both go through `forward`, so that wrappers which hook into it
    (`DistributedDataParallel`, `fully_shard`) see every call.
    """

    def __init__(self, base: Transformer, head: Head | None) -> None:
        super().__init__()
        self.base = base
        self.head = head
        self.projection: Projection | None = None  # of contrastive pretraining, never saved

    def forward(
        self,
        tokens: Tensor,
        segments: Tensor | None = None,
        token_types: Tensor | None = None,
        targets: SoftmaxTargets | None = None,
        owners: Tensor | None = None,
    ) -> Any:
        """Compute the head's scores, or with `targets` a `LanguageModelingLoss`.

        `tokens`, `segments` and `token_types` are (B, T); segment 0 is padding, and the texts of a
        packed row are 1, 2, … `owners` (B,) is for classification: rows are windows, and this is
        the text of each (0, 0, 1, …).
        """
        if targets is not None:
            return self._loss(tokens, segments, token_types, targets)
        if isinstance(self.head, ClassificationHead):
            vectors = self.vectors(tokens, segments, token_types)
            if owners is not None:
                sizes = real_tokens(tokens, segments).sum(dim=1)
                vectors = join_windows(vectors, sizes, owners, self.head.config.pooling)
            return self.head.classify(vectors)
        hidden = self.base(tokens, segments, token_types)  # (B, T, d)
        return hidden if self.head is None else self.head(hidden, segments)

    def vectors(
        self, tokens: Tensor, segments: Tensor | None = None, token_types: Tensor | None = None
    ) -> Tensor:
        """Compute the pooled vector of each row: (B, d), or (B, 2d) for `mean+max`."""
        assert isinstance(self.head, ClassificationHead)
        pooling = self.head.config.pooling
        position = pooled_position(tokens, segments, pooling)
        if position is None:
            return pool(self.base(tokens, segments, token_types), segments, pooling)
        hidden: Tensor = self.base(tokens, segments, token_types, only_at=position.unsqueeze(1))
        return hidden[:, 0]  # of (B, 1, d)

    def project(self, tokens: Tensor, segments: Tensor) -> Tensor:
        """Compute the unit vectors of views for contrastive learning: (2·B, T) → (B, 2, p)."""
        assert self.projection is not None
        pooled = pool(self.base(tokens, segments), segments, "mean+max")
        return F.normalize(self.projection(pooled), dim=-1).unflatten(0, (-1, 2))

    def _loss(
        self,
        tokens: Tensor,
        segments: Tensor | None,
        token_types: Tensor | None,
        targets: SoftmaxTargets,
    ) -> LanguageModelingLoss:
        assert isinstance(self.head, LanguageModelingHead)
        only_at = first = None
        if isinstance(self.head, MaskedNextSentenceHead):
            first = pooled_position(tokens, segments, "first")
        if len(targets.positions) <= MOST_READ * tokens.numel():
            grouped, positions = positions_per_row(targets.positions, tokens, first)
            if grouped.size(1) <= MOST_READ * tokens.size(1):  # rows differ
                only_at, targets = grouped, replace(targets, positions=positions)
        hidden = self.base(tokens, segments, token_types, only_at=only_at)  # (B, T or K, d)
        loss = self.head.loss(hidden, targets)
        if not isinstance(self.head, MaskedNextSentenceHead):
            return LanguageModelingLoss(loss)
        if only_at is not None:
            hidden, segments = hidden[:, :1], None
        return LanguageModelingLoss(loss, self.head.next_sentence(hidden, segments))

    @property
    def head_config(self) -> HeadConfig | None:
        return None if self.head is None else self.head.config

    @property
    def vocabulary_rows(self) -> list[nn.Parameter]:
        """Parameters with one row per token of the vocabulary: a step touches few of them."""
        rows: list[Any] = [self.base.embedding.weight]
        if isinstance(self.head, LanguageModelingHead):
            rows += [] if self.tied else [self.head.output.weight]
            rows += [] if self.head.output.bias is None else [self.head.output.bias]
        return rows

    @property
    def tied(self) -> bool:
        """Whether the output layer's weight is the embedding."""
        return isinstance(self.head, LanguageModelingHead) and self.head.config.tied


def build_model(base: BaseConfig, head: HeadConfig | None = None, *, seed: int = 0) -> Model:
    """Build a model with random weights that depend on the seed alone."""
    with _seeded(seed):
        if base.transformers is None:
            transformer = Transformer(base)
            _initialize(transformer, base)
        else:
            transformer = import_module("headstart.interop.huggingface").TransformersBase(base)
    return Model(transformer, None if head is None else new_head(transformer, head, seed=seed))


def new_head(base: Transformer, config: HeadConfig, *, seed: int) -> Head:
    """Make a head with random weights for an existing base."""
    with _seeded(seed):
        head: Head = HEADS[config.kind][1](base, config)
        _initialize(head, base.config, tied=base.embedding.weight)
    return head.to(base.embedding.weight.device)


def add_projection(model: Model, *, seed: int) -> None:
    """Give a model the random projection that contrastive pretraining needs."""
    base = model.base.config
    with _seeded(seed):
        model.projection = Projection(2 * base.width, PROJECTED, base.width)
        _initialize(model.projection, base)


@dataclass(frozen=True)
class SwapRow:
    """What happened to one part of the network."""

    part: str
    status: Literal["kept", "new", "dropped"]
    parameters: int
    why: str


def swap_head(model: Model, head: HeadConfig, *, seed: int) -> tuple[Model, list[SwapRow]]:
    """Put a new head with random weights on the model's base, which is shared, not copied.

    A `Transform` layer that both heads have is copied. The second result is the table of the swap:
    what was kept, dropped and added, and why.
    """
    swapped = Model(model.base, new_head(model.base, head, seed=seed))
    swapped.train(model.training)
    copied = 0
    before, after = (getattr(one.head, "transform", None) for one in (model, swapped))
    if isinstance(before, Transform) and isinstance(after, Transform):
        after.load_state_dict(before.state_dict())
        copied = _count(after)
    base, embedding = _count(model.base), _count(model.base.embedding)
    new = _count(swapped) - base - copied
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
        predicts = isinstance(old, LanguageModelingConfig)
        why = "it predicts tokens of the vocabulary" if predicts else "it is for another task"
        rows.append(SwapRow(_name(old), "dropped", dropped, why))
    if copied:
        rows.append(SwapRow("transform", "kept", copied, "the layer before the output"))
    rows.append(SwapRow(_name(head), "new", new, "for the new task, to be trained"))
    return swapped, rows


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _name(head: HeadConfig) -> str:
    return head.kind.replace("_", " ") + " head"


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's generator inside, and restore its state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def _initialize(module: nn.Module, base: BaseConfig, *, tied: Tensor | None = None) -> None:
    """Initialize a base or head; a tied embedding stays as it is.

    `normal` (GPT-2): a standard deviation of 0.02, and less for the projections that are summed
    over the layers. `lab`: PyTorch's defaults for its encoder layer; ±0.1 for embedding and head.
    """
    lab = base.initialization == "lab"
    for part in module.modules():
        if (
            isinstance(part, nn.Linear | nn.Embedding | LearnedPositions)
            and part.weight is not tied
        ):
            if lab:
                nn.init.uniform_(part.weight, -0.1, 0.1)
            else:
                nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    deviation = 0.02 / math.sqrt(2 * base.layers)
    for part in module.modules():
        if isinstance(part, SelfAttention) and lab:
            nn.init.xavier_uniform_(part.query_key_value.weight)
            nn.init.kaiming_uniform_(part.output.weight, a=math.sqrt(5))
        elif isinstance(part, FeedForward) and lab:
            part.up.reset_parameters()
            part.down.reset_parameters()
        elif isinstance(part, SelfAttention | FeedForward):
            summed = part.output if isinstance(part, SelfAttention) else part.down
            nn.init.normal_(summed.weight, std=deviation)
