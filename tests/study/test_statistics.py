"""Intervals and tests against known results, and how often they err."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays
from scipy import stats

from headstart.study.statistics import (
    claimed_steps,
    closed_p_values,
    detectable_difference,
    fit_power_laws,
    holm_p_values,
    label_savings,
    labels_needed,
    mean_interval,
    paired_difference,
    seed_variance,
)

SCORES = arrays.arrays(
    np.float64, some.tuples(some.integers(2, 3), some.integers(1, 40)), elements=some.floats(0, 1)
)


def study(random, *, arms=3, budgets=3, seeds=2, rows=300, luck=0.05):
    """Simulate scores (arms, budgets, seeds, rows) of equally good arms."""
    difficulty = random.normal(0.6, 1, rows)
    taste = random.normal(0, 0.3, (arms, 1, 1, rows))
    run = random.normal(0, luck, (arms, budgets, seeds, 1))
    residual = random.normal(0, 0.6, (arms, budgets, seeds, rows))
    return (difficulty + taste + run + residual > 0).astype(float)


def pooled(scores):
    """The seed variance of a study, pooled over arms that are compared at the same budget."""
    tables = {place: scores[place] for place in np.ndindex(scores.shape[:2])}
    pairs = [(one, other) for one in tables for other in tables if one < other]
    return seed_variance(tables, [pair for pair in pairs if pair[0][1] == pair[1][1]])


def ahead(*gaps, rows=1000):
    """Simulate two arms (seeds, rows); the first is better by the gap of each seed."""
    first, second = np.zeros((2, len(gaps), rows))
    for seed, gap in enumerate(gaps):
        second[seed, : rows // 2] = 1
        first[seed, : rows // 2 + round(rows * gap)] = 1
    return first, second


# Intervals


def test_without_rows_to_vary_the_interval_is_students():
    values = np.array([[0.71], [0.74], [0.69], [0.73]])
    expected = stats.ttest_1samp(values[:, 0], 0).confidence_interval(0.95)
    found = mean_interval(values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_without_seeds_that_vary_the_interval_is_that_of_agresti_and_coull():
    # 180 of 200 rows: (180 + 2) / 204 ± 1.96 · √(p(1 − p)/204), with t in place of 1.96.
    found = mean_interval(np.tile(np.arange(200) < 180, (3, 1)))
    p = 182 / 204
    reach = stats.t.ppf(0.975, 199) * math.sqrt(p * (1 - p) / 204)
    assert found.value == 0.9
    assert (found.low, found.high) == pytest.approx((p - reach, p + reach), abs=1e-4)


def test_31_rows_on_which_two_arms_agree_leave_six_points_open():
    row = np.random.default_rng(0).random(31) < 0.8
    arm = np.tile(row, (3, 1))
    found = paired_difference(arm, arm)
    assert found.value == 0
    assert 0.06 <= found.high <= 0.1
    assert 0.06 <= -found.low <= 0.1


def test_two_seeds_of_a_whole_study_say_more_than_two_seeds():
    scores = study(np.random.default_rng(0), rows=1800)
    alone = paired_difference(scores[1, 0], scores[0, 0])
    found = paired_difference(scores[1, 0], scores[0, 0], pooled(scores))
    assert found.value == alone.value
    assert found.high - found.low < (alone.high - alone.low) / 2


def test_two_seeds_that_contradict_each_other_give_no_interval_over_the_whole_range():
    first, second = np.zeros((2, 2, 8))
    first[0] = second[1] = 1  # one seed gains everything, the other loses it
    found = paired_difference(first, second)
    assert not found.bounded
    assert not found.excludes(0)


def test_one_seed_gives_an_interval_over_rows_and_none_of_a_difference():
    one = np.arange(200)[None] < 180
    assert mean_interval(one).low == pytest.approx(mean_interval(np.repeat(one, 3, 0)).low)
    assert not mean_interval(np.array([[0.8]])).bounded
    assert mean_interval(np.array([[0.0], [1e-90]])).bounded  # a variance whose square is 0
    assert not paired_difference(np.ones((1, 9)), np.zeros((1, 9))).bounded


@given(SCORES)
def test_every_interval_has_a_width_and_stays_within_what_is_possible(scores):
    found = mean_interval(scores)
    if found.bounded and scores.shape[1] > 1:
        assert 0 <= found.low < found.high <= 1
        assert found.low <= found.value + 1e-12
        assert found.value <= found.high + 1e-12


@pytest.mark.parametrize(("seeds", "luck"), [(2, 0.05), (2, 0.15), (3, 0.0)])
def test_about_one_interval_in_twenty_misses(seeds, luck):
    random = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        scores = study(random, seeds=seeds, luck=luck)
        variance = pooled(scores)
        for budget in range(3):
            missed += paired_difference(*scores[:2, budget], variance).excludes(0)
    assert missed <= 27  # of 300: 15 are expected, and more than 27 in one of 500 such tests


# Detectable differences


def test_the_detectable_difference_is_cohens():
    # Cohen (1988), one-sample t, 80 % at two-sided 5 %: 34 values find d = 0.5, ten find d = 1.
    for count, size in ((34, 0.5), (10, 1.0)):
        values = np.linspace(-1, 1, count)
        values = 0.1 * values / values.std(ddof=1)
        found = detectable_difference(values[:, None], np.zeros((count, 1)))
        assert found == pytest.approx(0.1 * size, rel=0.02)


# Claims


def test_a_clear_budget_stands_out_and_one_without_a_difference_does_not():
    pairs = ahead(0.06, 0.07, 0.08), ahead(0.01, -0.01, 0.0)
    assert [p < 0.05 for p in closed_p_values(*np.swapaxes(pairs, 0, 1))] == [True, False]


def test_a_budget_whose_group_is_level_does_not_stand_out_alone():
    pairs = ahead(0.06, 0.06, 0.07), ahead(-0.06, -0.07, -0.06)
    assert paired_difference(*pairs[0]).excludes(0)
    assert [p < 0.05 for p in closed_p_values(*np.swapaxes(pairs, 0, 1))] == [False, False]


def test_holms_correction_multiplies_the_smallest_p_value_most():
    # statsmodels.stats.multitest.multipletests(p, method="holm")
    assert holm_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_p_values([0.9, 0.8]) == [1.0, 1.0]
    assert holm_p_values([]) == []


def test_a_step_is_claimed_where_the_whole_difference_is_clear_too():
    first, second = ahead(0.06, 0.07, 0.08)
    up = np.array([second, first, first])[:, None]
    up_and_down = np.array([second, first, second])[:, None]
    assert claimed_steps(up) == [True, False]
    assert claimed_steps(up_and_down) == [False, False]


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
