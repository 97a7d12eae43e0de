"""Which words moved the decision? What each adds to a sum, or what changes where it is left out.

A word's effect is its part of the answer's log-odds: positive where it spoke for the answer,
negative where against it. A linear classifier's log-odds are a sum, and each word's part of it is
exact. A network's (or a stack's) are not: there each word is left out and the text predicted again
(occlusion), which unlike gradients uses only real texts. Long texts are left out in stretches of
several words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.inference.predict.classes import predict_probabilities
from headstart.tasks.opened_run import OpenedRun
from headstart.text.reading.rows import PAIR_MARK
from headstart.text.tokenizers.words import find_words

OCCLUSION, CONTRIBUTIONS = "occlusion", "contributions"
MOST_PARTS = 200  # one reading of the text each


@dataclass(frozen=True)
class Effect:
    """Characters `start` up to `end` of the text, and how much they spoke for the answer."""

    text: str
    start: int
    end: int
    effect: float


@dataclass(frozen=True)
class Explanation:
    """The effects of a text's words in order, and how they were found."""

    method: str  # OCCLUSION or CONTRIBUTIONS
    effects: list[Effect]


@dataclass(frozen=True)
class Occlusion:
    """A text, where its words (or stretches of them) stand, and the text without each of them."""

    text: str
    parts: list[tuple[int, int]]
    without: list[str]

    def explanation(self, probabilities: Sequence[float]) -> Explanation:
        """The words' effects, from a label's probability for the text and for each `without`."""
        p = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-12, 1 - 1e-12)
        log_odds = np.log(p) - np.log1p(-p)
        effects = [
            Effect(self.text[start:end], start, end, float(log_odds[0] - log_odds[place]))
            for place, (start, end) in enumerate(self.parts, start=1)
        ]
        return Explanation(OCCLUSION, effects)


def explain(run: OpenedRun, text: str, label: str | None = None) -> Explanation:
    """The effect of every word of `text` on `label` (by default, the answer).

    Parameters
    ----------
    run : a run that predicts classes, of any kind.
    text : the text; of a pair, both with the mark between them.
    label : the class to explain.
    """
    p = predict_probabilities(run, [text])[0]
    column = int(p.argmax()) if label is None else run.labels.index(label)
    exact = explain_exactly(run, text, column)
    if exact is not None:
        return exact
    found = occlude(text)
    if not found.parts:
        return Explanation(OCCLUSION, [])
    return found.explanation(predict_probabilities(run, [text, *found.without])[:, column].tolist())


def explain_exactly(run: OpenedRun, text: str, column: int) -> Explanation | None:
    """The words' parts of a class's log-odds, where the run computes them as a sum."""
    found = run.contributions(text, column)
    if found is None:
        return None
    effects = [
        Effect(text[start:end], start, end, effect / run.temperature)
        for start, end, effect in found
    ]
    return Explanation(CONTRIBUTIONS, effects)


def occlude(text: str) -> Occlusion:
    """The text without each of its words; of a long one, without each stretch of words."""
    parts = _stretches(_words(text))
    # A text of one word is compared with a full stop: an empty text has no prediction.
    without = [(text[:start] + text[end:]).strip() or "." for start, end in parts]
    without = [one if one != PAIR_MARK else f".{PAIR_MARK}." for one in without]
    return Occlusion(text, parts, without)


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
