"""What parameter accounts are used for: a document, a check against the module, common mistakes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headstart.model.accounts import (
    Accounts,
    Line,
    layer_lines,
    multiplications,
    norm_count,
    training_memory,
)
from headstart.model.config import HeadConfig
from headstart.model.presets import Preset

USUAL_TABLE = 5_000  # positions in the table of PyTorch's tutorial


def account_document(accounts: Accounts, chosen: Preset) -> dict[str, Any]:
    """The accounts as one plain document: what `headstart params --json` prints."""

    def part(line: Line, of: str) -> dict[str, Any]:
        return {
            "name": line.name,
            "of": of,
            "formula": line.formula,
            "numbers": accounts.in_numbers(line.formula),
            "count": line.count,
            "trainable": line.trainable,
        }

    products = multiplications(chosen.base, chosen.language_modeling)
    memory = {head: training_memory(accounts.total(head)) for head in accounts.heads}
    return {
        "preset": chosen.name,
        "config": chosen.base.to_dict(),
        "base": accounts.base_count,
        "heads": {head: accounts.head_count(head) for head in accounts.heads},
        "total": {head: accounts.total(head) for head in accounts.heads},
        "layer": {line.name: line.count for line in layer_lines(chosen.base)},
        "parts": [part(line, "base") for line in accounts.base]
        + [part(line, head) for head in accounts.heads for line in accounts.heads[head]],
        "training_memory_bytes": {
            head: {**vars(costs), "total": costs.total} for head, costs in memory.items()
        },
        "multiplications_per_token": {**vars(products), "output_share": products.output_share},
    }


@dataclass(frozen=True)
class Difference:
    """A line whose formula and module disagree; a parameter without a line has a formula of 0."""

    head: str
    line: str
    formula: int
    module: int


def check_accounts(accounts: Accounts, heads: dict[str, HeadConfig]) -> list[Difference]:
    """Compare every line with the real module, on the meta device: empty if all agree."""
    import torch  # imported here, so that counting by formula does not wait for it

    from headstart.model.model import build_model

    differences = []
    for name, config in heads.items():
        with torch.device("meta"):
            model = build_model(accounts.base_config, config)
        counts = {key: value.numel() for key, value in model.named_parameters()}
        for line in [*accounts.base, *accounts.heads[name]]:
            owned = [key for key in counts if re.match(line.owns, key)]
            found = sum(counts.pop(key) for key in owned)
            if found != line.count:
                differences.append(Difference(name, line.name, line.count, found))
        differences += [Difference(name, key, 0, count) for key, count in counts.items()]
    return differences


@dataclass(frozen=True)
class CountingMistake:
    """A common mistake, the parameters that it counts too many (or too few: negative), and why."""

    name: str
    off_by: int
    why: str


def common_mistakes(accounts: Accounts) -> Iterator[CountingMistake]:
    """The common mistakes in counting this network's parameters."""
    base = accounts.base_config
    d, n = base.width, base.layers
    output_projection = d * d + (d if base.biases else 0)
    yield CountingMistake(
        "3·d² for attention",
        -n * output_projection,
        "Queries, keys and values take three matrices; a fourth mixes the heads on the way back.",
    )
    if base.biases:
        yield CountingMistake(
            "no biases",
            -n * (4 * d + base.feed_forward_width + d),
            "Every linear layer of a block adds a vector: 4·d in attention, f + d in the "
            "feed-forward. The heads' biases come on top.",
        )
    norms = sum(line.count for line in accounts.base if "norm" in line.name)
    yield CountingMistake(
        "no norms",
        -norms,
        f"Each norm has {norm_count(base)} numbers: a gain"
        + (" and a bias" if norm_count(base) > d else "")
        + " for every column.",
    )
    difference = accounts.total("language_modeling") - accounts.total("classification")
    yield CountingMistake(
        "the two totals swapped",
        difference,
        "The base is the same; only the head differs. Language modelling answers with the whole "
        "vocabulary, classification with a few classes.",
    )
    if any(line.note.startswith("tied") for line in accounts.heads["language_modeling"]):
        yield CountingMistake(
            "the tied output counted again",
            d * base.vocab_size,
            "The output layer uses the embedding's own numbers; they are counted once.",
        )
    if base.positions == "learned":
        yield CountingMistake(
            "no positions",
            -base.max_length * d,
            "These positions are learned, so they are parameters like any other.",
        )
    elif base.positions == "sinusoidal":
        yield CountingMistake(
            "positions counted",
            USUAL_TABLE * d,
            f"Sinusoidal positions are computed, not learned. A table of {USUAL_TABLE:,} of them "
            "is memory, but not one parameter.",
        )
