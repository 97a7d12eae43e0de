"""Claims name the right cause: the smaller version of `bench/simulated_studies.py`."""

import pytest

from tests.pages import load_script


@pytest.fixture(scope="module")
def bench():
    return load_script("bench/simulated_studies.py")


@pytest.mark.parametrize(
    ("truth", "seeds"),
    [("none", 2), ("cooc", 3), ("pretraining", 2), ("tuning", 3), ("fourfold", 2)],
)
def test_a_study_claims_what_is_true_and_seldom_what_is_not(bench, truth, seeds):
    facts = bench.TRUTHS[truth].claims
    found = [bench.judge(truth, number, seeds=seeds, rows=300) for number in range(40)]
    wrong = sum(any(c and not f for c, f in zip(one, facts, strict=True)) for one in found)
    complete = sum(all(c for c, f in zip(one, facts, strict=True) if f) for one in found)
    assert wrong <= 6  # of 40: two are expected, and more than six in one of 100 such tests
    assert complete >= 32


def test_without_every_arm_at_its_best_tuning_would_be_taken_for_pretraining(bench):
    found = [bench.judge("fixed", number, rows=300) for number in range(5)]
    assert sum(pretraining for _, pretraining in found) >= 4
