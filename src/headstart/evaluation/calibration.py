"""Calibration of probabilities: log-loss, calibration error and temperature scaling.

Temperature scaling divides logits by one number, fitted on validation, before the softmax (Guo et
al. 2017). The order of the classes, and so the accuracy, does not change.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# If all validation rows are predicted correctly, the best temperature is 0: certainty, which a
# finite sample cannot justify. So log(temperature) has a normal prior around 0; the bounds end
# the search.
PULL = 4.0  # precision of the prior, in rows
LOWEST, HIGHEST = 0.05, 20.0
CALIBRATION_BINS = 15
CERTAINTY = 0.9999  # if all probabilities are at least this high, something is probably wrong
CERTAINTY_NOTE = (
    "Every probability is at least 99.99 %. This usually means that the texts contain the label, "
    "or that the same texts were used in training: check the data."
)


def normalized(probabilities: ArrayLike) -> Floats:
    """Scale probabilities (rows, classes), such as rounded ones, so that every row sums to 1."""
    p = np.asarray(probabilities, dtype=np.float64)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def log_loss(probabilities: Floats, labels: Integers) -> float:
    """Compute the mean of -ln p(true class); p = 0 counts as the smallest normal double."""
    chosen = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean())


def calibration_error(probabilities: Floats, labels: Integers) -> float:
    """Compute the expected calibration error (Guo et al. 2017), with 15 bins of equal width."""
    confidence = probabilities.max(axis=1).astype(np.float64)
    away = (probabilities.argmax(axis=1) == labels) - confidence
    bins = np.digitize(confidence, np.linspace(0, 1, CALIBRATION_BINS + 1)[1:-1], right=True)
    return float(np.abs(np.bincount(bins, away)).sum()) / len(labels)


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Fit the temperature to logits (rows, classes) of validation rows, with a prior around 1."""
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    own = z[np.arange(len(y)), y]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        nats = np.sum(logsumexp(z * scale, axis=1) - own * scale)
        return float(nats + PULL * log_temperature**2 / 2) / len(y)

    # The loss is convex in 1/temperature, so it has one valley in log(temperature) too.
    bounds = (np.log(LOWEST), np.log(HIGHEST))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0


def calibrated_loss(logits: ArrayLike, labels: ArrayLike) -> float:
    """Compute the log-loss at the best temperature, so that overconfidence does not count."""
    return log_loss(at_temperature(logits, fit_temperature(logits, labels)), np.asarray(labels))


def at_temperature(logits: ArrayLike, temperature: float) -> Floats:
    """Compute probabilities from logits (rows, classes) at a temperature."""
    return np.asarray(softmax(np.asarray(logits, dtype=np.float64) / temperature, axis=-1))


def measure_calibration(
    logits: ArrayLike, labels: ArrayLike, temperature: float
) -> dict[str, float]:
    """Compare log-loss and calibration error before and after applying a temperature."""
    y = np.asarray(labels)
    before, after = at_temperature(logits, 1.0), at_temperature(logits, temperature)
    return {
        "temperature": temperature,
        "log_loss_before": log_loss(before, y),
        "log_loss_after": log_loss(after, y),
        "calibration_error_before": calibration_error(before, y),
        "calibration_error_after": calibration_error(after, y),
    }
