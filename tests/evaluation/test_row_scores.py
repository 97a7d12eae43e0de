"""Every metric that is a ratio of sums over rows has an interval over rows."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from headstart.evaluation.metrics import f1_scores, mean_scores


def entities(rows=300, seed=0):
    """Right, predicted and true entities of sentences; many have none."""
    random = np.random.default_rng(seed)
    true = random.poisson(1.0, rows)
    right = random.binomial(true, 0.7)
    return right, right + random.poisson(0.3, rows), true


def test_macro_f1_is_scikit_learns():
    random = np.random.default_rng(0)
    true, predicted = random.integers(0, 3, 200), random.integers(0, 3, 200)
    hot, guess = np.eye(4)[true], np.eye(4)[predicted]  # a class that never occurs counts as 0
    expected = f1_score(true, predicted, labels=range(4), average="macro", zero_division=0)
    assert f1_scores(hot * guess, guess, hot).value == pytest.approx(expected)


def test_the_numbers_per_row_have_the_metric_as_their_mean_and_vary_as_it_does():
    scores = f1_scores(*entities())
    per_row = scores.per_row()
    assert per_row.mean() == pytest.approx(scores.value)
    rows = np.random.default_rng(1).integers(0, 300, (2000, 300))  # a bootstrap
    drawn = scores.correct[rows, 0].sum(1) / scores.total[rows, 0].sum(1)
    assert per_row.std() / np.sqrt(300) == pytest.approx(drawn.std(), rel=0.05)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_that_are_all_alike_still_prove_little_when_they_are_few(value):
    found = mean_scores([value] * 20).interval()
    assert found.high - found.low > 0.1


def test_nine_of_ten_intervals_or_more_hold_the_truth():
    truth = f1_scores(*entities(100_000, seed=99)).value
    held = [
        found.low <= truth <= found.high
        for found in (f1_scores(*entities(120, seed)).interval() for seed in range(100))
    ]
    assert sum(held) >= 90
