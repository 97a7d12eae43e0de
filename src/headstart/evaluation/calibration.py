"""Calibration: is a classifier right as often as its probabilities say, and temperature scaling.

Temperature scaling divides logits by one number, fitted on validation, before the softmax (Guo et
al. 2017). The order of the classes, and so the accuracy, stays as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from headstart.evaluation.checks import Floats, Integers, checked_scores

# Where validation is answered without a mistake, the best temperature is 0: certainty, which
# a finite sample cannot justify. The bounds end the search.
LOWEST, HIGHEST = 0.05, 20.0
CALIBRATION_BINS = 15


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows of similar confidence: their mean confidence and how many of them are right."""

    confidence: float
    accuracy: float
    rows: int


@dataclass(frozen=True)
class TemperatureEffect:
    """What a temperature changes, measured on other rows than it was fitted on."""

    temperature: float
    log_loss_before: float
    log_loss_after: float
    calibration_error_before: float
    calibration_error_after: float


def log_loss(probabilities: Floats, labels: Integers) -> float:
    """Mean of -ln p(true class); a p of 0 counts as the smallest normal double (a loss of 708)."""
    own = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(own, np.finfo(np.float64).tiny)).mean())


def reliability_bins(
    probabilities: Floats, labels: Integers, bins: int = CALIBRATION_BINS
) -> list[ReliabilityBin]:
    """Rows by the probability of their predicted class, in bins of equal width.

    Parameters
    ----------
    probabilities : (rows, classes).
    labels : (rows), the true class numbers.
    bins : how many; they are (0, 1/bins], (1/bins, 2/bins], …

    Returns
    -------
    The bins that hold rows, from low to high confidence.
    """
    confidence = probabilities.max(axis=1).astype(np.float64)
    right = probabilities.argmax(axis=1) == labels
    inner_edges = np.linspace(0, 1, bins + 1)[1:-1]
    places = np.digitize(confidence, inner_edges, right=True)
    found = []
    for place in np.unique(places):
        inside = places == place
        mean, share = float(confidence[inside].mean()), float(right[inside].mean())
        found.append(ReliabilityBin(mean, share, int(inside.sum())))
    return found


def calibration_error(
    probabilities: Floats, labels: Integers, bins: int = CALIBRATION_BINS
) -> float:
    """Expected calibration error: how far confidence and accuracy lie apart.

    The distances |accuracy - mean confidence| of the `reliability_bins` are averaged with the
    bins' shares of the rows as weights (Guo et al. 2017, with their 15 bins).
    """
    found = reliability_bins(probabilities, labels, bins)
    return sum(abs(one.accuracy - one.confidence) * one.rows for one in found) / len(labels)


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """The temperature with the lowest log-loss on these (validation) rows."""
    z, y = checked_scores(logits, labels)
    own = z[np.arange(len(y)), y]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(logsumexp(z * scale, axis=1) - own * scale))

    # The loss is convex in 1/temperature, so it has one valley in log(temperature) too.
    bounds = (np.log(LOWEST), np.log(HIGHEST))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    # No valley (all logits alike): the search ends anywhere; 1 is the honest answer.
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0


def at_temperature(logits: ArrayLike, temperature: float) -> Floats:
    """Probabilities from logits (rows × classes) at this temperature."""
    return np.asarray(softmax(np.asarray(logits, dtype=np.float64) / temperature, axis=-1))


def measure_calibration(
    logits: ArrayLike, labels: ArrayLike, temperature: float
) -> TemperatureEffect:
    """Log-loss and calibration error of these rows before and after the temperature."""
    z, y = checked_scores(logits, labels)
    before, after = at_temperature(z, 1.0), at_temperature(z, temperature)
    return TemperatureEffect(
        temperature=temperature,
        log_loss_before=log_loss(before, y),
        log_loss_after=log_loss(after, y),
        calibration_error_before=calibration_error(before, y),
        calibration_error_after=calibration_error(after, y),
    )
