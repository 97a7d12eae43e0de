"""The full evaluation of a classifier as one document, with its most confident mistakes.

Those are where a person learns most, about the model or about the labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart.evaluation.calibration import at_temperature, fit_temperature, measure_calibration
from headstart.evaluation.checks import checked
from headstart.evaluation.metrics import classification_metrics


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


def full_evaluation(
    logits: NDArray[Any],
    labels: Sequence[int],
    texts: Sequence[str],
    names: Sequence[str],
    validation: Mapping[str, NDArray[Any]],
) -> dict[str, Any]:
    """Metrics, calibration with a temperature fitted on validation, and the worst mistakes.

    Parameters
    ----------
    logits : (rows, classes), what the classifier answered.
    labels : the true class numbers of the rows.
    texts : the rows' texts, shown with the mistakes.
    names : the names of the classes.
    validation : `logits` and `labels` of the validation rows, to fit the temperature on.

    Returns
    -------
    One plain document.
    """
    probabilities = at_temperature(logits, 1.0)
    temperature = fit_temperature(validation["logits"], validation["labels"])
    return {
        **asdict(classification_metrics(probabilities, labels, names)),
        "labels": list(names),
        "calibration": asdict(measure_calibration(logits, labels, temperature)),
        "mistakes": [
            {
                "row": mistake.row + 1,
                "text": texts[mistake.row],
                "true": names[mistake.true],
                "predicted": names[mistake.predicted],
                "confidence": mistake.confidence,
            }
            for mistake in confident_mistakes(probabilities, labels)
        ],
    }
