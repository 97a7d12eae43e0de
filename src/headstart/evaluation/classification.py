"""All that is to be said about a classifier's answers, as one document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from headstart.evaluation.calibration import at_temperature, fit_temperature, measure_calibration
from headstart.evaluation.metrics import classification_metrics
from headstart.evaluation.mistakes import confident_mistakes
from headstart.text.reading.dataset import Dataset


def full_evaluation(
    logits: NDArray[Any],
    part: Dataset,
    labels: Sequence[str],
    validation: Mapping[str, NDArray[Any]],
) -> dict[str, Any]:
    """Metrics, calibration with a temperature fitted on validation, and the worst mistakes."""
    probabilities = at_temperature(logits, 1.0)
    temperature = fit_temperature(validation["logits"], validation["labels"])
    return {
        **asdict(classification_metrics(probabilities, part.labels, labels)),
        "labels": list(labels),
        "calibration": asdict(measure_calibration(logits, part.labels, temperature)),
        "mistakes": [
            {
                "row": mistake.row + 1,
                "text": part.texts[mistake.row],
                "true": labels[mistake.true],
                "predicted": labels[mistake.predicted],
                "confidence": mistake.confidence,
            }
            for mistake in confident_mistakes(probabilities, part.labels)
        ],
    }
