"""Masked language modelling and next sentence together: BERT as it was published.

In: `<begin> A <separator> B <end>`, with tokens hidden as in `masked`. Half of the time B goes on
where A stopped, else B is from another document. Out: the hidden tokens, and 1 or 0 for "B
follows A", read off the first token. The second question was meant for tasks with two texts (does
this answer that?); later work found that it adds little elsewhere (Liu et al. 2019), so `masked`
is the one to try first.
"""

from dataclasses import replace
from typing import ClassVar

import torch.nn.functional as F
from torch import nn

from headstart.model.config import HeadConfig, MaskedNextSentenceConfig
from headstart.model.presets import Preset
from headstart.objectives.masked import Masked
from headstart.objectives.objective import Batch, Loss
from headstart.text.store.token_source import TokenSource


class NextSentence(Masked):
    """Predict the hidden tokens, and whether the second text follows the first."""

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
        hidden = self.hide(source, pairs.tokens, pairs.segments, key, separate=False)
        return replace(
            hidden,
            token_types=pairs.token_types,
            follows=pairs.follows,
            targets_per_text=hidden.targets.numel() / rows,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        assert batch.follows is not None
        pieces, answers = batch.run(model)
        assert answers is not None
        answers = answers.float()  # (B, 2)
        follows = F.cross_entropy(answers, batch.follows, reduction="sum")
        count, texts = batch.targets.numel(), batch.follows.numel()
        right = int((answers.argmax(-1) == batch.follows).sum())
        # Both losses as means, added as in BERT, then weighted by the targets like any other.
        # The ratio is the whole step's, so that its micro-batches add up exactly.
        total = pieces + follows * batch.targets_per_text
        return Loss(
            total,
            count,
            {
                "pieces": (float(pieces.detach()), count),
                "next_sentence": (float(follows.detach()), texts),
                "next_sentence_accuracy": (float(right), texts),
            },
        )
