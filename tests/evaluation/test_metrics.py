"""The numbers are scikit-learn's and the papers', not our own idea of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn import metrics as reference

from headstart.data.dataset import Dataset
from headstart.evaluation.calibration import calibration_error, log_loss
from headstart.evaluation.metrics import (
    class_table,
    classification_metrics,
    confident_mistakes,
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
