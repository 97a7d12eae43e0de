"""A temperature calibrates probabilities and does not change predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from headstart.evaluation.calibration import (
    HIGHEST,
    LOWEST,
    fit_temperature,
    measure_calibration,
)


def drawn(rows, classes=3, *, seed=0):
    """Generate calibrated logits: labels are sampled from their softmax."""
    draw = np.random.default_rng(seed)
    logits = 2 * draw.normal(size=(rows, classes))
    labels = (softmax(logits, axis=1).cumsum(axis=1) < draw.random((rows, 1))).sum(axis=1)
    return logits, labels.clip(max=classes - 1)


@pytest.mark.parametrize("overconfidence", [0.4, 1.0, 3.0])
def test_the_temperature_undoes_overconfidence(overconfidence):
    logits, labels = drawn(20_000)
    found = fit_temperature(logits * overconfidence, labels)
    assert found == pytest.approx(overconfidence, rel=0.05)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 30), st.floats(0.1, 10))
def test_on_its_own_rows_the_loss_never_rises(seed, rows, scale):
    logits, labels = drawn(rows, seed=seed)
    temperature = fit_temperature(scale * logits, labels)
    found = measure_calibration(scale * logits, labels, temperature)
    assert LOWEST <= temperature <= HIGHEST
    assert found["log_loss_after"] <= found["log_loss_before"] + 1e-12


def test_a_few_rows_without_a_mistake_do_not_make_a_classifier_certain():
    logits = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert fit_temperature(logits, [0, 1]) > 0.5
    assert fit_temperature(np.tile(logits, (500, 1)), [0, 1] * 500) < 0.2
