"""Intervals and tests against known answers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from headstart.evaluation.metrics import wilson_interval
from headstart.studies.statistics import (
    accuracy_interval,
    mcnemar_exact,
    mean_interval,
    share_interval,
)


def test_the_mean_interval_is_scipys_t_interval():
    values = [0.71, 0.74, 0.69, 0.73]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean_interval(values)
    assert found.value == pytest.approx(0.7175)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_three_seeds_reach_by_the_tables_4_303_standard_errors():
    found = mean_interval([1.0, 2.0, 3.0])
    assert found.high - found.value == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)


def test_one_seed_says_nothing_of_the_spread():
    found = mean_interval([0.8])
    assert (found.value, found.low, found.high) == (0.8, -math.inf, math.inf)
    assert not found.bounded
    assert not found.excludes(0)


def test_the_wilson_interval_is_newcombes_published_example():
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81 of 263 and 0 of 20.
    found = wilson_interval(81, 263)
    assert (found.low, found.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    none_right = wilson_interval(0, 20)
    assert (none_right.low, none_right.high) == pytest.approx((0.0, 0.1611), abs=5e-5)


@given(some.integers(1, 500).flatmap(lambda n: some.tuples(some.integers(0, n), some.just(n))))
def test_the_wilson_interval_is_scipys(counts):
    correct, count = counts
    expected = stats.binomtest(correct, count).proportion_ci(method="wilson")
    found = wilson_interval(correct, count)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_mcnemar_agrees_with_the_coin():
    # One of six disagreements: 2 · (1 + 6) / 2⁶ by hand.
    assert mcnemar_exact(1, 5) == pytest.approx(14 / 64)


def test_mcnemar_of_agrestis_table_of_approval():
    # Agresti, Categorical Data Analysis (2002), table 10.1: 150 and 86 changed their mind;
    # z² = 17.36 there, so the p is far below 0.001; the chi-square tail gives its size.
    found = mcnemar_exact(150, 86)
    assert found == pytest.approx(stats.chi2.sf((150 - 86) ** 2 / (150 + 86), 1), rel=0.35)


def test_classifiers_that_never_disagree_do_not_differ():
    assert mcnemar_exact(0, 0) == 1.0


@given(some.integers(0, 200), some.integers(0, 200))
def test_mcnemar_does_not_care_which_comes_first(one, other):
    assert mcnemar_exact(one, other) == pytest.approx(mcnemar_exact(other, one))
    assert 0 <= mcnemar_exact(one, other) <= 1 + 1e-12


def test_intervals_take_arrays():
    assert mean_interval(np.array([1.0, 1.0])).low == 1.0


def test_no_interval_of_a_share_leaves_what_is_possible():
    assert mean_interval([0.95, 0.65]).high > 1
    found = share_interval([0.95, 0.65])
    assert (found.low, found.high) == (0.0, 1.0)


def test_seeds_that_do_not_vary_have_wilsons_interval_over_test_rows():
    right = np.tile(np.arange(200) < 180, (3, 1))
    found, expected = accuracy_interval(right), wilson_interval(180, 200)
    assert (found.value, found.low, found.high) == (0.9, expected.low, expected.high)


def test_an_accuracy_over_seeds_that_vary_is_no_surer_than_its_test_rows():
    random = np.random.default_rng(0)
    right = random.random((3, 400)) < 0.8
    found, student = accuracy_interval(right), mean_interval(right.mean(1))
    assert found.low <= student.low < student.high <= found.high
