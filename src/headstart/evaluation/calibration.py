"""Temperature scaling: one number, fitted on validation, that makes confidence honest.

Logits are divided by the temperature before the softmax (Guo et al. 2017). The order of the
classes, and so the accuracy, stays as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from headstart.evaluation.checks import Floats, checked_scores
from headstart.evaluation.metrics import calibration_error, log_loss

# Where validation is answered without a mistake, the best temperature is 0: certainty, which
# a finite sample cannot justify. The bounds end the search.
LOWEST, HIGHEST = 0.05, 20.0


@dataclass(frozen=True)
class Calibration:
    """What a temperature changes, measured on other rows than it was fitted on."""

    temperature: float
    log_loss_before: float
    log_loss_after: float
    calibration_error_before: float
    calibration_error_after: float


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


def measure_calibration(logits: ArrayLike, labels: ArrayLike, temperature: float) -> Calibration:
    """Log-loss and calibration error of these rows before and after the temperature."""
    z, y = checked_scores(logits, labels)
    before, after = at_temperature(z, 1.0), at_temperature(z, temperature)
    return Calibration(
        temperature=temperature,
        log_loss_before=log_loss(before, y),
        log_loss_after=log_loss(after, y),
        calibration_error_before=calibration_error(before, y),
        calibration_error_after=calibration_error(after, y),
    )
