"""Looking at several budgets is not several chances to be fooled."""

import numpy as np
import pytest

from headstart.studies.statistics import (
    named_budgets,
    paired_difference,
    shared_level,
    standing_out,
)

ROWS = 1000
NONE = (0.0, 0.0, 0.0)


def tables(*gaps):
    """Two arms (budgets, seeds, rows), the first ahead by the gap of each budget and seed."""
    first, second = np.zeros((2, len(gaps), len(gaps[0]), ROWS))
    for labels, line in enumerate(gaps):
        for seed, gap in enumerate(line):
            first[labels, seed, : ROWS // 2 + round(ROWS * gap)] = 1
            second[labels, seed, : ROWS // 2] = 1
    return first, second


def test_a_clear_budget_stands_out_beside_one_without_a_difference():
    assert standing_out(*tables((0.06, 0.07, 0.08), (0.01, -0.01, 0.0))) == [True, False]


def test_two_budgets_can_differ_together_and_neither_by_itself():
    first, second = tables((0.06, 0.0, 0.03), (0.0, 0.06, 0.03))
    assert paired_difference(first.mean(0), second.mean(0)).excludes(0)
    assert standing_out(first, second) == [False, False]


def test_a_budget_whose_group_is_level_does_not_stand_out_alone():
    first, second = tables((0.06, 0.06, 0.07), (-0.06, -0.07, -0.06))
    assert paired_difference(first[0], second[0]).excludes(0)
    assert standing_out(first, second) == [False, False]


def test_one_budget_is_judged_by_its_own_interval():
    assert standing_out(*tables((0.06, 0.07, 0.08))) == [True]
    assert standing_out(*tables(NONE)) == [False]


def test_the_level_is_shared_among_questions():
    assert shared_level(1) == pytest.approx(0.95)
    assert shared_level(2) == pytest.approx(0.975)


def test_the_fewest_and_the_most_labels_are_named():
    assert named_budgets([100, 400, 1600]) == [100, 1600]
    assert named_budgets([400]) == [400]


def made_up_studies(budgets, true_gap, studies=60, seeds=8):
    """Two arms that are alike, but for the first budget's gap; luck differs from seed to seed."""
    random = np.random.default_rng(0)
    for _ in range(studies):
        skill = random.normal(0, 0.1, (2, budgets, seeds, 1)) + 0.5  # arms, budgets, seeds
        skill[0, 0] += true_gap
        yield (random.random((2, budgets, seeds, 60)) < skill).astype(float)


@pytest.mark.slow
def test_where_nothing_differs_a_budget_seldom_stands_out_though_each_alone_often_would():
    claims = alone = 0
    for first, second in made_up_studies(4, 0.0):
        claims += any(standing_out(first, second))
        alone += any(
            paired_difference(one, other).excludes(0)
            for one, other in zip(first, second, strict=True)
        )
    assert claims <= 0.05 * 60 < alone


def test_where_one_budget_differs_the_other_is_seldom_named_with_it():
    named = [standing_out(*arms) for arms in made_up_studies(2, 0.3)]
    assert sum(other for _, other in named) <= 0.05 * 60
    assert sum(one for one, _ in named) > 0.5 * 60
