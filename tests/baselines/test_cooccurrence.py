"""The co-occurrence arm reads a text as the mean and maximum of its tokens' vectors."""

import numpy as np
import pytest

from headstart.baselines.cooccurrence import CooccurrenceClassifier, mean_and_maximum

# Token 0 is special; 1 to 10 lean to one side, 11 to 20 to the other.
VECTORS = np.zeros((21, 4), dtype=np.float32)
VECTORS[1:] = np.random.default_rng(0).normal(size=(20, 4))
VECTORS[1:11, 0] += 3
VECTORS[11:, 0] -= 3


def texts_and_labels(rows, *, seed):
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    texts = [draw.integers(1, 11, size=draw.integers(1, 6)) + 10 * label for label in labels]
    return texts, labels


def fitted():
    validation = texts_and_labels(10, seed=1)
    arm = CooccurrenceClassifier(VECTORS)
    return arm.fit(*texts_and_labels(20, seed=0), validation=validation)


def test_mean_and_maximum_by_hand():
    vectors = np.array([[0, 0], [1, 4], [3, 2]], dtype=np.float32)
    features = mean_and_maximum([np.array([1, 2]), np.array([0, 2]), np.array([0])], vectors)
    assert features.tolist() == [[2, 3, 3, 4], [3, 2, 3, 2], [0, 0, 0, 0]]


def test_an_empty_text_is_a_row_of_zeros():
    assert not mean_and_maximum([np.array([], dtype=int), []], VECTORS).any()


def test_it_learns_what_the_vectors_know():
    texts, labels = texts_and_labels(40, seed=2)
    assert fitted().score(texts, labels) == 1


def test_probabilities_are_those_of_the_classes():
    probabilities = fitted().predict_proba([np.array([1, 2]), np.array([11, 12])])
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert probabilities[0, 0] > 0.5 > probabilities[1, 0]


def test_the_same_rows_give_the_same_bits():
    assert np.array_equal(fitted().regression_.coef_, fitted().regression_.coef_)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_the_vectors_scale_does_not_matter(scale):
    validation = texts_and_labels(10, seed=1)
    scaled = CooccurrenceClassifier((scale * VECTORS).astype(np.float32))
    scaled.fit(*texts_and_labels(20, seed=0), validation=validation)
    texts, _ = texts_and_labels(40, seed=2)
    assert np.allclose(scaled.predict_proba(texts), fitted().predict_proba(texts), atol=1e-3)


def test_vectors_that_know_nothing_still_give_probabilities():
    arm = CooccurrenceClassifier(np.zeros_like(VECTORS))
    arm.fit(*texts_and_labels(20, seed=0), validation=texts_and_labels(10, seed=1))
    assert np.allclose(arm.predict_proba([np.array([1])]), 0.5)
