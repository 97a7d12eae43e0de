"""Metrics equal those of scikit-learn and of the papers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn import metrics as reference
from sklearn.metrics import f1_score

from headstart.data.dataset import Dataset
from headstart.evaluation.calibration import calibration_error, log_loss
from headstart.evaluation.metrics import (
    class_table,
    classification_metrics,
    confident_mistakes,
    exact_match,
    f1_scores,
    mean_scores,
    span_f1,
    wilson_interval,
)
from headstart.tasks.classification import MultiLabel


def answers(seed, rows, classes):
    draw = np.random.default_rng(seed)
    probabilities = draw.dirichlet(np.ones(classes), rows)
    return probabilities, draw.integers(0, classes, rows)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(2, 6))
def test_classification_equals_scikit_learn(seed, rows, classes):
    probabilities, labels = answers(seed, rows, classes)
    names = [f"class {number}" for number in range(classes)]
    found = classification_metrics(probabilities, labels)
    predicted, every = probabilities.argmax(axis=1), list(range(classes))
    report = reference.classification_report(
        labels, predicted, labels=every, target_names=names, output_dict=True, zero_division=0
    )
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(labels, predicted))
    assert found["macro_f1"] == pytest.approx(report["macro avg"]["f1-score"])
    assert found["loss"] == pytest.approx(
        reference.log_loss(labels, probabilities, labels=every), rel=1e-6
    )
    confusion = reference.confusion_matrix(labels, predicted, labels=every)
    counts = confusion.diagonal(), confusion.sum(axis=0), confusion.sum(axis=1)
    for row in class_table(names, *counts):
        expected = report[row["name"]]
        assert row["precision"] == pytest.approx(expected["precision"])
        assert row["recall"] == pytest.approx(expected["recall"])
        assert row["f1"] == pytest.approx(expected["f1-score"])
        assert row["support"] == expected["support"]


def multi_label_metrics(probabilities, labels):
    names = [str(number) for number in range(len(labels[0]))]
    sets = ["|".join(name for name, has in zip(names, row, strict=True) if has) for row in labels]
    rows = Dataset("x", ["text"] * len(sets), list(range(len(sets))), tuple(sets))
    return MultiLabel(names).metrics(logit(np.asarray(probabilities)), rows)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 5))
def test_multi_label_equals_scikit_learn(seed, rows, count):
    draw = np.random.default_rng(seed)
    probabilities, labels = draw.random((rows, count)), draw.integers(0, 2, (rows, count))
    found = multi_label_metrics(probabilities, labels)
    predicted = probabilities >= 0.5
    expected = [
        reference.f1_score(labels, predicted, average=average, zero_division=0)
        for average in ("micro", "macro")
    ]
    assert found["micro_f1"] == pytest.approx(expected[0])
    assert found["macro_f1"] == pytest.approx(expected[1])
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(labels, predicted))
    losses = [
        reference.log_loss(labels[:, n], probabilities[:, n], labels=[0, 1]) for n in range(count)
    ]
    assert found["loss"] == pytest.approx(np.mean(losses))


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_are_newcombes(successes, total, low, high):
    """The examples of Newcombe (1998), table I, method 3."""
    found = wilson_interval(successes, total)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_the_calibration_error_of_a_known_table():
    # Bin (0.8, 0.8667]: confidence 0.85, accuracy 1/2. Bin (0.5333, 0.6]: 0.6 and 1.
    top = np.array([0.85, 0.85, 0.6, 0.6])
    probabilities = np.stack([top, 1 - top], axis=1)
    error = calibration_error(probabilities, np.array([0, 1, 0, 0]))
    assert error == pytest.approx(0.5 * 0.35 + 0.5 * 0.4)


def test_a_certain_mistake_has_a_large_but_finite_loss():
    assert log_loss(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(708.4, abs=0.1)


def test_the_most_confident_mistakes_come_first_and_ties_in_the_order_of_the_rows():
    probabilities = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.05, 0.95], [0.4, 0.6], [0.6, 0.4]]
    found = confident_mistakes(probabilities, [1, 1, 1, 0, 1, 1], count=3)
    assert [mistake["row"] for mistake in found] == [3, 0, 2]
    assert found[0] == {"row": 3, "true": 0, "predicted": 1, "confidence": 0.95}


def entities(rows=300, seed=0):
    """Correct, predicted and true entities of sentences, many of which have none."""
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


@pytest.mark.parametrize(
    ("predicted", "answer", "match", "score"),
    [
        ("Denver Broncos", "denver broncos.", 1, 1),
        ("Denver", "Denver Broncos", 0, 2 / 3),
        ("Carolina", "Denver Broncos", 0, 0),
        ("to to be", "to be", 0, 0.8),  # a word counts as often as both have it
        ("the Broncos", "Broncos", 0, 2 / 3),  # SQuAD's script would drop the article
        ("", "Denver", 0, 0),
        ("« L'Étranger »", "l'étranger", 1, 1),
        ("STRASSE", "Straße", 1, 1),
        ("東京都", "東京", 0, 0.8),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width", 1, 1),
    ],
)
def test_scores_by_hand(predicted, answer, match, score):
    assert exact_match(predicted, [answer]) == match
    assert span_f1(predicted, [answer]) == pytest.approx(score)


@pytest.mark.parametrize("answers", [[], [""]])
def test_saying_nothing_is_right_where_there_is_no_answer(answers):
    assert exact_match("", answers) == span_f1("", answers) == 1
    assert exact_match("Denver", answers) == span_f1("Denver", answers) == 0
