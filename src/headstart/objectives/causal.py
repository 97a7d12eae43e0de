"""Causal language modelling: predict the next token.

In: `<begin> A B C D`. Out: `A B C D <end>`. The square mask hides the future, so every position
is a question and none can read its answer off. Every token teaches: this needs the fewest tokens
to learn, and it is the only objective that can write. What it lacks is the right-hand side: a
token's hidden state knows nothing of what follows it. `masked` sees both sides, but learns only
where something is hidden.
"""

from typing import ClassVar

from torch import nn

from headstart.model.config import Attention, LanguageModelingConfig
from headstart.model.presets import Preset
from headstart.objectives.objective import Batch, Loss, Objective
from headstart.text.store.token_source import TokenSource


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
        # What follows the end of a text is another text: nobody could know it.
        is_target = (segments == packed.segments[:, 1:]) & (segments > 0)  # (B, T)
        return Batch(
            tokens=tokens,
            positions=is_target.flatten().nonzero().squeeze(1),
            targets=packed.tokens[:, 1:][is_target],
            segments=segments if source.separate else None,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        return Loss(batch.run(model).pieces, batch.targets.numel())
