"""Heads: modules that turn the base's hidden states (B, T, d) into scores.

| head                     | scores                              | shape                    |
|--------------------------|-------------------------------------|--------------------------|
| `LanguageModelingHead`   | the token at (or after) a position  | (B, T, vocabulary)       |
| `MaskedNextSentenceHead` | the same, and BERT's next sentence  | (B, T, vocabulary)       |
| `ClassificationHead`     | the class of the text               | (B, classes)             |
| `TaggingHead`            | the tag of each token               | (B, T, tags)             |
| `SpansHead`              | where an answer starts and ends     | (B, T, 2), padding at -∞ |

A new head is one config, one module and one line in `HEADS`.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.model.base import Transformer, make_norm
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    MaskedNextSentenceConfig,
    SpansConfig,
    TaggingConfig,
)
from headstart.model.pooling import pool
from headstart.model.sampled_softmax import SoftmaxTargets, softmax_loss


class Transform(nn.Module):
    """BERT's layer before the output: dense, GELU, norm."""

    def __init__(self, base: BaseConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(base.width, base.width, bias=base.biases)
        self.norm = make_norm(base)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.norm(F.gelu(self.dense(hidden)))


class OutputHead(nn.Module):
    """The parts that heads share: a layer before the output, dropout, and the output layer."""

    def __init__(
        self,
        base: Transformer,
        config: Any,
        outputs: int,
        *,
        width: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.config = config
        self.transform: nn.Module = Transform(base.config) if config.transform else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(width or base.config.width, outputs, bias=bias)
        if config.stock:
            self.transform, self.output = base.stock_layers(config.kind, outputs)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        """Compute the scores of hidden states or of pooled vectors: (…, d) → (…, outputs)."""
        return self.output(self.dropout(self.transform(hidden)))


class LanguageModelingHead(OutputHead):
    """Scores of every token. If tied, the output layer's weight is the base's embedding."""

    def __init__(self, base: Transformer, config: LanguageModelingConfig) -> None:
        super().__init__(base, config, base.config.vocab_size, bias=config.bias)
        if config.tied:
            self.output.weight = base.embedding.weight

    def loss(self, hidden: Tensor, targets: SoftmaxTargets) -> Tensor:
        """Compute the summed cross-entropy at the targets; other positions are not computed."""
        selected = self.transform(targets.select(hidden))
        return softmax_loss(selected, self.output.weight, self.output.bias, targets)


class NextSentenceHead(nn.Module):
    """Scores (B, 2) of "the second text follows the first", from the first token (BERT)."""

    def __init__(self, base: Transformer) -> None:
        super().__init__()
        self.dense = nn.Linear(base.config.width, base.config.width)
        self.output = nn.Linear(base.config.width, 2)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        return self.output(torch.tanh(self.dense(pool(hidden, segments, "first"))))


class MaskedNextSentenceHead(LanguageModelingHead):
    """Both of BERT's pretraining heads; its scores are those of the tokens."""

    def __init__(self, base: Transformer, config: MaskedNextSentenceConfig) -> None:
        super().__init__(base, config)
        self.next_sentence = NextSentenceHead(base)


class ClassificationHead(OutputHead):
    """Pool, then (for BERT and ModernBERT) one more layer, then the class scores."""

    def __init__(self, base: Transformer, config: ClassificationConfig) -> None:
        width = base.config.width * (2 if config.pooling == "mean+max" else 1)
        super().__init__(base, config, config.classes, width=width, bias=config.bias)
        self.dense = nn.Linear(width, width) if config.dense else None

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        return self.classify(pool(hidden, segments, self.config.pooling))

    def classify(self, pooled: Tensor) -> Tensor:
        """Compute class scores from pooled vectors: (B, d) or (B, 2d) → (B, classes)."""
        if self.dense is not None:
            pooled = torch.tanh(self.dense(pooled))
        return super().forward(pooled)


class TaggingHead(OutputHead):
    """Tag scores of every token."""

    def __init__(self, base: Transformer, config: TaggingConfig) -> None:
        super().__init__(base, config, config.tags)


class SpansHead(OutputHead):
    """Two scores per token: the answer starts here, the answer ends here."""

    def __init__(self, base: Transformer, config: SpansConfig) -> None:
        super().__init__(base, config, 2)

    def forward(self, hidden: Tensor, segments: Tensor | None = None) -> Tensor:
        scores = super().forward(hidden)
        if segments is None:
            return scores
        # An answer never starts in the padding.
        return scores.masked_fill((segments == 0).unsqueeze(-1), float("-inf"))


Head = LanguageModelingHead | ClassificationHead | TaggingHead | SpansHead

# By the `kind` in config.json: the config and the module, called as `module(base, config)`.
HEADS: dict[str, tuple[type[Any], type[Any]]] = {
    "language_modeling": (LanguageModelingConfig, LanguageModelingHead),
    "masked_next_sentence": (MaskedNextSentenceConfig, MaskedNextSentenceHead),
    "classification": (ClassificationConfig, ClassificationHead),
    "tagging": (TaggingConfig, TaggingHead),
    "spans": (SpansConfig, SpansHead),
}


def head_from_dict(values: dict[str, Any], *, where: object = None) -> HeadConfig:
    """Make the config of a head from the values of a file; `kind` names the head."""
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in HEADS:
        raise HeadstartError(
            f"unknown head {str(kind)[:60]!r}; the heads are {', '.join(HEADS)}", where=where
        )
    return HEADS[kind][0].from_dict(values, where=where)
