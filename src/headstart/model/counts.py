"""Parameter counts of a network, part by part, from formulas. Counting needs no PyTorch.

Symbols: v vocabulary · d width · n layers · f feed-forward width · c classes · p learned
positions · t token types · k key and value width. `check_counts` compares every line with the
parameters of the module.
"""

import re
from dataclasses import dataclass
from typing import Any

from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
)
from headstart.model.presets import Preset

BYTES_PER_WEIGHT = 4  # fp32
TUTORIAL_POSITIONS = 5_000  # rows of the position table in PyTorch's tutorial
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
class CountLine:
    """One part of the network: its formula and its number of parameters."""

    name: str
    formula: str  # in symbols
    count: int
    parameters: str  # pattern for the names of the module's parameters that this line counts
    note: str = ""

    @property
    def trainable(self) -> bool:
        return self.count > 0


@dataclass(frozen=True)
class Counts:
    """The lines of a base and of its heads for language modelling and classification."""

    config: BaseConfig
    head_configs: dict[str, HeadConfig]
    base: list[CountLine]
    heads: dict[str, list[CountLine]]
    layer: list[CountLine]  # one layer alone
    values: dict[str, int]  # of the symbols

    @property
    def base_count(self) -> int:
        return sum(line.count for line in self.base)

    def head_count(self, head: str) -> int:
        return sum(line.count for line in self.heads[head])

    def total(self, head: str) -> int:
        return self.base_count + self.head_count(head)

    def in_numbers(self, formula: str) -> str:
        """Return the formula with numbers in place of its symbols."""
        return re.sub(r"[a-z]", lambda match: f"{self.values[match[0]]:,}", formula)


def count_parameters(
    base: BaseConfig,
    language_modeling: LanguageModelingConfig,
    classification: ClassificationConfig,
) -> Counts:
    """Count a base and its heads for language modelling and for classification."""
    values = {
        "v": base.vocab_size,
        "d": base.width,
        "n": base.layers,
        "f": base.feed_forward_width,
        "c": classification.classes,
        "p": base.max_length + base.position_offset,
        "t": base.token_types,
        "k": base.key_value_width,
    }

    def line(name: str, formula: str, parameters: str, note: str = "") -> CountLine:
        return CountLine(name, formula, evaluate(formula, values), parameters, note)

    norm = "2·d" if base.norm == "layer" and base.biases else "d"
    dense = "d² + d" if base.biases else "d²"
    transform = line("transform", f"{dense} + {norm}", r"head\.transform\.", "dense, GELU, norm")

    attention = "4·d²" if base.key_value_width == base.width else "2·d² + 2·d·k"
    feed_forward = "3·d·f" if base.gated else "2·d·f"
    if base.biases:
        attention += " + 4·d" if base.key_value_width == base.width else " + 2·d + 2·k"
        feed_forward += " + 2·f + d" if base.gated else " + f + d"
    block, norms = r"base\.blocks\.\d+\.", "4·d" if norm == "2·d" else "2·d"
    layer = [
        line("attention", attention, block + r"attention\.", "queries, keys, values and output"),
        line("feed-forward", feed_forward, block + r"feed_forward\.", base.feed_forward),
        line(
            "norms",
            norms,
            block + r"\w+_norm\.",
            "a gain and a bias" if norms[0] == "4" else "a gain",
        ),
    ]

    lines = [line("embedding", "v·d", r"base\.embedding\.")]
    learned = base.positions == "learned"
    note = "learned" if learned else "computed"
    lines.append(line("positions", "p·d" if learned else "0", r"base\.positions\.", note))
    if base.token_types:
        lines.append(line("token types", "t·d", r"base\.token_types\."))
    if base.embedding_norm:
        lines.append(line("embedding norm", norm, r"base\.embedding_norm\."))
    lines += [line(one.name, f"n·({one.formula})", one.parameters, one.note) for one in layer]
    if base.norm_place == "before":
        if base.embedding_norm:  # the first block does not normalize the embedding again
            note = "the first layer's input is normed already"
            lines[-1] = line("norms", f"(2·n - 1)·{norm}", layer[-1].parameters, note)
        lines.append(line("final norm", norm, r"base\.final_norm\."))

    tied = language_modeling.tied
    weight = line("output weight", "0" if tied else "d·v", r"head\.output\.weight", "tied" * tied)
    predicting = [transform] * language_modeling.transform + [weight]
    if language_modeling.bias:
        predicting.append(line("output bias", "v", r"head\.output\.bias"))

    twice = classification.pooling == "mean+max"
    classifying = []
    if classification.dense:
        formula = "4·d² + 2·d" if twice else "d² + d"
        activation = f"with {classification.dense_activation}"
        classifying.append(line("dense", formula, r"head\.dense\.", activation))
    classifying += [transform] * classification.transform
    formula, note = "2·d·c" if twice else "d·c", f"pooling: {classification.pooling}"
    classifying.append(line("output weight", formula, r"head\.output\.weight", note))
    if classification.bias:
        classifying.append(line("output bias", "c", r"head\.output\.bias"))

    return Counts(
        config=base,
        head_configs={"language_modeling": language_modeling, "classification": classification},
        base=lines,
        heads={"language_modeling": predicting, "classification": classifying},
        layer=layer,
        values=values,
    )


def evaluate(formula: str, values: dict[str, int]) -> int:
    """Evaluate one of this module's formulas, such as `n·(4·d² + 4·d)`."""
    python = formula.replace("·", "*").replace("²", "**2")
    return int(eval(python, {"__builtins__": {}}, values))


def check_counts(counts: Counts) -> list[dict[str, Any]]:
    """Compare every line with the parameters of the module, on the meta device.

    Returns
    -------
    list of dict
        `head`, `line`, `formula` and `module` (both counts) of the lines that differ; parameters
        without a line have a formula of 0.
    """
    import torch  # only here: counting by formula does not need it

    from headstart.model.model import build_model

    differences = []
    for head, config in counts.head_configs.items():
        with torch.device("meta"):
            model = build_model(counts.config, config)
        sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
        for line in [*counts.base, *counts.heads[head]]:
            names = [name for name in sizes if re.match(line.parameters, name)]
            found = sum(sizes.pop(name) for name in names)
            if found != line.count:
                row = {"head": head, "line": line.name, "formula": line.count, "module": found}
                differences.append(row)
        differences += [
            {"head": head, "line": name, "formula": 0, "module": size}
            for name, size in sizes.items()
        ]
    return differences


@dataclass(frozen=True)
class CountingMistake:
    """A common mistake, the parameters it counts too many (too few: negative), and why."""

    name: str
    off_by: int
    why: str


def common_mistakes(counts: Counts) -> list[CountingMistake]:
    """List the common mistakes in counting this network's parameters."""
    base, d, n = counts.config, counts.config.width, counts.config.layers
    mistakes = [
        CountingMistake(
            "3·d² for attention",
            -n * (d * d + (d if base.biases else 0)),
            "Queries, keys and values take three matrices; a fourth combines the heads.",
        )
    ]
    if base.biases:
        mistakes.append(
            CountingMistake(
                "no biases",
                -n * (4 * d + base.feed_forward_width + d),
                "Every linear layer of a block adds a vector: 4·d in attention, f + d in the "
                "feed-forward. The heads' biases come on top.",
            )
        )
    with_bias = base.norm == "layer" and base.biases
    mistakes.append(
        CountingMistake(
            "no norms",
            -sum(line.count for line in counts.base if "norm" in line.name),
            f"Each norm has {2 * d if with_bias else d} parameters: a gain"
            f"{' and a bias' if with_bias else ''} for every column.",
        )
    )
    mistakes.append(
        CountingMistake(
            "the two totals swapped",
            counts.total("language_modeling") - counts.total("classification"),
            "The base is the same; only the head differs. Language modelling scores the whole "
            "vocabulary, classification a few classes.",
        )
    )
    if any(line.note == "tied" for line in counts.heads["language_modeling"]):
        mistakes.append(
            CountingMistake(
                "the tied output counted again",
                d * base.vocab_size,
                "The output layer uses the weights of the embedding; they are counted once.",
            )
        )
    if base.positions == "learned":
        mistakes.append(
            CountingMistake(
                "no positions", -base.max_length * d, "Learned positions are parameters."
            )
        )
    elif base.positions == "sinusoidal":
        mistakes.append(
            CountingMistake(
                "positions counted",
                TUTORIAL_POSITIONS * d,
                f"Sinusoidal positions are computed, not learned. A table of "
                f"{TUTORIAL_POSITIONS:,} of them is memory, but not a parameter.",
            )
        )
    return mistakes


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of weights, gradients and optimizer state, for any batch size."""

    weights: int
    gradients: int
    optimizer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer


def training_memory(parameters: int) -> TrainingMemory:
    """Return the memory to train so many parameters in fp32 with Adam, without activations."""
    size = BYTES_PER_WEIGHT * parameters
    return TrainingMemory(weights=size, gradients=size, optimizer=2 * size)  # two moments


@dataclass(frozen=True)
class Multiplications:
    """Multiplications of one token in the forward pass; the backward pass takes twice as many."""

    layers: int
    output_layer: int
    per_token_attended: int  # for each token attended to: query · key and weight · value

    @property
    def output_share(self) -> float:
        return self.output_layer / (self.layers + self.output_layer)


def multiplications(base: BaseConfig, head: LanguageModelingConfig) -> Multiplications:
    """Count the multiplications of one token in language modelling."""
    d, f = base.width, base.feed_forward_width
    layer = 2 * d * (d + base.key_value_width) + (3 if base.gated else 2) * d * f
    return Multiplications(
        layers=base.layers * layer,
        output_layer=d * base.vocab_size + (d * d if head.transform else 0),
        per_token_attended=2 * d * base.layers,
    )


def counts_document(counts: Counts, chosen: Preset) -> dict[str, Any]:
    """Return everything about the counts as plain values: what `headstart params --json` prints."""

    def part(line: CountLine, of: str) -> dict[str, Any]:
        return {
            "name": line.name,
            "of": of,
            "formula": line.formula,
            "numbers": counts.in_numbers(line.formula),
            "count": line.count,
            "trainable": line.trainable,
        }

    products = multiplications(chosen.base, chosen.language_modeling)
    memory = {head: training_memory(counts.total(head)) for head in counts.heads}
    return {
        "preset": chosen.name,
        "config": chosen.base.to_dict(),
        "base": counts.base_count,
        "heads": {head: counts.head_count(head) for head in counts.heads},
        "total": {head: counts.total(head) for head in counts.heads},
        "layer": {line.name: line.count for line in counts.layer},
        "parts": [part(line, "base") for line in counts.base]
        + [part(line, head) for head, lines in counts.heads.items() for line in lines],
        "training_memory_bytes": {
            head: {**vars(costs), "total": costs.total} for head, costs in memory.items()
        },
        "multiplications_per_token": {**vars(products), "output_share": products.output_share},
    }
