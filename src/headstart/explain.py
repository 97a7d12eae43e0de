"""Explain a predicted class by the effect of each word on its log-odds.

Each word is removed and the text predicted again ("occlusion"), which unlike gradients uses only
real texts and works with every model. In long texts several adjacent words are removed at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.data.words import find_words

METHOD = "occlusion"  # its name in JSON documents
MAX_PARTS = 200  # each is one more prediction
FULL_STOP = "."  # replaces the only word of a text: an empty text has no prediction

Input = Any  # a text, or a tuple of two texts


@dataclass(frozen=True)
class Effect:
    """Characters `start` up to `end` of a text, and their effect on the log-odds of the label.

    `part` is 1 for words of the second text of a pair, otherwise 0.
    """

    text: str
    start: int
    end: int
    effect: float
    part: int = 0


@dataclass(frozen=True)
class Occlusion:
    """A text or pair, the places of its words, and the inputs without each of them."""

    texts: tuple[str, ...]
    places: list[tuple[int, int, int]]  # which text, start, end
    without: list[Input]

    def effects(self, probabilities: Sequence[float]) -> list[Effect]:
        """Compute effects from a label's probability for the text and for each of `without`."""
        p = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-12, 1 - 1e-12)
        log_odds = np.log(p) - np.log1p(-p)
        return [
            Effect(self.texts[part][start:end], start, end, float(log_odds[0] - one), part)
            for (part, start, end), one in zip(self.places, log_odds[1:], strict=True)
        ]


def occlude(given: Input) -> Occlusion:
    """Remove each word of a text or pair in turn; of a long one, groups of adjacent words."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    words = [list(find_words(text)) for text in texts]
    size = -(-sum(map(len, words)) // MAX_PARTS) or 1
    found = Occlusion(texts, [], [])
    for part, text in enumerate(texts):
        for first in range(0, len(words[part]), size):
            group = words[part][first : first + size]
            start, end = group[0][0], group[-1][1]
            rest = (text[:start] + text[end:]).strip() or FULL_STOP
            changed = (*texts[:part], rest, *texts[part + 1 :])
            found.places.append((part, start, end))
            found.without.append(rest if isinstance(given, str) else changed)
    return found
