"""Model configurations as plain dataclasses. Imports no PyTorch.

Every field has its bounds next to it. A config checks itself when it is made and raises one
`HeadstartError` that lists all problems, before anything is allocated.
"""

from dataclasses import MISSING, dataclass, field
from typing import Any, Literal, get_args

from headstart.config import Pooling, Settings

Attention = Literal["causal", "bidirectional"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]

POOLINGS: tuple[str, ...] = get_args(Pooling)


def number(minimum: float, maximum: float, default: Any = MISSING) -> Any:
    """Declare a numeric field with inclusive bounds; without a default it is required."""
    return field(default=default, metadata={"minimum": minimum, "maximum": maximum})


class ModelConfig(Settings):
    """Base class of the configs, which check themselves when they are made."""

    def __post_init__(self) -> None:
        self.validate()


@dataclass(frozen=True, kw_only=True)
class BaseConfig(ModelConfig):
    """The base: token embedding, positions, and a stack of blocks."""

    vocab_size: int = number(1, 1_000_000)
    width: int = number(1, 16_384)
    layers: int = number(1, 1_024)
    heads: int = number(1, 1_024)
    feed_forward_width: int = number(1, 131_072)
    attention: Attention = "causal"
    positions: Positions = "rotary"
    max_length: int = number(1, 1_048_576, 512)  # number of learned positions
    vocab_padding: int = number(0, 1_000_000, 0)  # embedding rows without a token
    norm: Literal["layer", "rms"] = "rms"
    norm_place: Literal["before", "after"] = "before"
    norm_epsilon: float = number(0, 1, 1e-5)
    feed_forward: Literal["relu", "gelu", "gelu-tanh", "swiglu", "geglu"] = "swiglu"
    biases: bool = False  # in linear layers and layer norms
    embedding_scale: bool = False  # multiply the embedding by √width
    embedding_norm: bool = False
    token_types: int = number(0, 1_024, 0)  # number of token type embeddings (BERT: 2)
    rotary_base: float = number(0, 1e12, 10_000.0)
    dropout: float = number(0, 1, 0.0)
    initialization: Literal["normal", "lab"] = "normal"
    # The config.json of a model of `transformers`, which computes this base; the values above
    # then describe it.
    transformers: str | None = None

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def gated(self) -> bool:
        return self.feed_forward in ("swiglu", "geglu")

    def problems(self) -> list[str]:
        if self.transformers is not None:
            return []
        problems = []
        if self.width % self.heads:
            divisors = [str(n) for n in range(1, 33) if self.width % n == 0]
            problems.append(
                f"width {self.width} is not divisible by {self.heads} heads; use "
                f"{' or '.join(divisors)} heads, or a width that {self.heads} divides"
            )
        elif self.positions == "rotary" and self.head_width % 2:
            problems.append(
                f"rotary positions need an even head width, not {self.width} / {self.heads} heads "
                f"= {self.head_width}"
            )
        if self.positions == "sinusoidal" and self.width % 2:
            problems.append(f"sinusoidal positions need an even width, not {self.width}")
        if self.vocab_padding >= self.vocab_size:
            problems.append(
                f"vocab_padding {self.vocab_padding} leaves no token of {self.vocab_size}"
            )
        if self.dropout == 1:
            problems.append("dropout is 1; it must be below 1")
        return problems


@dataclass(frozen=True, kw_only=True)
class OutputConfig(ModelConfig):
    """What every head may have before its output layer."""

    transform: bool = False  # dense, GELU and norm (BERT's language model, ModernBERT)
    dropout: float = number(0, 1, 0.0)
    stock: bool = False  # the layers that `transformers` has for its own base


@dataclass(frozen=True, kw_only=True)
class LanguageModelingConfig(OutputConfig):
    """Scores of every token of the vocabulary at every position."""

    tied: bool = True  # the output layer's weight is the embedding
    bias: bool = False
    kind: Literal["language_modeling"] = "language_modeling"


@dataclass(frozen=True, kw_only=True)
class MaskedNextSentenceConfig(LanguageModelingConfig):
    """BERT's pretraining head: masked tokens, and whether the second text follows the first."""

    bias: bool = True
    transform: bool = True
    kind: Literal["masked_next_sentence"] = "masked_next_sentence"  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class ClassificationConfig(OutputConfig):
    """Class scores of a text, from its pooled hidden states."""

    classes: int = number(2, 1_000_000)
    pooling: Pooling
    dense: bool = False  # a dense layer with tanh before the output (BERT's pooler)
    bias: bool = True
    kind: Literal["classification"] = "classification"

    def problems(self) -> list[str]:
        if self.transform and self.pooling == "mean+max":
            return ["transform has the width of the base, mean+max has twice that width"]
        return []


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(OutputConfig):
    """Tag scores of every token."""

    tags: int = number(2, 1_000_000)
    kind: Literal["tagging"] = "tagging"


@dataclass(frozen=True, kw_only=True)
class SpansConfig(OutputConfig):
    """Start and end scores of every token."""

    kind: Literal["spans"] = "spans"


HeadConfig = LanguageModelingConfig | ClassificationConfig | TaggingConfig | SpansConfig
