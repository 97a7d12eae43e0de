"""What every pretraining objective defines: how tokens become a batch, and a batch a loss."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from headstart.model.config import Attention, HeadConfig
from headstart.model.model import LanguageModelingLoss
from headstart.model.presets import Preset
from headstart.model.vocabulary_loss import Candidates, VocabularyTargets
from headstart.text.store.token_source import TokenSource


@dataclass(frozen=True)
class Batch:
    """Tokens in, and which pieces must be predicted where."""

    tokens: Tensor  # (B, T)
    positions: Tensor  # (N): places of the targets in the flattened batch
    targets: Tensor  # (N)
    segments: Tensor | None = None  # (B, T): 0 is padding; texts of a row are 1, 2, …
    token_types: Tensor | None = None  # (B, T)
    follows: Tensor | None = None  # (B): 1 where text B really follows text A
    targets_per_text: float = 0.0  # of the whole step, with `follows`
    candidates: Candidates | None = None  # what the output layer scores; None is everything

    @property
    def real_tokens(self) -> int:
        return self.tokens.numel() if self.segments is None else int((self.segments > 0).sum())

    def to(self, device: torch.device) -> "Batch":
        movable = (Tensor, Candidates)
        parts: dict[str, Any] = {
            name: value.to(device)
            for name, value in vars(self).items()
            if isinstance(value, movable)
        }
        return replace(self, **parts)

    def run(self, model: nn.Module) -> LanguageModelingLoss:
        """What predicting the targets costs the model."""
        to = VocabularyTargets(self.positions, self.targets, self.candidates)
        loss: LanguageModelingLoss = model(self.tokens, self.segments, self.token_types, to)
        return loss

    def cut(self, rows: int) -> "list[Batch]":
        """The same rows and targets, at most `rows` rows at a time; all share the candidates."""
        if self.tokens.size(0) <= rows:
            return [self]
        length = self.tokens.size(1)
        parts = []
        for start in range(0, self.tokens.size(0), rows):
            here = slice(start, start + rows)
            first, stop = start * length, min(start + rows, self.tokens.size(0)) * length
            here_too = (self.positions >= first) & (self.positions < stop)
            parts.append(
                replace(
                    self,
                    tokens=self.tokens[here],
                    positions=self.positions[here_too] - first,
                    targets=self.targets[here_too],
                    segments=None if self.segments is None else self.segments[here],
                    token_types=None if self.token_types is None else self.token_types[here],
                    follows=None if self.follows is None else self.follows[here],
                )
            )
        # A part without a target has nothing to add, unless it has texts that follow or do not.
        return [part for part in parts if part.targets.numel() or part.follows is not None]


@dataclass(frozen=True)
class Loss:
    """Sums over a batch, so that several batches add up exactly like one large one."""

    total: Tensor  # what is minimised, summed over the targets
    targets: int
    parts: dict[str, tuple[float, int]] = field(default_factory=dict)  # named sums and counts


class Objective(ABC):
    """One way to pretrain. An instance is one such training's settings; it holds no state."""

    name: ClassVar[str]
    attention: ClassVar[Attention]
    can_generate: ClassVar[bool] = False

    def __init__(self, *, mask_share: float) -> None:
        self.mask_share = mask_share

    @classmethod
    @abstractmethod
    def head(cls, preset: Preset) -> HeadConfig:
        """The head that a preset's base is pretrained with."""

    @abstractmethod
    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        """A batch of `rows` rows: a pure function of the source and the key (seed, step)."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """The batch's summed loss. The model is only called, so a wrapped one works too."""
