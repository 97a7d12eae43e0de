"""Masked language modelling (BERT): predict hidden tokens from the rest of the text.

Input: `A [MASK] C D`. Target: `B` at its position. A share of the tokens is chosen; of those, 80 %
become the mask token, 10 % a random one and 10 % stay as they are, so that the base cannot learn
that only mask tokens matter. Both sides are visible, which suits classification and tagging. Only
the chosen positions are scored, so a step is cheap at the output layer, but it also teaches less
than a step of `causal`, and the base cannot generate. New masks are drawn each time a row is read.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from headstart.data.batches import TokenSource
from headstart.errors import HeadstartError
from headstart.model.config import Attention, HeadConfig
from headstart.model.presets import Preset
from headstart.objectives.objective import Batch, Loss, Objective

MASKED, RANDOM = 0.8, 0.1  # shares of the chosen tokens; the rest stays


def mask_tokens(
    tokens: Tensor,
    maskable: Tensor,
    *,
    share: float,
    mask_id: int,
    vocab_size: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Apply BERT's masking rule; return the changed tokens and the chosen positions, both (B, T).

    At least one position is chosen if any is maskable, so that no batch is without a target.
    """
    draw = torch.rand(tokens.shape, generator=generator)
    chosen = maskable & (draw < share)
    if not bool(chosen.any()):
        first = torch.where(maskable, draw, 2.0).flatten().argmin()
        chosen = maskable & (torch.arange(tokens.numel()).view_as(tokens) == first)
    kind = torch.rand(tokens.shape, generator=generator)
    random = torch.randint(vocab_size, tokens.shape, generator=generator)
    changed = torch.where(chosen & (kind < MASKED), mask_id, tokens)
    swapped = chosen & (kind >= MASKED) & (kind < MASKED + RANDOM)
    return torch.where(swapped, random, changed), chosen


class Masked(Objective):
    """Predict the hidden tokens from both sides."""

    name: ClassVar[str] = "masked"
    attention: ClassVar[Attention] = "bidirectional"

    @classmethod
    def head(cls, preset: Preset) -> HeadConfig:
        return preset.language_modeling

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        packed = source.rows(rows, key)
        return self.mask(source, packed.tokens, packed.segments, key, separate=source.separate)

    def mask(
        self,
        source: TokenSource,
        tokens: Tensor,
        segments: Tensor,
        key: tuple[int, int],
        *,
        separate: bool,
    ) -> Batch:
        """Choose and mask tokens; special tokens and padding are never targets."""
        if source.tokenizer.mask_id is None:
            raise HeadstartError(
                "this tokenizer has no mask token, which a masked objective needs",
                fix="use --objective causal, or train a tokenizer with: headstart tokenizer",
            )
        changed, chosen = mask_tokens(
            tokens,
            (segments > 0) & ~torch.isin(tokens, source.special_ids),
            share=self.mask_share,
            mask_id=source.tokenizer.mask_id,
            vocab_size=source.tokenizer.vocab_size,
            generator=source.generator(key),
        )
        padded = bool((segments == 0).any())
        if not separate:  # then segments only distinguish padding from text
            segments = (segments > 0).to(segments.dtype)
        return Batch(
            tokens=changed,
            positions=chosen.flatten().nonzero().squeeze(1),
            targets=tokens[chosen],
            segments=segments if separate or padded else None,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        return Loss(batch.run(model).tokens, batch.targets.numel())
