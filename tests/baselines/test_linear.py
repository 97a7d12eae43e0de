"""Linear text classifiers are scikit-learn estimators that learn from few rows in any script."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from headstart.baselines.linear import (
    CooccurrenceClassifier,
    NaiveBayesClassifier,
    TfidfClassifier,
    count_ratios,
)
from headstart.errors import HeadstartError
from headstart.folds import make_folds

GOOD = ["a fine film", "fine acting and a fine plot", "warm , funny , fine", "I loved this one"]
BAD = ["a dull film", "dull acting and a dull plot", "cold , boring , dull", "I hated this one"]
TEXTS, LABELS = [*GOOD, *BAD], np.repeat(["good", "bad"], 4)
NGRAMS = [TfidfClassifier, NaiveBayesClassifier]
# Token 0 is special; 1 to 10 lean to one side, 11 to 20 to the other.
VECTORS = np.zeros((21, 4), dtype=np.float32)
VECTORS[1:] = np.random.default_rng(0).normal(size=(20, 4))
VECTORS[1:11, 0] += 3
VECTORS[11:, 0] -= 3


def token_rows(rows, *, seed=0):
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    texts = [draw.integers(1, 11, size=draw.integers(1, 6)) + 10 * label for label in labels]
    return texts, labels


@pytest.mark.parametrize("kind", NGRAMS)
def test_it_learns_words(kind):
    model = kind().fit(TEXTS, LABELS, validation=(TEXTS, LABELS))
    assert list(model.predict(["what a fine day", "what a dull day"])) == ["good", "bad"]
    assert list(model.classes_) == ["bad", "good"]
    assert model.scores(["neither", ""]).shape == (2, 2)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.scores(GOOD), model.scores(GOOD))
    with pytest.raises(NotFittedError):
        clone(model).predict(["fine"])


@pytest.mark.parametrize("kind", NGRAMS)
def test_every_row_of_a_small_budget_is_predicted_out_of_fold(kind):
    """There are three folds; no two texts share a feature, so models can only memorise them."""
    texts, labels = [f"word{number}" for number in range(60)], np.arange(60) % 2
    model, folds = kind().fit(texts, labels), make_folds(labels)
    assert [len(scores) for scores in model.oof_scores_] == [len(fold.held) for fold in folds]
    assert (model.predict(texts) == labels).mean() > 0.9
    assert (model.oof_scores_[0].argmax(axis=1) == labels[folds[0].held]).mean() < 0.75


def test_characters_see_what_words_miss():
    model = TfidfClassifier().fit(TEXTS, LABELS, folds=[])
    assert list(model.predict(["finest", "dullness"])) == ["good", "bad"]
    texts = ["這部電影很好看", "演技很好看", "這部電影很無聊", "演技很無聊"]
    model = TfidfClassifier().fit(texts, [1, 1, 0, 0], folds=[])
    assert list(model.predict(["故事很好看", "故事很無聊"])) == [1, 0]


@pytest.mark.parametrize("kind", NGRAMS)
def test_marks_are_enough_to_tell_classes_apart(kind):
    model = kind().fit([":-) !!", ":-) :-)", ":-( ...", ":-( :-("], [1, 1, 0, 0], folds=[])
    assert list(model.predict([":-)", ":-("])) == [1, 0]
    blank = kind().fit(["  ", "\t", " ", "\n"], [1, 1, 0, 0], folds=[])
    assert blank.scores([" "]).shape == (1, 2)


def test_every_label_of_several_is_a_regression(tmp_path):
    """A label that no row has is never predicted; the model is read as it was written."""
    targets = np.stack([LABELS == "good", LABELS == "bad", np.zeros(8)], axis=1).astype(int)
    model = TfidfClassifier().fit(TEXTS, targets, validation=(TEXTS, targets))
    assert len(model.C_) == 3
    scores = model.scores(["what a fine day", "what a dull day"])
    assert (scores > 0).tolist() == [[True, False, False], [False, True, False]]
    again = TfidfClassifier.read(tmp_path, *model.write(tmp_path))
    assert np.array_equal(again.scores(TEXTS), model.scores(TEXTS))


@pytest.mark.parametrize(
    ("texts", "labels", "error", "message"),
    [
        (["a", "b"], ["good", "good"], HeadstartError, "2 training rows do not have two classes"),
        ([], [], HeadstartError, "0 training rows do not have two classes"),
        (["a", "b"], ["good"], ValueError, "2 texts and 1 labels"),
    ],
)
def test_rows_that_cannot_train_are_rejected(texts, labels, error, message):
    with pytest.raises(error, match=message):
        TfidfClassifier().fit(texts, labels)


def test_ratios_are_those_of_wang_and_manning():
    draw = np.random.default_rng(0)
    counts, labels = draw.integers(0, 2, (30, 6)), draw.integers(0, 2, 30)
    p, q = 1 + counts[labels == 1].sum(0), 1 + counts[labels == 0].sum(0)
    wanted = np.log((p / np.abs(p).sum()) / (q / np.abs(q).sum()))
    assert np.allclose(count_ratios(counts, labels), np.abs(wanted))


def test_vectors_of_any_scale_are_read_alike():
    model = CooccurrenceClassifier(VECTORS).fit(*token_rows(20))
    scaled = CooccurrenceClassifier((100 * VECTORS).astype(np.float32)).fit(*token_rows(20))
    texts, labels = token_rows(40, seed=2)
    assert model.score(texts, labels) == 1
    assert np.allclose(scaled.scores(texts), model.scores(texts), atol=1e-2)
    zeros = CooccurrenceClassifier(np.zeros_like(VECTORS)).fit(*token_rows(20))
    assert np.allclose(zeros.scores([np.array([1])]), 0)
