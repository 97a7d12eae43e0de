"""Parameter accounts: what each part of a network holds and costs, by formula. Needs no PyTorch.

Symbols: v vocabulary · d width · n layers · f feed-forward width · c classes · p learned
positions · t token types · k key and value width. `account_report.check_accounts` compares every
line with the module.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from headstart.model.config import BaseConfig, ClassificationConfig, LanguageModelingConfig

BYTES_PER_WEIGHT = 4  # fp32
SYMBOLS = {
    "v": "vocabulary",
    "d": "width",
    "n": "layers",
    "f": "feed-forward width",
    "c": "classes",
    "p": "learned positions",
    "t": "token types",
    "k": "key and value width",
}


@dataclass(frozen=True)
class Line:
    """One part: its formula and, worked out, its count."""

    name: str
    formula: str  # in symbols
    count: int
    owns: str  # a pattern for the names of the module's parameters that this line counts
    note: str = ""  # for a line of 0, why it is

    @property
    def trainable(self) -> bool:
        return self.count > 0


@dataclass(frozen=True)
class Accounts:
    """The lines of a base and of the two heads of the lab."""

    base_config: BaseConfig
    classification_config: ClassificationConfig
    base: list[Line]
    heads: dict[str, list[Line]] = field(default_factory=dict)

    @property
    def base_count(self) -> int:
        return _sum(self.base)

    def head_count(self, head: str) -> int:
        return _sum(self.heads[head])

    def total(self, head: str) -> int:
        return self.base_count + self.head_count(head)

    def in_numbers(self, formula: str) -> str:
        """The formula with this network's numbers in the place of its symbols."""
        values = symbol_values(self.base_config, self.classification_config.classes)
        return re.sub(r"[a-z]", lambda match: f"{values[match[0]]:,}", formula)


def account(
    base: BaseConfig,
    language_modeling: LanguageModelingConfig,
    classification: ClassificationConfig,
) -> Accounts:
    """Count a base and its heads for language modelling and for classification."""
    return Accounts(
        base_config=base,
        classification_config=classification,
        base=list(_base_lines(base)),
        heads={
            "language_modeling": list(_language_modeling_lines(base, language_modeling)),
            "classification": list(_classification_lines(base, classification)),
        },
    )


def symbol_values(base: BaseConfig, classes: int) -> dict[str, int]:
    """The values of the formulas' symbols (`SYMBOLS`) for a network."""
    return {
        "v": base.vocab_size,
        "d": base.width,
        "n": base.layers,
        "f": base.feed_forward_width,
        "c": classes,
        "p": base.max_length + base.position_offset,
        "t": base.token_types,
        "k": base.key_value_width,
    }


def layer_lines(base: BaseConfig) -> list[Line]:
    """One layer, taken by itself."""
    d, f, k = base.width, base.feed_forward_width, base.key_value_width
    attention, feed_forward = "4·d²", "3·d·f" if base.gated else "2·d·f"
    attention = attention if k == d else "2·d² + 2·d·k"
    matrices = (3 if base.gated else 2) * d * f
    biases_up = 2 * f if base.gated else f
    if base.biases:
        attention += " + 4·d" if k == d else " + 2·d + 2·k"
        feed_forward += " + 2·f + d" if base.gated else " + f + d"
    return [
        Line(
            "attention",
            attention,
            2 * (d + k) * d + (2 * (d + k) if base.biases else 0),
            r"base\.blocks\.\d+\.attention\.",
            "queries, keys, values and the way back",
        ),
        Line(
            "feed-forward",
            feed_forward,
            matrices + (biases_up + d if base.biases else 0),
            r"base\.blocks\.\d+\.feed_forward\.",
            base.feed_forward,
        ),
        Line(
            "norms",
            "4·d" if _norm_has_bias(base) else "2·d",
            2 * norm_count(base),
            r"base\.blocks\.\d+\.\w+_norm\.",
            "a gain and a bias each" if _norm_has_bias(base) else "a gain each",
        ),
    ]


def norm_count(base: BaseConfig) -> int:
    """The parameters of one norm."""
    return base.width * (2 if _norm_has_bias(base) else 1)


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes that training needs for any batch size: Adam keeps two moments per weight."""

    weights: int
    gradients: int
    optimizer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer


def training_memory(parameters: int) -> TrainingMemory:
    """The memory of weights, gradients and optimizer for so many parameters."""
    size = BYTES_PER_WEIGHT * parameters
    return TrainingMemory(weights=size, gradients=size, optimizer=2 * size)


@dataclass(frozen=True)
class Multiplications:
    """Of one token in the forward pass. The backward pass takes twice as many."""

    layers: int
    output_layer: int
    per_token_attended: int  # for each token attended to: query · key and weight · value

    @property
    def output_share(self) -> float:
        return self.output_layer / (self.layers + self.output_layer)


def multiplications(base: BaseConfig, head: LanguageModelingConfig) -> Multiplications:
    """The matrix products of one token in language modelling; an embedding is a lookup."""
    d, f = base.width, base.feed_forward_width
    layer = 2 * d * (d + base.key_value_width) + (3 if base.gated else 2) * d * f
    transform = d * d if head.transform else 0
    return Multiplications(
        layers=base.layers * layer,
        output_layer=d * base.vocab_size + transform,
        per_token_attended=2 * d * base.layers,
    )


def _base_lines(base: BaseConfig) -> Iterator[Line]:
    v, d, n = base.vocab_size, base.width, base.layers
    norm = "2·d" if _norm_has_bias(base) else "d"
    yield Line("embedding", "v·d", v * d, r"base\.embedding\.")
    if base.positions == "learned":
        count = (base.max_length + base.position_offset) * d
        yield Line("positions", "p·d", count, r"base\.positions\.", "learned")
    else:
        yield Line("positions", "0", 0, r"base\.positions\.", "computed")
    if base.token_types:
        yield Line("token types", "t·d", base.token_types * d, r"base\.token_types\.")
    if base.embedding_norm:
        yield Line("embedding norm", norm, norm_count(base), r"base\.embedding_norm\.")
    for line in layer_lines(base):
        if line.name == "norms" and base.embedding_norm and base.norm_place == "before":
            # The first block does not norm the normed embedding again.
            yield Line(
                "norms",
                f"(2·n - 1)·{norm}",
                (2 * n - 1) * norm_count(base),
                line.owns,
                "the first layer's input is normed already",
            )
            continue
        yield Line(line.name, f"n·({line.formula})", n * line.count, line.owns, line.note)
    if base.norm_place == "before":
        yield Line("final norm", norm, norm_count(base), r"base\.final_norm\.")


def _language_modeling_lines(base: BaseConfig, head: LanguageModelingConfig) -> Iterator[Line]:
    v, d = base.vocab_size, base.width
    if head.transform:
        norm = "2·d" if _norm_has_bias(base) else "d"
        formula = f"d² + d + {norm}" if base.biases else f"d² + {norm}"
        count = d * d + (d if base.biases else 0) + norm_count(base)
        yield Line("transform", formula, count, r"head\.transform\.", "dense, GELU, norm")
    if head.tied:
        yield Line("output weight", "0", 0, r"head\.output\.weight", "tied")
    else:
        yield Line("output weight", "d·v", d * v, r"head\.output\.weight")
    if head.bias:
        yield Line("output bias", "v", v, r"head\.output\.bias")


def _classification_lines(base: BaseConfig, head: ClassificationConfig) -> Iterator[Line]:
    twice = head.pooling == "mean+max"
    width = base.width * (2 if twice else 1)
    if head.dense:
        formula = "4·d² + 2·d" if twice else "d² + d"
        yield Line(
            "dense",
            formula,
            width * width + width,
            r"head\.dense\.",
            f"with {head.dense_activation}",
        )
    if head.transform:
        norm = "2·d" if _norm_has_bias(base) else "d"
        formula = f"d² + d + {norm}" if base.biases else f"d² + {norm}"
        count = base.width**2 + (base.width if base.biases else 0) + norm_count(base)
        yield Line("transform", formula, count, r"head\.transform\.", "dense, GELU, norm")
    formula = "2·d·c" if twice else "d·c"
    note = f"pooling: {head.pooling}"
    yield Line("output weight", formula, width * head.classes, r"head\.output\.weight", note)
    if head.bias:
        yield Line("output bias", "c", head.classes, r"head\.output\.bias")


def _norm_has_bias(base: BaseConfig) -> bool:
    return base.norm == "layer" and base.biases


def _sum(lines: list[Line]) -> int:
    return sum(line.count for line in lines)
