"""Looking at several budgets is not several chances to be fooled."""

import numpy as np
import pytest

from headstart.studies.claims import named_budgets, shared_level, standing_out
from headstart.studies.difference import paired_difference

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


@pytest.mark.parametrize("wrong", ["any", "the one without a difference"])
def test_false_claims_stay_rare(wrong):
    """Where nothing differs, and where one of two budgets does."""
    random = np.random.default_rng(0)
    true_gap, studies, false = (0.0 if wrong == "any" else 0.3), 200, 0
    for _ in range(studies):
        skill = random.normal(0, 0.02, (2, 2, 3, 1)) + 0.5  # arms, budgets, seeds
        skill[0, 0] += true_gap
        first, second = (random.random((2, 2, 3, 60)) < skill).astype(float)
        found = standing_out(first, second)
        false += any(found) if wrong == "any" else found[1]
    assert false <= 0.08 * studies
