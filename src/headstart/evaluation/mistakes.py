"""The most confident mistakes: where a person learns most, about the model or about the labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headstart.evaluation.checks import checked


@dataclass(frozen=True)
class Mistake:
    """A row that was answered wrongly; classes as numbers."""

    row: int
    true: int
    predicted: int
    confidence: float  # the probability of the predicted class
    probability_of_true: float


def confident_mistakes(
    probabilities: ArrayLike, labels: ArrayLike, *, count: int = 10
) -> list[Mistake]:
    """The `count` wrong answers with the highest confidence; the earlier row first among equals."""
    p, y = checked(probabilities, labels)
    predicted, confidence = p.argmax(axis=1), p.max(axis=1)
    wrong = np.flatnonzero(predicted != y)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:count]
    return [
        Mistake(
            row=int(row),
            true=int(y[row]),
            predicted=int(predicted[row]),
            confidence=float(confidence[row]),
            probability_of_true=float(p[row, y[row]]),
        )
        for row in worst
    ]
