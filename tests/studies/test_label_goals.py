"""The labels that every arm of a study needs, as words and as a command."""

import numpy as np
import pytest

from headstart.errors import HeadstartError
from headstart.studies.label_goals import labels_words, study_labels
from headstart.study.labels_needed import FARTHEST, labels_needed
from tests.studies.fake_study import Recipe, fake_study

BUDGETS = (100, 400, 1600)


def test_words_have_two_digits_that_count_and_no_number_beyond_what_is_answered():
    errors = 1.5 * np.array(BUDGETS) ** -0.35 + 0.05
    rows = np.arange(2000)
    table = np.array([[rows >= 2000 * error + seed for seed in range(3)] for error in errors])
    needed = labels_needed(BUDGETS, table.astype(float), 0.87)
    words = labels_words(needed, BUDGETS[-1])
    assert words.startswith("about ")
    assert labels_words(needed, 10).endswith(f"more than {FARTHEST * 10:.0f})")


def test_a_goal_that_is_no_share_says_how_to_write_it(tmp_path):
    with pytest.raises(HeadstartError, match="cannot be a goal"):
        study_labels(tmp_path, [85.0])


def test_headstart_labels_answers_for_every_arm(headstart, headstart_json, tmp_path):
    fake_study(tmp_path, Recipe(test_rows=300))
    document = headstart_json("labels", tmp_path, "--target", 0.75)
    assert document["budgets"] == [100, 400, 1600]
    assert {one["arm"] for one in document["arms"]} >= {"scratch", "counted", "pretrained"}
    for one in document["arms"]:
        assert (one["labels"] is None) == bool(one["reason"])
        assert one["labels"] is None or one["low"] <= one["labels"]
    shown = headstart("labels", tmp_path, "--target", 0.75).stdout
    assert "accuracy of 75 %" in shown
    assert "pretrained" in shown
