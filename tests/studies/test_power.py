"""How many seeds would tell: by the tables, and where no number of seeds would."""

import math

import numpy as np
import pytest

from headstart.evaluation.metrics import Interval
from headstart.studies.power import find_power, is_level, t_power


def arms(gaps, rows=1000):
    """Two arms (seeds, rows), the first ahead by each seed's gap."""
    first, second = np.zeros((2, len(gaps), rows))
    for seed, gap in enumerate(gaps):
        second[seed, : rows // 2] = 1
        first[seed, : rows // 2 + round(rows * gap)] = 1
    return first, second


def test_the_power_of_a_paired_t_test_is_cohens():
    # Cohen (1988), one-sample t: d = 0.5 needs 34 for 80 % at two-sided 5 %, d = 1 needs 10.
    assert t_power(0.5, 1.0, 34) == pytest.approx(0.80, abs=0.015)
    assert t_power(1.0, 1.0, 10) == pytest.approx(0.80, abs=0.015)


def test_a_clear_difference_of_two_seeds_needs_few_more():
    assert find_power(*arms([0.04, 0.08])).needed in (4, 5)


def test_a_wide_spread_needs_more_than_anyone_would_run():
    assert math.isinf(find_power(*arms([0.30, -0.28])).needed)


def test_no_number_of_seeds_replaces_test_rows():
    # Every seed has the same rows right: ten more of 1,000, but 90 only one way and 80 the other.
    first, second = np.zeros((2, 3, 1000))
    first[:, :90] = second[:, 90:170] = 1
    found = find_power(first, second)
    assert math.isinf(found.needed)
    assert found.rows_needed > 1000


def test_one_seed_knows_nothing_of_its_spread():
    assert math.isinf(find_power(*arms([0.1])).needed)


def test_level_means_near_zero_on_both_sides():
    assert is_level(Interval(0.002, -0.008, 0.012))
    assert not is_level(Interval(0.063, -0.026, 0.152))
    assert not is_level(Interval(0.008, 0.001, 0.015))
