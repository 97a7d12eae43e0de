"""Which words moved the decision? What each adds to a sum, or what changes where it is left out.

A word's effect is its part of the answer's log-odds: positive where it spoke for the answer,
negative where against it. A linear classifier's log-odds are a sum, and each word's part of it is
exact. A network's (or a stack's) are not: there each word is left out and the text predicted again
(occlusion), which unlike gradients uses only real texts. Long texts are left out in stretches of
several words.
"""

from dataclasses import dataclass

import numpy as np

from headstart.inference.predict.classes import predict_probabilities
from headstart.tasks.opened_run import OpenedRun
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
    found = run.contributions(text, column)
    if found is None:
        return Explanation(OCCLUSION, _occlusion(run, text, column))
    effects = [
        Effect(text[start:end], start, end, effect / run.temperature)
        for start, end, effect in found
    ]
    return Explanation(CONTRIBUTIONS, effects)


def _occlusion(run: OpenedRun, text: str, column: int) -> list[Effect]:
    parts = _stretches(find_words(text))
    if not parts:
        return []
    # A text of one word is compared with a full stop: an empty text has no prediction.
    without = [(text[:start] + text[end:]).strip() or "." for start, end in parts]
    p = np.clip(predict_probabilities(run, [text, *without]), 1e-12, 1 - 1e-12)
    log_odds = np.log(p[:, column]) - np.log1p(-p[:, column])
    return [
        Effect(text[start:end], start, end, float(log_odds[0] - log_odds[place]))
        for place, (start, end) in enumerate(parts, start=1)
    ]


def _stretches(words: list[tuple[int, int]]) -> list[tuple[int, int]]:
    size = -(-len(words) // MOST_PARTS)
    return [
        (words[i][0], words[min(i + size, len(words)) - 1][1])
        for i in range(0, len(words), size or 1)
    ]
