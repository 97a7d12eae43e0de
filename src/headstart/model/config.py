"""What a network is made of, as plain values. Needs no PyTorch, so that asking is cheap."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from headstart.errors import HeadstartError
from headstart.settings import Checked, from_dict

Attention = Literal["causal", "bidirectional"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
Norm = Literal["layer", "rms"]
NormPlace = Literal["before", "after"]
FeedForwardKind = Literal["relu", "gelu", "gelu-tanh", "swiglu", "geglu", "reglu"]
Pooling = Literal["last", "mean", "first", "max", "mean+max"]

POOLINGS: tuple[str, ...] = get_args(Pooling)
GATED: frozenset[str] = frozenset({"swiglu", "geglu", "reglu"})


@dataclass(frozen=True, kw_only=True)
class BaseConfig(Checked):
    """The base: token embedding, positions, and a stack of blocks."""

    vocab_size: int
    width: int
    layers: int
    heads: int
    feed_forward_width: int
    key_value_heads: int = 0  # shared by groups of heads (Llama); 0: each has its own
    attention: Attention = "causal"
    positions: Positions = "rotary"
    max_length: int = 512  # learned positions end here; the computed ones have no end
    position_offset: int = 0  # rows of learned positions before the first (RoBERTa: 2)
    spare_pieces: int = 0  # rows of the embedding that the tokenizer has no piece for
    norm: Norm = "rms"
    norm_place: NormPlace = "before"
    norm_epsilon: float = 1e-5
    feed_forward: FeedForwardKind = "swiglu"
    biases: bool = False  # of the linear layers and of layer norms
    embedding_scale: bool = False  # multiply the embedding by √width
    embedding_norm: bool = False
    token_types: int = 0  # kinds of segments with an embedding of their own (BERT: 2)
    rotary_base: float = 10_000.0
    local_window: int = 0  # tokens to each side that local layers see (ModernBERT); 0: all of them
    global_every: int = 1  # with a local window, every so many layers one sees the whole text
    local_rotary_base: float = 10_000.0  # of the local layers
    dropout: float = 0.0
    initialization: Literal["normal", "lab"] = "normal"  # how fresh weights are drawn

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def key_value_width(self) -> int:
        return (self.key_value_heads or self.heads) * self.head_width

    def is_local(self, layer: int) -> bool:
        """Whether a layer sees only the tokens around each."""
        return bool(self.local_window) and layer % self.global_every != 0

    @property
    def gated(self) -> bool:
        return self.feed_forward in GATED

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _smallest(self, name: str) -> int:
        may_be_zero = {"token_types", "key_value_heads", "position_offset", "spare_pieces"}
        return 0 if name in may_be_zero | {"local_window"} else 1

    def _cross_problems(self) -> list[str]:
        problems = []
        if self.width % self.heads:
            problems.append(f"width {self.width} cannot be shared evenly by {self.heads} heads")
        elif self.positions == "rotary" and self.head_width % 2:
            problems.append(
                f"rotary positions turn pairs of numbers, but width {self.width} / "
                f"{self.heads} heads = {self.head_width} is odd"
            )
        if self.key_value_heads and self.heads % self.key_value_heads:
            problems.append(
                f"{self.heads} heads cannot share {self.key_value_heads} keys and values evenly"
            )
        if self.local_window and (self.attention, self.positions) != ("bidirectional", "rotary"):
            problems.append("a local window needs bidirectional attention and rotary positions")
        if self.positions == "sinusoidal" and self.width % 2:
            problems.append(f"sinusoidal positions need an even width, not {self.width}")
        if self.dropout >= 1:
            problems.append(f"dropout is {self.dropout}; it must be below 1")
        return problems

    def _fix(self) -> str | None:
        if self.width % self.heads == 0:
            return None
        fitting = [str(n) for n in range(1, 33) if self.width % n == 0]
        return f"take {' or '.join(fitting)} heads, or a width that {self.heads} divides"


@dataclass(frozen=True, kw_only=True)
class LanguageModelingConfig(Checked):
    """Scores every piece of the vocabulary at every position."""

    tied: bool = True  # the output layer is the embedding itself
    bias: bool = False
    transform: bool = False  # a dense layer, GELU and a norm before the output layer (BERT)
    kind: Literal["language_modeling"] = "language_modeling"


@dataclass(frozen=True, kw_only=True)
class NextSentenceConfig(Checked):
    """Does the second text follow the first? Read off the first token."""

    kind: Literal["next_sentence"] = "next_sentence"


@dataclass(frozen=True, kw_only=True)
class MaskedNextSentenceConfig(Checked):
    """BERT's two questions at once: the hidden pieces, and whether B follows A."""

    tied: bool = True
    bias: bool = True
    transform: bool = True
    kind: Literal["masked_next_sentence"] = "masked_next_sentence"

    @property
    def language_modeling(self) -> LanguageModelingConfig:
        return LanguageModelingConfig(tied=self.tied, bias=self.bias, transform=self.transform)


@dataclass(frozen=True, kw_only=True)
class ClassificationConfig(Checked):
    """One answer per text, from its pooled hidden states."""

    classes: int
    pooling: Pooling = "mean+max"
    dense: bool = False  # a dense layer and an activation before the answer (BERT's pooler)
    dense_activation: Literal["tanh", "relu"] = "tanh"  # DistilBERT's is a ReLU
    transform: bool = False  # a dense layer, GELU and a norm before it (ModernBERT)
    bias: bool = True
    dropout: float = 0.0
    kind: Literal["classification"] = "classification"

    def _smallest(self, name: str) -> int:
        return 2

    def _cross_problems(self) -> list[str]:
        if self.transform and self.pooling == "mean+max":
            return ["transform is as wide as the base, and mean+max twice as wide"]
        return []


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(Checked):
    """One answer per token."""

    tags: int
    transform: bool = False  # a dense layer, GELU and a norm before the answer (ModernBERT)
    dropout: float = 0.0
    kind: Literal["tagging"] = "tagging"

    def _smallest(self, name: str) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class SpansConfig(Checked):
    """Where an answer starts and where it ends."""

    transform: bool = False  # a dense layer, GELU and a norm before the answer (ModernBERT)
    kind: Literal["spans"] = "spans"


HeadConfig = (
    LanguageModelingConfig
    | NextSentenceConfig
    | MaskedNextSentenceConfig
    | ClassificationConfig
    | TaggingConfig
    | SpansConfig
)
HEAD_CONFIGS: dict[str, type[HeadConfig]] = {
    "language_modeling": LanguageModelingConfig,
    "next_sentence": NextSentenceConfig,
    "masked_next_sentence": MaskedNextSentenceConfig,
    "classification": ClassificationConfig,
    "tagging": TaggingConfig,
    "spans": SpansConfig,
}


def head_from_dict(values: dict[str, Any], *, where: object = None) -> HeadConfig:
    """Make a head's settings from a file's values; `kind` says which head."""
    kind = values.get("kind")
    if isinstance(kind, str) and kind not in HEAD_CONFIGS:
        from importlib.metadata import entry_points  # slow to import, and rarely needed

        for point in entry_points(group="headstart.heads", name=kind):
            point.load()  # which registers it
    if not isinstance(kind, str) or kind not in HEAD_CONFIGS:
        raise HeadstartError(
            f"unknown head {kind!r}; the heads are {', '.join(HEAD_CONFIGS)}", where=where
        )
    return from_dict(HEAD_CONFIGS[kind], values, where=where)


def register_head_config(config_class: type[Any]) -> None:
    """Let files name a head's settings by `kind`; see `heads.register_head`."""
    kind = next((f.default for f in fields(config_class) if f.name == "kind"), None)
    if not isinstance(kind, str) or not issubclass(config_class, Checked):
        raise HeadstartError(
            f"{config_class.__name__} does not describe a head",
            fix="make it a dataclass and a subclass of Checked whose field `kind` has a default",
        )
    known: dict[str, Any] = HEAD_CONFIGS
    if known.setdefault(kind, config_class) is not config_class:
        raise HeadstartError(f"there is already a head of the kind '{kind}'")
