"""The usual slips in counting a Transformer's parameters, and by how much each misses."""

from collections.abc import Iterator
from dataclasses import dataclass

from headstart.model.accounts import Accounts, norm_count

USUAL_TABLE = 5_000  # positions in the table of PyTorch's tutorial


@dataclass(frozen=True)
class Slip:
    """A mistake, its size (missing: below zero), and why it is one."""

    name: str
    misses_by: int
    why: str


def slips(accounts: Accounts) -> Iterator[Slip]:
    base = accounts.base_config
    d, n = base.width, base.layers
    output_projection = d * d + (d if base.biases else 0)
    yield Slip(
        "3·d² for attention",
        -n * output_projection,
        "Queries, keys and values take three matrices; a fourth mixes the heads on the way back.",
    )
    if base.biases:
        yield Slip(
            "no biases",
            -n * (4 * d + base.feed_forward_width + d),
            "Every linear layer of a block adds a vector: 4·d in attention, f + d in the "
            "feed-forward. The heads' biases come on top.",
        )
    norms = sum(line.count for line in accounts.base if "norm" in line.name)
    yield Slip(
        "no norms",
        -norms,
        f"Each norm has {norm_count(base)} numbers: a gain"
        + (" and a bias" if norm_count(base) > d else "")
        + " for every column.",
    )
    difference = accounts.total("language_modeling") - accounts.total("classification")
    yield Slip(
        "the two totals swapped",
        difference,
        "The base is the same; only the head differs. Language modelling answers with the whole "
        "vocabulary, classification with a few classes.",
    )
    if any(line.note.startswith("tied") for line in accounts.heads["language_modeling"]):
        yield Slip(
            "the tied output counted again",
            d * base.vocab_size,
            "The output layer uses the embedding's own numbers; they are counted once.",
        )
    if base.positions == "learned":
        yield Slip(
            "no positions",
            -base.max_length * d,
            "These positions are learned, so they are parameters like any other.",
        )
    elif base.positions == "sinusoidal":
        yield Slip(
            "positions counted",
            USUAL_TABLE * d,
            f"Sinusoidal positions are computed, not learned. A table of {USUAL_TABLE:,} of them "
            "is memory, but not one parameter.",
        )
