"""What a pretraining objective defines: how tokens become a batch, and a batch a loss."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from headstart.data.batches import TokenSource
from headstart.model.config import Attention, HeadConfig
from headstart.model.model import LanguageModelingLoss
from headstart.model.presets import Preset
from headstart.model.sampled_softmax import SampledClasses, SoftmaxTargets


@dataclass(frozen=True)
class Batch:
    """Input tokens, and which tokens are predicted at which positions."""

    tokens: Tensor  # (B, T)
    positions: Tensor  # (N): positions of the targets in the flattened batch
    targets: Tensor  # (N)
    segments: Tensor | None = None  # (B, T): 0 is padding; texts of a row are 1, 2, …
    token_types: Tensor | None = None  # (B, T)
    follows: Tensor | None = None  # (B): 1 where the second text follows the first
    targets_per_text: float = 0.0  # of the whole step, with `follows`
    sampled: SampledClasses | None = None  # classes of the output layer; None is all of them

    @property
    def real_tokens(self) -> int:
        return self.tokens.numel() if self.segments is None else int((self.segments > 0).sum())

    def to(self, device: torch.device) -> "Batch":
        moved = {
            name: value.to(device)
            for name, value in vars(self).items()
            if isinstance(value, Tensor | SampledClasses)
        }
        return replace(self, **moved)  # type: ignore[arg-type]

    def run(self, model: nn.Module) -> LanguageModelingLoss:
        """Compute the model's loss at the targets."""
        targets = SoftmaxTargets(self.positions, self.targets, self.sampled)
        loss: LanguageModelingLoss = model(self.tokens, self.segments, self.token_types, targets)
        return loss

    def split(self, rows: int) -> "list[Batch]":
        """Split into batches of at most `rows` rows; all use the same sampled classes."""
        if self.tokens.size(0) <= rows:
            return [self]
        length = self.tokens.size(1)
        parts = []
        for start in range(0, self.tokens.size(0), rows):
            first, stop = start * length, (start + rows) * length
            inside = (self.positions >= first) & (self.positions < stop)
            by_row = {
                name: value[start : start + rows]
                for name in ("tokens", "segments", "token_types", "follows")
                if (value := getattr(self, name)) is not None
            }
            part = replace(
                self,
                positions=self.positions[inside] - first,
                targets=self.targets[inside],
                **by_row,
            )
            if part.targets.numel() or part.follows is not None:
                parts.append(part)
        return parts


@dataclass(frozen=True)
class Loss:
    """Sums over a batch, so that the losses of several batches can be added."""

    total: Tensor  # to be minimised, summed over the targets
    targets: int
    parts: dict[str, tuple[float, int]] = field(default_factory=dict)  # named sums and counts


class Objective(ABC):
    """One way to pretrain. An instance holds settings, no state."""

    name: ClassVar[str]
    attention: ClassVar[Attention]
    can_generate: ClassVar[bool] = False

    def __init__(self, *, mask_share: float) -> None:
        self.mask_share = mask_share

    @classmethod
    @abstractmethod
    def head(cls, preset: Preset) -> HeadConfig:
        """Return the head that a preset's base is pretrained with."""

    @abstractmethod
    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        """Make a batch of `rows` rows: a pure function of the source and the key (seed, step)."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Compute the summed loss of a batch. The model is only called, so it may be wrapped."""
