"""The labels that a score needs: right on clean curves, honest on others."""

import math

import numpy as np
import pytest

from headstart.study.statistics import (
    fit_power_laws,
    label_savings,
    labels_needed,
    labels_to_reach,
)

BUDGETS = (100, 400, 1600)


def table(accuracies, seeds=3, rows=2000, apart=0.002):
    """(budgets, seeds, rows) with these accuracies, a little apart between seeds."""
    lines = [
        [np.arange(rows) < round((accuracy + apart * (seed - 1)) * rows) for seed in range(seeds)]
        for accuracy in accuracies
    ]
    return np.array(lines)


def law(labels, a=1.5, b=0.35, c=0.05):
    return 1 - a * labels**-b - c


def test_a_power_law_is_found_again_within_its_range():
    found = fit_power_laws(BUDGETS, table([law(n) for n in BUDGETS])).labels(law(800))
    assert found.low < 800 < found.high
    assert found.value == pytest.approx(800, rel=0.2)


def test_predictions_outside_the_budgets_are_less_certain_than_those_inside():
    laws = fit_power_laws(BUDGETS, table([law(n) for n in BUDGETS]))
    inside, outside = laws.score(800), laws.score(12800)
    assert outside.low < law(12800) < outside.high
    assert outside.high - outside.low > inside.high - inside.low


def test_budgets_that_share_their_test_rows_are_not_taken_for_independent():
    # The slope of a curve varies less than its points, as hard rows stay hard. The same
    # scores with other test rows for every budget leave more open.
    random = np.random.default_rng(0)
    bounds = np.array([0.3, 0.6, 0.8])[:, None, None]
    shared = random.normal(size=500) + random.normal(0, 0.5, (3, 3, 500)) < bounds
    separate = np.array([budget[:, random.permutation(500)] for budget in shared])
    widths = []
    for scores in (shared, separate):
        laws = fit_power_laws(BUDGETS, scores.astype(float))
        gains = (laws.a * (400.0**-laws.b - 1600.0**-laws.b)).std()
        widths.append(gains)
    assert widths[0] < 0.8 * widths[1]


@pytest.mark.parametrize(
    ("accuracies", "seeds", "goal", "reason"),
    [
        ((0.6, 0.7), 3, 0.8, "at least 3"),
        ((0.6, 0.7, 0.8), 1, 0.75, "one seed"),
        ((0.7, 0.6, 0.5), 3, 0.8, "does not clearly rise"),
        ((0.6, 0.7, 0.75), 3, 0.99, "perhaps never"),
        ((0.8, 0.85, 0.9), 3, 0.6, "fewer than 100"),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(accuracies, seeds, goal, reason):
    budgets = BUDGETS[: len(accuracies)]
    assert reason in labels_needed(budgets, table(accuracies, seeds), goal)


def test_savings_of_curves_without_variance_between_seeds():
    first, second = table([0.6, 0.7, 0.8], apart=0), table([0.5, 0.6, 0.65], apart=0)
    found = label_savings(BUDGETS, first, second)
    assert found.value == pytest.approx(200)
    assert 100 < found.low < 200 < found.high < 400


def test_savings_outside_the_range():
    beyond = label_savings([100, 400], table([0.5, 0.6]), table([0.6, 0.7]))
    assert (beyond.value, beyond.high) == (math.inf, math.inf)
    before = label_savings([100, 400], table([0.8, 0.9]), table([0.5, 0.6]))
    assert (before.value, before.low, before.high) == (0, 0, 0)


def test_a_goal_missed_by_a_hair_at_every_budget_has_a_finite_estimate_if_the_interval_has():
    # Nearly every draw reaches the goal at one of twelve budgets, the means do not.
    budgets = [100 * 2**k for k in range(12)]
    rows = np.arange(400) < 280
    first = np.array([[np.roll(rows, 33 * k)] * 3 for k in range(12)], dtype=float)
    second = np.full_like(first, 0.7001)
    found = label_savings(budgets, first, second)
    assert labels_to_reach(budgets, first.mean((1, 2)), 0.7001) == math.inf
    assert found.low <= found.value <= found.high < math.inf


def test_the_interval_of_the_savings_covers_the_truth():
    # Truth: pretrained 0.6 → 0.8, scratch ends at 0.7, so 200 labels; seeds vary by 2 points.
    random = np.random.default_rng(0)

    def noisy(accuracies):
        chances = np.array(accuracies)[:, None, None] + random.normal(0, 0.02, (2, 3, 1))
        return (random.random((2, 3, 300)) < chances).astype(float)

    covered = 0
    for _ in range(60):
        found = label_savings([100, 400], noisy([0.6, 0.8]), noisy([0.5, 0.7]))
        covered += found.low <= 200 <= found.high
    assert covered >= 54
