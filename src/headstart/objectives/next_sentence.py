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

from headstart.model.config import HeadConfig, MaskedNextSentenceConfig
from headstart.model.heads import MaskedNextSentence
from headstart.model.model import Model
from headstart.model.presets import Preset
from headstart.objectives.masked import Masked
from headstart.objectives.objective import Batch, Loss, vocabulary_loss
from headstart.text.store.token_source import TokenSource


class NextSentence(Masked):
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
        return replace(hidden, token_types=pairs.token_types, follows=pairs.follows)

    def loss(self, model: Model, batch: Batch) -> Loss:
        head = model.head
        assert isinstance(head, MaskedNextSentence)
        assert batch.follows is not None
        kinds = batch.token_types if model.base.config.token_types > 1 else None
        hidden = model.base(batch.tokens, batch.segments, kinds)
        pieces = vocabulary_loss(head.language_modeling, hidden, batch)
        answers = head.next_sentence(hidden, batch.segments).float()  # (B, 2)
        follows = F.cross_entropy(answers, batch.follows, reduction="sum")
        count, texts = batch.targets.numel(), batch.follows.numel()
        right = int((answers.argmax(-1) == batch.follows).sum())
        # Both losses as means, added as in BERT, then weighted by the targets like any other.
        total = pieces + follows * (count / texts)
        return Loss(
            total,
            count,
            {
                "pieces": (float(pieces.detach()), count),
                "next_sentence": (float(follows.detach()), texts),
                "next_sentence_accuracy": (float(right), texts),
            },
        )
