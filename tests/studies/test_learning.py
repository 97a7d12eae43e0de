"""How fast an arm learns, on curves drawn by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headstart.studies.learning_curves import (
    area_under_curve,
    epochs_to_reach,
    label_savings,
    labels_to_reach,
)


def table(accuracies, seeds=3, rows=1000):
    """(budgets, seeds, rows) with exactly these accuracies for every seed."""
    lines = [np.arange(rows) < round(accuracy * rows) for accuracy in accuracies]
    return np.array([[line] * seeds for line in lines])


def test_the_first_epoch_at_95_percent_of_the_best():
    assert epochs_to_reach([0.50, 0.70, 0.76, 0.80, 0.79]) == 3  # 0.76 is 95 % of 0.80


@given(some.lists(some.floats(0.01, 1), min_size=1))
def test_the_best_is_always_reached(curve):
    assert 1 <= epochs_to_reach(curve) <= curve.index(max(curve)) + 1


def test_the_area_under_a_straight_line_is_its_middle():
    assert area_under_curve([0.0, 0.1, 0.2, 0.3]) == pytest.approx(0.15)


def test_the_area_of_one_point_is_its_height():
    assert area_under_curve([0.7]) == 0.7


def test_half_way_between_budgets_is_half_way_on_a_log_scale():
    assert labels_to_reach([100, 400], np.array([0.6, 0.8]), 0.7) == pytest.approx(200)


def test_savings_of_curves_without_noise_between_seeds():
    found = label_savings([100, 400, 1600], table([0.6, 0.7, 0.8]), table([0.5, 0.6, 0.65]))
    assert found.goal == pytest.approx(0.65)
    assert found.labels == pytest.approx(200)
    assert 100 < found.low < 200 < found.high < 400


def test_savings_not_within_this_range():
    found = label_savings([100, 400], table([0.5, 0.6]), table([0.6, 0.7]))
    assert math.isinf(found.labels)
    assert math.isinf(found.high)


def test_savings_before_the_fewest_labels():
    found = label_savings([100, 400], table([0.8, 0.9]), table([0.5, 0.6]))
    assert (found.labels, found.low, found.high) == (0, 0, 0)


def test_one_seed_leaves_the_savings_open():
    found = label_savings([100, 400], table([0.6, 0.8], 1), table([0.5, 0.7], 1))
    assert (found.low, found.high) == (0, math.inf)


def test_the_interval_covers_the_truth_nineteen_times_of_twenty():
    # Truth: pretrained 0.6 → 0.8, scratch ends at 0.7, so 200 labels; seeds vary by 2 points.
    random = np.random.default_rng(0)

    def noisy(accuracies):
        chances = np.array(accuracies)[:, None, None] + random.normal(0, 0.02, (2, 3, 1))
        return random.random((2, 3, 300)) < chances

    covered = 0
    for _ in range(60):
        found = label_savings([100, 400], noisy([0.6, 0.8]), noisy([0.5, 0.7]), draws=200)
        covered += found.low <= 200 <= found.high
    assert covered >= 54
