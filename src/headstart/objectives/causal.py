"""Causal language modelling: predict the next token.

Input: `<begin> A B C D`. Targets: `A B C D <end>`. The causal mask hides later tokens, so every
position is a prediction. Every token is a target: this needs the fewest tokens to learn, and it is
the only objective that can generate text. A token's hidden state contains nothing of what follows
it; `masked` sees both sides, but learns only from the masked positions.
"""

from typing import ClassVar

from torch import nn

from headstart.data.batches import TokenSource
from headstart.model.config import Attention, LanguageModelingConfig
from headstart.model.presets import Preset
from headstart.objectives.objective import Batch, Loss, Objective


class Causal(Objective):
    """Predict every next token."""

    name: ClassVar[str] = "causal"
    attention: ClassVar[Attention] = "causal"
    can_generate: ClassVar[bool] = True

    @classmethod
    def head(cls, preset: Preset) -> LanguageModelingConfig:
        return preset.language_modeling

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        packed = source.rows(rows, key, extra=1)
        tokens, segments = packed.tokens[:, :-1], packed.segments[:, :-1]
        # What follows the end of a text is another text and cannot be predicted.
        is_target = (segments == packed.segments[:, 1:]) & (segments > 0)  # (B, T)
        return Batch(
            tokens=tokens,
            positions=is_target.flatten().nonzero().squeeze(1),
            targets=packed.tokens[:, 1:][is_target],
            segments=segments if source.separate else None,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        return Loss(batch.run(model).tokens, batch.targets.numel())
