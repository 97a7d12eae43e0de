"""The stack combines informative arms and gives uninformative ones no weight."""

import numpy as np
import pytest
from scipy.special import softmax

from headstart.baselines.stack import Stack, fit_out_of_fold
from headstart.folds import make_folds

VALIDATION, TEST, REPETITIONS = 100, 2_000, 30


def arm(labels, draw, *, signal, overconfidence=1.0, classes=2):
    """Generate probabilities that are calibrated except for overconfidence."""
    noisy = signal * np.eye(classes)[labels] + draw.normal(size=(len(labels), classes))
    return softmax(signal * overconfidence * noisy, axis=1)


def alike(labels, draw):
    return arm(labels, draw, signal=1.0), arm(labels, draw, signal=1.0)


def one_overconfident(labels, draw):
    return arm(labels, draw, signal=1.2, overconfidence=4), arm(labels, draw, signal=1.0)


def one_of_noise(labels, draw):
    noise = softmax(3 * draw.normal(size=(len(labels), 2)), axis=1)
    return arm(labels, draw, signal=1.2), noise


def simulate(case):
    """Mean (log-loss, accuracy) on test rows: of the better arm, and of the stack."""
    singles, stacked = [], []
    for seed in range(REPETITIONS):
        draw = np.random.default_rng(seed)
        labels = draw.integers(0, 2, VALIDATION + TEST)
        arms = case(labels, draw)
        stack = Stack.fit([p[:VALIDATION] for p in arms], labels[:VALIDATION])
        held_out, wanted = [p[VALIDATION:] for p in arms], labels[VALIDATION:]
        singles.append([scores(p, wanted) for p in held_out])
        stacked.append(scores(stack.predict_proba(held_out), wanted))
    of_singles = np.mean(singles, axis=0)
    better = of_singles[:, 0].min(), of_singles[:, 1].max()
    return better, np.mean(stacked, axis=0)


def scores(probabilities, labels):
    own = probabilities[np.arange(len(labels)), labels]
    return -np.log(own).mean(), (probabilities.argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("case", [alike, one_overconfident])
def test_arms_that_know_different_things_are_better_together(case):
    (best_loss, best_accuracy), (loss, accuracy) = simulate(case)
    assert loss < best_loss - 0.02
    assert accuracy > best_accuracy + 0.015


def test_an_arm_with_nothing_to_add_costs_nothing_to_speak_of():
    """With 100 validation rows, the stack is within 0.2 points and 0.005 nats of the better arm."""
    (best_loss, best_accuracy), (loss, accuracy) = simulate(one_of_noise)
    assert loss < best_loss + 0.005
    assert accuracy > best_accuracy - 0.002


def test_a_certain_arm_has_no_veto():
    labels = np.arange(40) % 2
    sure = np.eye(2)[labels]
    sure[:4] = sure[:4, ::-1]  # wrong, with a probability of 0 for the truth
    fair = np.where(np.eye(2)[labels] > 0, 0.7, 0.3)
    combined = Stack.fit([sure, fair], labels).predict_proba([sure, fair])
    assert np.isfinite(np.log(combined)).all()


def test_out_of_fold_predictions_come_from_stacks_that_did_not_see_the_rows():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 90)
    arms = alike(labels, draw)
    stack, oof_proba = fit_out_of_fold(arms, labels)
    held = make_folds(labels)[0].held
    others = np.setdiff1d(np.arange(90), held)
    expected = Stack.fit([p[others] for p in arms], labels[others])
    assert np.array_equal(oof_proba[held], expected.predict_proba([p[held] for p in arms]))
    assert np.array_equal(stack.weights, Stack.fit(arms, labels).weights)


def test_a_member_that_counts_for_nothing_changes_no_bit():
    draw = np.random.default_rng(0)
    arms = [draw.dirichlet([1, 1, 1], 50).astype(np.float32) for _ in range(3)]
    fewer = Stack([0.7, 0.4]).predict_proba([arms[0], arms[2]])
    assert np.array_equal(Stack([0.7, 0.0, 0.4]).predict_proba(arms), fewer)
