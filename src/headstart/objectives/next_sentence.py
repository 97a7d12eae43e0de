"""Masked language modelling and next sentence prediction together: BERT as published.

Input: `<begin> A <separator> B <end>`, with tokens masked as in `masked`. Half of the time B
continues A, else B is from another document. Targets: the masked tokens, and whether B follows A,
predicted from the first token. Later work found that the second task adds little (Liu et al.
2019), so try `masked` first.
"""

from dataclasses import replace
from typing import ClassVar

import torch.nn.functional as F
from torch import nn

from headstart.data.batches import TokenSource
from headstart.model.config import HeadConfig, MaskedNextSentenceConfig
from headstart.model.presets import Preset
from headstart.objectives.masked import Masked
from headstart.objectives.objective import Batch, Loss


class NextSentence(Masked):
    """Predict the masked tokens, and whether the second text follows the first."""

    name: ClassVar[str] = "masked+next-sentence"

    @classmethod
    def head(cls, preset: Preset) -> HeadConfig:
        language_modeling = preset.language_modeling
        return MaskedNextSentenceConfig(
            tied=language_modeling.tied,
            bias=language_modeling.bias,
            transform=language_modeling.transform,
        )

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        pairs = source.pairs(rows, key)
        masked = self.mask(source, pairs.tokens, pairs.segments, key, separate=False)
        return replace(
            masked,
            token_types=pairs.token_types,
            follows=pairs.follows,
            targets_per_text=masked.targets.numel() / rows,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        assert batch.follows is not None
        tokens, scores = batch.run(model)
        assert scores is not None
        scores = scores.float()  # (B, 2)
        follows = F.cross_entropy(scores, batch.follows, reduction="sum")
        correct = float((scores.argmax(-1) == batch.follows).sum())
        targets, texts = batch.targets.numel(), batch.follows.numel()
        # Both losses as means, added as in BERT, then weighted by the targets like any other.
        # The ratio is the whole step's, so that the losses of its micro-batches add up.
        return Loss(
            tokens + follows * batch.targets_per_text,
            targets,
            {
                "masked_tokens": (float(tokens.detach()), targets),
                "next_sentence": (float(follows.detach()), texts),
                "next_sentence_accuracy": (correct, texts),
            },
        )
