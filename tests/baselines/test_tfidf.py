"""The TF-IDF arm learns from few rows, many classes and any script."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from headstart.baselines.tfidf import TfidfClassifier

GOOD = ["a fine film", "fine acting and a fine plot", "warm , funny , fine", "I loved this one"]
BAD = ["a dull film", "dull acting and a dull plot", "cold , boring , dull", "I hated this one"]


def fitted(texts=(*GOOD, *BAD), labels=("good",) * 4 + ("bad",) * 4, **options):
    return TfidfClassifier(**options).fit(texts, labels, validation=(texts, labels))


def test_it_learns_words():
    arm = fitted()
    assert list(arm.predict(["what a fine day", "what a dull day"])) == ["good", "bad"]
    assert list(arm.classes_) == ["bad", "good"]


def test_probabilities_sum_to_one_in_the_order_of_the_classes():
    probabilities = fitted().predict_proba(["fine", "dull", "neither", ""])
    assert probabilities.shape == (4, 2)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]


def test_characters_see_what_words_miss():
    assert list(fitted().predict(["finest", "dullness"])) == ["good", "bad"]


def test_it_learns_a_script_without_blanks():
    texts = ["這部電影很好看", "演技很好看", "這部電影很無聊", "演技很無聊"]
    arm = fitted(texts, [1, 1, 0, 0])
    assert list(arm.predict(["故事很好看", "故事很無聊"])) == [1, 0]


def test_texts_without_a_single_word_can_be_told_apart():
    arm = fitted([":-) !!", ":-) :-)", ":-( ...", ":-( :-("], [1, 1, 0, 0])
    assert list(arm.predict([":-)", ":-("])) == [1, 0]


def test_many_classes():
    names = [f"topic{number}" for number in range(30)]
    texts = [f"{name} {filler}" for name in names for filler in ("again", "once more", "now")]
    arm = fitted(texts, np.repeat(names, 3))
    assert arm.score([f"about {name}" for name in names], names) == 1


def test_the_same_rows_give_the_same_bits():
    one, other = fitted(), fitted()
    assert np.array_equal(one.regression_.coef_, other.regression_.coef_)


def test_no_more_features_than_allowed():
    assert fitted(max_features=10).regression_.coef_.shape == (1, 20)


def test_it_can_be_cloned_and_pickled():
    arm = fitted(strengths=(1, 2))
    again = pickle.loads(pickle.dumps(arm))
    assert np.array_equal(again.predict_proba(GOOD), arm.predict_proba(GOOD))
    assert clone(arm).strengths == (1, 2)


def test_asked_before_it_has_learned_it_says_so():
    with pytest.raises(NotFittedError):
        TfidfClassifier().predict(["fine"])
