"""A verdict names the right cause: the smaller version of `bench/simulated_studies.py`."""

import importlib.util
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "simulated_studies.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("simulated_studies", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """A bootstrap of 200 draws tells as much here, ten times faster."""
    monkeypatch.setitem(paired_defaults(), "draws", 200)


def paired_defaults():
    from headstart.studies.statistics import paired_difference

    return paired_difference.__kwdefaults__


@pytest.mark.parametrize("truth", ["none", "counting", "pretraining", "tuning"])
def test_the_verdict_claims_what_is_so_and_seldom_what_is_not(bench, truth):
    found = [bench.judge(truth, number, rows=300) for number in range(12)]
    wrong = sum(bool(bench.wrong_claims(truth, one)) for one in found)
    assert wrong <= 1
    right = bench.TRUTHS[truth].right_claims
    assert not right or sum(right <= set(one.claims) for one in found) >= 8


def test_without_every_arm_at_its_best_tuning_would_be_taken_for_pretraining(bench):
    found = [bench.judge("fixed", number, rows=300) for number in range(5)]
    assert sum("pretraining" in one.claims for one in found) >= 4


def test_the_same_number_gives_the_same_study(bench):
    assert bench.judge("both", 1, rows=100) == bench.judge("both", 1, rows=100)
