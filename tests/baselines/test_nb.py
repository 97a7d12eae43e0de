"""The naive-Bayes arm: words count as much as they tell the classes apart."""

import numpy as np
import pytest

from headstart.baselines.nb import NaiveBayesClassifier, count_ratios
from headstart.folds import make_folds

GOOD = ["a fine film", "fine acting and a fine plot", "warm , funny , fine", "I loved this one"]
BAD = ["a dull film", "dull acting and a dull plot", "cold , boring , dull", "I hated this one"]


def fitted(texts=(*GOOD, *BAD), labels=(1,) * 4 + (0,) * 4):
    return NaiveBayesClassifier().fit(texts, labels, validation=(texts, labels))


def test_it_learns_words():
    assert fitted().predict(["what a fine day", "what a dull day"]).tolist() == [1, 0]


def test_a_word_of_both_classes_counts_for_nothing_and_one_of_a_single_class_for_much():
    counts = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [1, 0, 1]])
    ratios = count_ratios(counts, np.array([0, 0, 1, 1]))
    assert ratios[0] == pytest.approx(0)
    assert ratios[1] == ratios[2] == pytest.approx(np.log(3))


def test_ratios_are_those_of_wang_and_manning():
    draw = np.random.default_rng(0)
    counts, labels = draw.integers(0, 2, (30, 6)), draw.integers(0, 2, 30)
    p, q = 1 + counts[labels == 1].sum(0), 1 + counts[labels == 0].sum(0)
    wanted = np.log((p / np.abs(p).sum()) / (q / np.abs(q).sum()))
    assert np.allclose(count_ratios(counts, labels), np.abs(wanted))


def test_many_classes():
    names = [f"topic{number}" for number in range(20)]
    texts = [f"{name} {filler}" for name in names for filler in ("again", "once more", "now")]
    arm = fitted(texts, np.repeat(names, 3))
    assert arm.score([f"about {name}" for name in names], names) == 1


def test_marks_are_words():
    arm = fitted([":-) !!", ":-) :-)", ":-( ...", ":-( :-("], [1, 1, 0, 0])
    assert arm.predict([":-)", ":-("]).tolist() == [1, 0]


def test_blanks_alone_are_no_reason_to_stop():
    assert fitted(["  ", "\t", " ", "\n"], [1, 1, 0, 0]).predict_proba([" "]).shape == (1, 2)


def test_ratios_are_counted_anew_in_each_fold():
    texts, labels = [*GOOD, *BAD], np.array([1] * 4 + [0] * 4)
    arm = NaiveBayesClassifier().fit(texts, labels, folds=make_folds(labels, 2))
    assert len(arm.held_rows_) == len(texts)
    assert np.allclose(arm.held_probabilities_.sum(axis=1), 1)
