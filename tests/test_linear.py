"""C is the value with the lowest log-loss on held-out rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from headstart.baselines.linear import TfidfClassifier
from headstart.errors import HeadstartError
from headstart.linear import FoldFeatures, select_C

VALUES = (0.001, 0.01, 0.1, 1, 10, 100)


def drawn(rows, classes=2, *, seed=0):
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    return np.eye(classes)[labels] @ np.ones((classes, 20)) + _signal(labels, draw), labels


def select(train, labels, held_out, wanted, values):
    """The regression with the best C."""
    return select_C([FoldFeatures(train, labels, held_out, wanted)], values)[1][0]


def _signal(labels, draw):
    features = 2 * draw.normal(size=(len(labels), 20))
    features[np.arange(len(labels)), labels] += 1.5
    return features


@pytest.mark.parametrize("classes", [2, 4])
def test_no_other_value_has_a_lower_validation_loss(classes):
    train, labels = drawn(200, classes)
    held_out, wanted = drawn(300, classes, seed=1)
    chosen = select(train, labels, held_out, wanted, VALUES)
    losses = {}
    for value in VALUES:
        model = LogisticRegression(C=value, max_iter=5_000).fit(train, labels)
        losses[value] = log_loss(wanted, model.predict_proba(held_out))
    assert VALUES[0] < chosen.C < VALUES[-1]
    assert min(losses, key=losses.get) == chosen.C
    found = log_loss(wanted, chosen.predict_proba(held_out))
    assert found == pytest.approx(losses[chosen.C], abs=1e-3)


def test_validation_rows_of_an_unknown_class_do_not_matter():
    train, labels = drawn(60)
    held_out, wanted = drawn(40, seed=1)
    with_stranger = np.concatenate([wanted, [7]]), np.vstack([held_out, 100 * held_out[:1]])
    one = select(train, labels, held_out, wanted, VALUES)
    other = select(train, labels, with_stranger[1], with_stranger[0], VALUES)
    assert one.C == other.C
    assert np.array_equal(one.coef_, other.coef_)


def test_a_validation_part_of_strangers_is_rejected():
    train, labels = drawn(10)
    with pytest.raises(HeadstartError, match="no validation row has a class"):
        select(train, labels, train, labels + 5, [1])


def test_the_search_does_not_stop_at_the_first_rise_of_the_loss():
    """A large feature misleads at small C; a small, exact feature needs a large C."""
    draw = np.random.default_rng(0)

    def part(sign):
        labels = np.arange(200) % 2
        signs = 2 * labels - 1
        return np.stack([sign * 0.4 * signs + draw.normal(size=200), 0.02 * signs], axis=1), labels

    chosen = select(*part(1), *part(-1), [0.001, 0.01, 1, 1000])
    assert chosen.C == 1000


def test_a_fit_in_the_span_of_the_rows_predicts_as_the_direct_one(monkeypatch):
    draw = np.random.default_rng(0)
    texts = [" ".join(f"word{n}" for n in draw.integers(0, 300, 8)) for _ in range(120)]
    texts += texts[:3]  # rows that depend on others
    labels = np.arange(len(texts)) % 12
    fitted = TfidfClassifier().fit(texts, labels)
    monkeypatch.setattr("headstart.linear.MOST_ROWS", 0)
    direct = TfidfClassifier().fit(texts, labels)
    assert fitted.C_ == direct.C_
    others = [f"{text} word{n}" for n, text in enumerate(texts)]
    assert np.allclose(fitted.scores(others), direct.scores(others), atol=1e-3)
    for one, other in zip(fitted.oof_scores_, direct.oof_scores_, strict=True):
        assert np.allclose(one, other, atol=1e-3)
