"""The heads: what turns the base's hidden states (B, T, d) into an answer.

| head                   | answer                             | shape                    |
|------------------------|------------------------------------|--------------------------|
| `LanguageModelingHead` | which piece stands (or comes) here | (B, T, vocabulary)       |
| `NextSentenceHead`     | does text B follow text A          | (B, 2)                   |
| `ClassificationHead`   | the class of the text              | (B, classes)             |
| `TaggingHead`          | the tag of each token              | (B, T, tags)             |
| `SpansHead`            | where an answer starts and ends    | (B, T, 2), padding at -∞ |

`register_head` adds one from another package.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.model.block import make_norm
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    MaskedNextSentenceConfig,
    NextSentenceConfig,
    SpansConfig,
    TaggingConfig,
    register_head_config,
)
from headstart.model.pooling import pool
from headstart.model.vocabulary_loss import VocabularyTargets, vocabulary_loss
from headstart.settings import Checked


class LanguageModelingHead(nn.Module):
    """Scores for every piece. Tied, the output layer's weight *is* the embedding."""

    def __init__(
        self, base: BaseConfig, config: LanguageModelingConfig, embedding: nn.Embedding
    ) -> None:
        super().__init__()
        self.config = config
        self.transform = Transform(base) if config.transform else nn.Identity()
        self.output = nn.Linear(base.width, base.vocab_size, bias=config.bias)
        if config.tied:
            self.output.weight = embedding.weight

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        return self.output(self.transform(hidden))

    def loss(self, hidden: Tensor, targets: VocabularyTargets) -> Tensor:
        """The summed cross-entropy at the targets; no other position is computed."""
        picked = self.transform(targets.pick(hidden))
        return vocabulary_loss(picked, self.output.weight, self.output.bias, targets)


class Transform(nn.Module):
    """BERT's step before the output layer: dense, GELU, norm."""

    def __init__(self, base: BaseConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(base.width, base.width, bias=base.biases)
        self.norm = make_norm(base)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.norm(F.gelu(self.dense(hidden)))


class ClassificationHead(nn.Module):
    """One answer per text: pool, then (for BERT and ModernBERT) a layer more, then the classes."""

    def __init__(self, base: BaseConfig, config: ClassificationConfig) -> None:
        super().__init__()
        self.config = config
        width = base.width * (2 if config.pooling == "mean+max" else 1)
        self.dense = nn.Linear(width, width) if config.dense else None
        self.transform = Transform(base) if config.transform else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes, bias=config.bias)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        return self.answer(pool(hidden, segments, self.config.pooling))

    def answer(self, pooled: Tensor) -> Tensor:
        """The classes' scores from pooled vectors: (B, d) or (B, 2d) → (B, classes)."""
        if self.dense is not None:
            pooled = self.dense(pooled)
            tanh = self.config.dense_activation == "tanh"
            pooled = torch.tanh(pooled) if tanh else F.relu(pooled)
        return self.output(self.dropout(self.transform(pooled)))


class NextSentenceHead(nn.Module):
    """BERT's second question, read off the first token: 1 if B follows A."""

    def __init__(self, base: BaseConfig, config: NextSentenceConfig) -> None:
        super().__init__()
        self.config = config
        self.dense = nn.Linear(base.width, base.width)
        self.output = nn.Linear(base.width, 2)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        return self.output(torch.tanh(self.dense(pool(hidden, segments, "first"))))


class MaskedNextSentenceHead(nn.Module):
    """Both of BERT's heads on one base."""

    def __init__(
        self, base: BaseConfig, config: MaskedNextSentenceConfig, embedding: nn.Embedding
    ) -> None:
        super().__init__()
        self.config = config
        self.language_modeling = LanguageModelingHead(base, config.language_modeling, embedding)
        self.next_sentence = NextSentenceHead(base, NextSentenceConfig())

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        """The pieces' scores: what remains of use once the base is trained."""
        return self.language_modeling(hidden, segments)

    def loss(self, hidden: Tensor, targets: VocabularyTargets) -> Tensor:
        return self.language_modeling.loss(hidden, targets)


class TaggingHead(nn.Module):
    """One answer per token."""

    def __init__(self, base: BaseConfig, config: TaggingConfig) -> None:
        super().__init__()
        self.config = config
        self.transform = Transform(base) if config.transform else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(base.width, config.tags)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        return self.output(self.dropout(self.transform(hidden)))


class SpansHead(nn.Module):
    """Two scores per token: the answer starts here, the answer ends here."""

    def __init__(self, base: BaseConfig, config: SpansConfig) -> None:
        super().__init__()
        self.config = config
        self.transform = Transform(base) if config.transform else nn.Identity()
        self.output = nn.Linear(base.width, 2)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        scores: Tensor = self.output(self.transform(hidden))
        if segments is None:
            return scores
        # An answer never starts in the padding.
        return scores.masked_fill((segments == 0).unsqueeze(-1), float("-inf"))


Head = (
    LanguageModelingHead
    | NextSentenceHead
    | MaskedNextSentenceHead
    | ClassificationHead
    | TaggingHead
    | SpansHead
)


# By the class of its settings: the head, and whether it is given the base's embedding, too.
_HEADS: dict[type[Checked], tuple[Callable[..., Any], bool]] = {
    LanguageModelingConfig: (LanguageModelingHead, True),
    NextSentenceConfig: (NextSentenceHead, False),
    MaskedNextSentenceConfig: (MaskedNextSentenceHead, True),
    ClassificationConfig: (ClassificationHead, False),
    TaggingConfig: (TaggingHead, False),
    SpansConfig: (SpansHead, False),
}


def register_head(
    config_class: type[Checked], head_class: Callable[..., Any], *, with_embedding: bool = False
) -> None:
    """Let models be built, saved and opened with a head of your own.

    Parameters
    ----------
    config_class : a frozen dataclass of settings, a subclass of `model.config.Checked`. Its field
        `kind` has a default, the name under which a run's `config.json` keeps it.
    head_class : called as `head_class(base_config, config)`, with the base's embedding as a third
        argument if `with_embedding`. The module keeps `config` and maps hidden states (B, T, d)
        and segments (B, T) to scores.

    A package that announces `kind` in the entry point group `headstart.heads`, with a module that
    calls this function, is imported when a run with that head is opened.
    """
    register_head_config(config_class)
    _HEADS[config_class] = (head_class, with_embedding)


def make_head(base: BaseConfig, config: HeadConfig, embedding: nn.Embedding) -> Head:
    """The head that `config` describes, for a base with this config and embedding."""
    if type(config) not in _HEADS:
        raise HeadstartError(
            f"no head is registered for {type(config).__name__}", fix="call register_head with it"
        )
    head_class, with_embedding = _HEADS[type(config)]
    return head_class(base, config, embedding) if with_embedding else head_class(base, config)
