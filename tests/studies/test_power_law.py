"""The labels that an accuracy needs: right on clean curves, honest on others."""

import numpy as np
import pytest

from headstart.errors import HeadstartError
from headstart.studies.label_goals import labels_words, study_labels
from headstart.studies.power_law import FARTHEST, fit_power_laws, labels_needed
from tests.studies.fake_study import Recipe, fake_study

BUDGETS = (100, 400, 1600)


def table(accuracies, seeds=3, rows=2000):
    """(budgets, seeds, rows) with these accuracies, a hair apart between seeds."""
    lines = [
        [np.arange(rows) < round((accuracy + 0.002 * (seed - 1)) * rows) for seed in range(seeds)]
        for accuracy in accuracies
    ]
    return np.array(lines)


def law(labels, a=1.5, b=0.35, c=0.05):
    return 1 - a * labels**-b - c


def test_a_power_law_is_found_again_within_its_range():
    found = fit_power_laws(BUDGETS, table([law(n) for n in BUDGETS])).labels(law(800))
    assert found.low < 800 < found.high
    assert found.value == pytest.approx(800, rel=0.2)


def test_what_lies_outside_is_less_sure_than_what_lies_inside():
    laws = fit_power_laws(BUDGETS, table([law(n) for n in BUDGETS]))
    inside, outside = laws.accuracy(800), laws.accuracy(12800)
    assert outside.low < law(12800) < outside.high
    assert outside.high - outside.low > inside.high - inside.low


@pytest.mark.parametrize(
    ("budgets", "accuracies", "goal", "why"),
    [
        ((100, 400), (0.6, 0.7), 0.8, "at least 3"),
        (BUDGETS, (0.7, 0.6, 0.5), 0.8, "does not clearly rise"),
        (BUDGETS, (0.6, 0.7, 0.75), 0.99, "more than 16,000, if ever"),
        (BUDGETS, (0.8, 0.85, 0.9), 0.6, "fewer than 100, the fewest tried"),
    ],
)
def test_where_nothing_can_be_said_it_says_why(budgets, accuracies, goal, why):
    found = labels_needed(budgets, table(accuracies), goal)
    assert found.labels is None
    assert why in found.refusal


def test_one_seed_is_refused():
    assert "one seed" in labels_needed(BUDGETS, table([0.6, 0.7, 0.8], seeds=1), 0.75).refusal


def test_words_have_two_digits_that_count_and_no_number_beyond_what_is_answered():
    needed = labels_needed(BUDGETS, table([law(n) for n in BUDGETS]), law(6000))
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
        assert (one["labels"] is None) == bool(one["refusal"])
        assert one["labels"] is None or one["low"] <= one["labels"]
    shown = headstart("labels", tmp_path, "--target", 0.75).stdout
    assert "accuracy of 75 %" in shown
    assert "pretrained" in shown
