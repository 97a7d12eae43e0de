"""Trying a classifier: its answer, and the text in pieces with what each of them did."""

import pytest

from headstart.errors import HeadstartError
from headstart.webapp.trying import LONGEST, Classifiers
from tests.baselines.saved import classifier_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("classifier") / "best"
    classifier_run("tfidf").save(place)
    return place


def test_a_text_is_answered_and_explained(folder):
    text = "the old cat chases the mouse ."
    found = Classifiers().answer(folder, [text])
    assert found["label"] == "animal"
    assert found["probability"] == max(found["probabilities"].values())
    pieces = found["explanation"]["pieces"]
    assert "".join(piece["text"] for piece in pieces) == text
    strongest = max((p for p in pieces if "share" in p), key=lambda piece: piece["share"])
    assert strongest["share"] == 1.0
    assert strongest["text"] in ("cat", "chases", "mouse")


def test_it_says_which_labels_it_knows(folder):
    found = Classifiers().about(folder)
    assert found == {"labels": ["animal", "person"], "texts": 1, "task": "classification"}


@pytest.mark.parametrize(
    ("text", "words"), [("  ", "no text"), ("x" * (LONGEST + 1), "longer than")]
)
def test_a_text_that_makes_no_sense_is_refused(folder, text, words):
    with pytest.raises(HeadstartError, match=words):
        Classifiers().answer(folder, [text])


def test_only_the_latest_classifiers_stay_in_memory(folder, tmp_path):
    asked = Classifiers()
    for number in range(4):
        place = tmp_path / str(number)
        classifier_run("tfidf").save(place)
        asked.about(place)
    assert list(asked._opened) == [tmp_path / "2", tmp_path / "3"]
    asked.forget(tmp_path / "3")
    assert list(asked._opened) == [tmp_path / "2"]
