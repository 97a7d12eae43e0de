"""What a network costs: memory to train it, multiplications for each token."""

from dataclasses import dataclass

from headstart.model.config import BaseConfig, LanguageModelingConfig

BYTES = 4  # fp32


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes that training holds whatever the batch: Adam keeps two moments a weight."""

    weights: int
    gradients: int
    optimizer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer


def training_memory(parameters: int) -> TrainingMemory:
    return TrainingMemory(BYTES * parameters, BYTES * parameters, 2 * BYTES * parameters)


@dataclass(frozen=True)
class Multiplications:
    """For one token, forwards. Backwards costs twice as many again."""

    layers: int
    output_layer: int
    per_token_looked_at: int  # grows with the length: query · key and weight · value

    @property
    def output_share(self) -> float:
        return self.output_layer / (self.layers + self.output_layer)


def multiplications(base: BaseConfig, head: LanguageModelingConfig) -> Multiplications:
    """The matrix products of one token under language modelling; an embedding is a look-up."""
    d, f = base.width, base.feed_forward_width
    layer = 4 * d * d + (3 if base.gated else 2) * d * f
    transform = d * d if head.transform else 0
    return Multiplications(
        layers=base.layers * layer,
        output_layer=d * base.vocab_size + transform,
        per_token_looked_at=2 * d * base.layers,
    )
