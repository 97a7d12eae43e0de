"""The paired difference: right on average, and seldom fooled."""

import math

import numpy as np
import pytest

from headstart.studies.statistics import bootstrap_means, paired_difference


def simulated(random, *, seeds, rows, seed_noise, row_taste, run_noise, effect=0.0):
    """Two arms' right answers (seeds, rows): a row is right when its score is above zero.

    `row_taste` is what an arm likes in a row whatever its seed: noise that only other rows show.
    """
    difficulty = random.normal(0.7, 1, rows)
    taste = random.normal(0, row_taste, rows)

    def arm(sign, extra):
        own = random.normal(0, seed_noise, (seeds, 1))
        chance = random.normal(0, run_noise, (seeds, rows))
        return (difficulty + sign * taste + extra + own + chance > 0).astype(int)

    return arm(1, effect), arm(-1, 0.0)


def test_an_accuracy_changes_by_no_more_than_all_of_it():
    first, second = np.zeros((2, 2, 8))
    first[0] = second[1] = 1  # one seed gains everything, the other loses it
    found = paired_difference(first, second)
    assert (found.low, found.high) == (-1.0, 1.0)


def test_the_value_is_the_difference_of_the_accuracies():
    first, second = np.array([[1, 1, 0, 1], [1, 0, 0, 1]]), np.array([[1, 0, 0, 0], [1, 0, 1, 1]])
    assert paired_difference(first, second).value == pytest.approx((5 - 4) / 8)


def test_the_bootstraps_spread_is_the_known_one_of_a_two_way_table():
    # Rows independent and no seed noise: the variance of the mean is p(1 − p)/n.
    row = np.random.default_rng(3).random(400) < 0.3
    table = np.tile(row, (3, 1)).astype(float)
    expected = math.sqrt(row.mean() * (1 - row.mean()) / 400)
    assert bootstrap_means(table, draws=4000).std() == pytest.approx(expected, rel=0.05)


def test_the_bootstraps_spread_over_seeds_is_the_known_one():
    # Every row alike: only the seeds vary; with replacement their variance is σ²/k, σ over k.
    accuracies = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    table = np.tile(accuracies[:, None], (1, 10))
    found = bootstrap_means(table, draws=6000).std()
    assert found == pytest.approx(accuracies.std() / math.sqrt(5), rel=0.05)


def test_the_same_seed_gives_the_same_interval():
    first, second = simulated(
        np.random.default_rng(0), seeds=3, rows=200, seed_noise=0.1, row_taste=0.1, run_noise=0.5
    )
    assert paired_difference(first, second) == paired_difference(first, second)


def test_swapping_the_arms_changes_the_sign():
    first, second = simulated(
        np.random.default_rng(1), seeds=3, rows=300, seed_noise=0.1, row_taste=0.1, run_noise=0.5
    )
    one, other = paired_difference(first, second), paired_difference(second, first)
    assert one.value == pytest.approx(-other.value)
    assert one.low == pytest.approx(-other.high, abs=0.004)


def test_a_large_number_of_rows_is_drawn_in_chunks(monkeypatch):
    monkeypatch.setattr("headstart.studies.statistics.CELLS_AT_ONCE", 7)
    assert bootstrap_means(np.ones((2, 300)), draws=50).shape == (50,)


def test_one_seed_gives_no_interval():
    assert not paired_difference(np.ones((1, 9)), np.zeros((1, 9))).bounded


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(
    ("seed_noise", "row_taste", "run_noise"),
    [(0.0, 0.0, 0.6), (0.05, 0.0, 0.6), (0.15, 0.0, 0.6), (0.05, 0.5, 0.3), (0.0, 0.8, 0.1)],
)
def test_no_true_difference_is_seldom_claimed(seeds, seed_noise, row_taste, run_noise):
    random = np.random.default_rng(0)
    noise = {"seed_noise": seed_noise, "row_taste": row_taste, "run_noise": run_noise}
    claims = sum(
        paired_difference(*simulated(random, seeds=seeds, rows=300, **noise), draws=300).excludes(0)
        for _ in range(200)
    )
    assert claims <= 20  # one in ten, where the level promises one in twenty


def test_a_real_difference_is_found():
    random = np.random.default_rng(0)
    noise = {"seed_noise": 0.05, "row_taste": 0.1, "run_noise": 0.5}
    found = paired_difference(*simulated(random, seeds=3, rows=1000, **noise, effect=0.5))
    assert found.low > 0
