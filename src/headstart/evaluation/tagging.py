"""Entity F1: a tagged entity counts only if its kind, start and end are all right.

Tags are IOB2: `B-PER` begins an entity of kind PER, `I-PER` continues it, `O` is none. What
a network predicts need not be well-formed; as in `seqeval`'s default mode (and CoNLL's own
script) an `I-` that continues nothing begins an entity.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import ClassRow


class Entity(NamedTuple):
    """Tokens `start` up to but without `end`."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class EntityMetrics:
    """Micro averages over all entities, and a row for each kind, by name."""

    precision: float
    recall: float
    f1: float
    macro_f1: float
    kinds: list[ClassRow]


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence, in order."""
    found: list[Entity] = []
    kind, start = "", 0
    for place, tag in enumerate([*tags, "O"]):
        prefix, now = _parts(tag)
        if kind and (prefix != "I" or now != kind):
            found.append(Entity(kind, start, place))
            kind = ""
        if now and not kind:
            kind, start = now, place
    return found


@dataclass(frozen=True)
class EntityCounts:
    """Entities of each sentence and kind: (sentences, kinds)."""

    kinds: list[str]
    right: NDArray[np.int64]
    predicted: NDArray[np.int64]
    true: NDArray[np.int64]


def count_entities(
    true: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> EntityCounts:
    """Compare the tags of sentences with those predicted, sentence by sentence."""
    found: list[tuple[int, int, str]] = []  # sentence, which count, kind
    sentences = 0
    for number, (tags, guesses) in enumerate(zip(true, predicted, strict=True)):
        if len(tags) != len(guesses):
            raise ValueError(f"sentence {number}: {len(tags)} tags, {len(guesses)} predicted")
        wanted, given = set(entities(tags)), set(entities(guesses))
        for place, group in enumerate((wanted & given, given, wanted)):
            found += [(number, place, entity.kind) for entity in group]
        sentences = number + 1
    kinds = sorted({kind for _, _, kind in found})
    columns = {kind: column for column, kind in enumerate(kinds)}
    counts = np.zeros((3, sentences, len(kinds)), dtype=np.int64)
    for number, place, kind in found:
        counts[place, number, columns[kind]] += 1
    return EntityCounts(kinds, *counts)


def entity_metrics(
    true: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> EntityMetrics:
    """Precision, recall and F1 of whole entities, over all sentences."""
    counts = count_entities(true, predicted)
    sums = [one.sum(0).tolist() for one in (counts.right, counts.predicted, counts.true)]
    rows = [
        ClassRow(kind, *_scores(*numbers), support=numbers[2])
        for kind, *numbers in zip(counts.kinds, *sums, strict=True)
    ]
    precision, recall, f1 = _scores(*map(sum, sums))
    macro_f1 = sum(row.f1 for row in rows) / len(rows) if rows else 0.0
    return EntityMetrics(precision, recall, f1, macro_f1, rows)


def _parts(tag: str) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    prefix, dash, kind = tag.partition("-")
    if prefix not in ("B", "I") or not dash or not kind:
        raise HeadstartError(
            f"the tag {tag!r} is not IOB2", fix="use O, B-KIND and I-KIND, such as B-PER, I-PER"
        )
    return prefix, kind


def _scores(right: int, predicted: int, true: int) -> tuple[float, float, float]:
    precision = right / predicted if predicted else 0.0
    recall = right / true if true else 0.0
    f1 = 2 * right / (predicted + true) if right else 0.0
    return precision, recall, f1
