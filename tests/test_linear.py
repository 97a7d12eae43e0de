"""The strength is the one that validation likes best."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from headstart.errors import HeadstartError
from headstart.linear import choose_strength

STRENGTHS = (0.001, 0.01, 0.1, 1, 10, 100)


def drawn(rows, classes=2, *, seed=0):
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    return np.eye(classes)[labels] @ np.ones((classes, 20)) + _signal(labels, draw), labels


def _signal(labels, draw):
    features = 2 * draw.normal(size=(len(labels), 20))
    features[np.arange(len(labels)), labels] += 1.5
    return features


@pytest.mark.parametrize("classes", [2, 4])
def test_no_other_strength_has_a_lower_validation_loss(classes):
    train, labels = drawn(200, classes)
    held_out, wanted = drawn(300, classes, seed=1)
    chosen = choose_strength(train, labels, held_out, wanted, STRENGTHS)
    losses = {}
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=5_000).fit(train, labels)
        losses[strength] = log_loss(wanted, model.predict_proba(held_out))
    assert STRENGTHS[0] < chosen.C < STRENGTHS[-1]
    assert min(losses, key=losses.get) == chosen.C
    found = log_loss(wanted, chosen.predict_proba(held_out))
    assert found == pytest.approx(losses[chosen.C], abs=1e-3)


def test_sparse_features_serve_as_well():
    train, labels = drawn(60)
    chosen = choose_strength(sparse.csr_array(train), labels, sparse.csr_array(train), labels, [1])
    assert chosen.score(train, labels) > 0.7


def test_validation_rows_of_an_unknown_class_do_not_matter():
    train, labels = drawn(60)
    held_out, wanted = drawn(40, seed=1)
    with_stranger = np.concatenate([wanted, [7]]), np.vstack([held_out, 100 * held_out[:1]])
    one = choose_strength(train, labels, held_out, wanted, STRENGTHS)
    other = choose_strength(train, labels, with_stranger[1], with_stranger[0], STRENGTHS)
    assert one.C == other.C
    assert np.array_equal(one.coef_, other.coef_)


def test_a_validation_part_of_strangers_is_refused():
    train, labels = drawn(10)
    with pytest.raises(HeadstartError, match="no validation row has a class"):
        choose_strength(train, labels, train, labels + 5, [1])
