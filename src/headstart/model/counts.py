"""Parameter counts of a network, part by part, from formulas. Counting needs no PyTorch."""

import re
from dataclasses import dataclass
from typing import Any

from headstart.model.presets import Preset

TUTORIAL_POSITIONS = 5_000  # rows of the position table in PyTorch's tutorial
SYMBOLS = {
    "v": "vocabulary",
    "d": "width",
    "n": "layers",
    "f": "feed-forward width",
    "c": "classes",
    "p": "learned positions",
    "t": "token types",
}


@dataclass(frozen=True)
class CountLine:
    """One part of the network: its formula and its number of parameters."""

    name: str
    formula: str  # in symbols
    count: int
    note: str


@dataclass(frozen=True)
class Counts:
    """The lines of a base and of its heads for language modelling and classification."""

    preset: Preset
    values: dict[str, int]  # of the symbols
    layer: dict[str, int]  # one layer alone
    base: list[CountLine]
    heads: dict[str, list[CountLine]]

    @property
    def base_count(self) -> int:
        return sum(line.count for line in self.base)

    def total(self, head: str) -> int:
        """Return the parameters of the base with one of its heads."""
        return self.base_count + sum(line.count for line in self.heads[head])

    def in_numbers(self, formula: str) -> str:
        """Return the formula with numbers in place of its symbols."""
        return re.sub(r"[a-z]", lambda match: f"{self.values[match[0]]:,}", formula)

    def document(self) -> dict[str, Any]:
        """Return everything as plain values: what `headstart params --json` prints."""
        totals = {head: self.total(head) for head in self.heads}
        parts = [
            {
                "name": line.name,
                "of": of,
                "formula": line.formula,
                "numbers": self.in_numbers(line.formula),
                "count": line.count,
                "trainable": line.count > 0,
                "note": line.note,
            }
            for of, lines in {"base": self.base, **self.heads}.items()
            for line in lines
        ]
        return {
            "preset": self.preset.name,
            "config": vars(self.preset.base),
            "base": self.base_count,
            "heads": {head: total - self.base_count for head, total in totals.items()},
            "total": totals,
            "layer": self.layer,
            "parts": parts,
        }


def count_parameters(preset: Preset, classes: int = 2) -> Counts:
    """Count a preset's base and its heads for language modelling and for classification."""
    base, language_modeling = preset.base, preset.language_modeling
    classification = preset.classification(classes)
    values = {
        "v": base.vocab_size,
        "d": base.width,
        "n": base.layers,
        "f": base.feed_forward_width,
        "c": classes,
        "p": base.max_length,
        "t": base.token_types,
    }

    def count(formula: str) -> int:
        return int(
            eval(formula.replace("·", "*").replace("²", "**2"), {"__builtins__": {}}, values)
        )

    def lines(*rows: tuple[str, str, str]) -> list[CountLine]:
        """Make a line of each name, formula and note; no formula means no such part."""
        return [CountLine(name, what, count(what), note) for name, what, note in rows if what]

    attention = "4·d²"
    feed_forward = "3·d·f" if base.gated else "2·d·f"
    dense, norm, norms, norm_note = "d²", "d", "2·d", "a gain"
    if base.biases:
        attention += " + 4·d"
        feed_forward += " + 2·f + d" if base.gated else " + f + d"
        dense = "d² + d"
    if base.biases and base.norm == "layer":
        norm, norms, norm_note = "2·d", "4·d", "a gain and a bias"
    norm_before, all_norms = base.norm_place == "before", f"n·({norms})"
    if norm_before and base.embedding_norm:  # the first block does not normalize it again
        all_norms = f"(2·n - 1)·{norm}"
    learned, tied = base.positions == "learned", language_modeling.tied
    twice = classification.pooling == "mean+max"

    layer = {"attention": attention, "feed-forward": feed_forward, "norms": norms}
    base_lines = lines(
        ("embedding", "v·d", ""),
        ("positions", "p·d" if learned else "0", "learned" if learned else "computed"),
        ("token types", "t·d" if base.token_types else "", ""),
        ("embedding norm", norm if base.embedding_norm else "", ""),
        ("attention", f"n·({attention})", "queries, keys, values and output"),
        ("feed-forward", f"n·({feed_forward})", base.feed_forward),
        ("norms", all_norms, norm_note),
        ("final norm", norm if norm_before else "", ""),
    )
    transform = f"{dense} + {norm}" if language_modeling.transform else ""
    predicting = lines(
        ("transform", transform, "dense, GELU, norm"),
        ("output weight", "0" if tied else "d·v", "tied" if tied else ""),
        ("output bias", "v" if language_modeling.bias else "", ""),
    )
    dense = "4·d² + 2·d" if twice else "d² + d"
    classifying = lines(
        ("dense", dense if classification.dense else "", "with tanh"),
        ("output weight", "2·d·c" if twice else "d·c", preset.pooling),
        ("output bias", "c", ""),
    )
    heads = {"language_modeling": predicting, "classification": classifying}
    of_a_layer = {name: count(formula) for name, formula in layer.items()}
    return Counts(preset, values, of_a_layer, base_lines, heads)


def common_mistakes(counts: Counts) -> list[dict[str, Any]]:
    """List common mistakes: `name`, `off_by` (parameters too many; too few: negative) and `why`."""
    base, d, n = counts.preset.base, counts.preset.base.width, counts.preset.base.layers
    norms = sum(line.count for line in counts.base if "norm" in line.name)
    mistakes = [
        (
            "3·d² for attention",
            -n * (d * d + d * base.biases),
            "Queries, keys and values take three matrices; a fourth combines the heads.",
        ),
        (
            "no biases",
            -n * (4 * d + base.feed_forward_width + d) * base.biases,
            "Every linear layer of a block adds a vector: 4·d in attention, f + d in the "
            "feed-forward. The heads' biases come on top.",
        ),
        ("no norms", -norms, "Each norm has a gain, and often a bias, for every column."),
        (
            "the two totals swapped",
            counts.total("language_modeling") - counts.total("classification"),
            "The base is the same; only the head differs. Language modelling scores the whole "
            "vocabulary, classification a few classes.",
        ),
        (
            "the tied output counted again",
            d * base.vocab_size * counts.preset.language_modeling.tied,
            "The output layer uses the weights of the embedding; they are counted once.",
        ),
        (
            "no positions",
            -base.max_length * d * (base.positions == "learned"),
            "Learned positions are parameters.",
        ),
        (
            "positions included",
            TUTORIAL_POSITIONS * d * (base.positions == "sinusoidal"),
            f"Sinusoidal positions are computed, not learned. A table of {TUTORIAL_POSITIONS:,} of "
            "them is memory, but not a parameter.",
        ),
    ]
    return [
        {"name": name, "off_by": off_by, "why": why} for name, off_by, why in mistakes if off_by
    ]
