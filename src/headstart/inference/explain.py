"""Which words moved the decision? Occlusion: leave each word out and predict again.

A word's effect is how much the log-odds of the answer fall when the word is gone: positive where
it spoke for the answer, negative where against it. Unlike gradients this uses only real texts
and needs nothing but predictions. Long texts are left out in stretches of several words.
"""

from dataclasses import dataclass

import numpy as np

from headstart.inference.predict.classes import predict_probabilities
from headstart.run_folder import Run
from headstart.text.reading.rows import PAIR_MARK
from headstart.text.tokenizers.words import find_words

METHOD = "occlusion"
MOST_PARTS = 200  # one reading of the text each


@dataclass(frozen=True)
class Effect:
    """Characters `start` up to `end` of the text, and how much they spoke for the answer."""

    text: str
    start: int
    end: int
    effect: float


def explain(run: Run, text: str, label: str | None = None) -> list[Effect]:
    """The effect of every word of `text` on `label` (by default, the answer), in order."""
    parts = _stretches(_words(text))
    if not parts:
        return []
    # A text of one word is compared with a full stop: an empty text has no prediction.
    without = [(text[:start] + text[end:]).strip() or "." for start, end in parts]
    without = [one if one != PAIR_MARK else f".{PAIR_MARK}." for one in without]
    p = np.clip(predict_probabilities(run, [text, *without]), 1e-12, 1 - 1e-12)
    column = int(p[0].argmax()) if label is None else run.labels.index(label)
    log_odds = np.log(p[:, column]) - np.log1p(-p[:, column])
    return [
        Effect(text[start:end], start, end, float(log_odds[0] - log_odds[place]))
        for place, (start, end) in enumerate(parts, start=1)
    ]


def _words(text: str) -> list[tuple[int, int]]:
    """Where the words stand; none reaches over the mark between the two texts of a pair."""
    found, start = list[tuple[int, int]](), 0
    for half in text.split(PAIR_MARK):
        found += [(start + begin, start + end) for begin, end in find_words(half)]
        start += len(half) + len(PAIR_MARK)
    return found


def _stretches(words: list[tuple[int, int]]) -> list[tuple[int, int]]:
    size = -(-len(words) // MOST_PARTS)
    return [
        (words[i][0], words[min(i + size, len(words)) - 1][1])
        for i in range(0, len(words), size or 1)
    ]
