"""What an arm costs and chose, from the facts of its trainings."""

from dataclasses import replace
from pathlib import Path

import pytest

from headstart.studies.costs import (
    choice_words,
    find_cost,
    minutes_words,
    read_facts,
    size_words,
)
from headstart.studies.outcomes import RunKey, training_file
from headstart.studies.recommendation import recommend
from headstart.studies.report.report_data import ReportData
from headstart.studies.words import dataset_name
from tests.studies.fake_study import Recipe, fake_study

PRETRAINING = 300.0  # seconds, of the made-up study


def made_up_facts(labels=1600, seeds=3):
    """A network of 24 MB and 4 ms per text, a TF-IDF of 0.6 MB and 0.1 ms, and a stack of both."""
    facts = {}
    for seed in range(seeds):
        facts[RunKey("tfidf", "", labels, seed)] = {
            "seconds": 2.0,
            "test_seconds": 0.08,
            "bytes": 600_000,
            "strength": 4.0,
        }
        facts[RunKey("pretrained", "causal", labels, seed)] = {
            "seconds": 60.0,
            "test_seconds": 3.2,
            "bytes": 24_000_000,
            "chosen": {"learning_rate": 0.001, "epochs": 4 + seed},
            "tries": 6,
        }
        facts[RunKey("stack", "causal", labels, seed)] = {
            "seconds": 0.1,
            "test_seconds": 0.0,
            "weights": {"tfidf": 0.4, "pretrained": 0.6},
        }
    return facts


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    skill = {"pretrained": (0.6, 0.2), "tfidf": (0.6, 0.2), "stack": (0.62, 0.2)}
    recipe = Recipe(skill=skill, test_rows=800, seed_noise=0.0, row_noise=0.05)
    return ReportData.read(fake_study(tmp_path_factory.mktemp("study"), recipe))


def test_a_network_costs_its_pretraining_too(data):
    found = find_cost(data.study, made_up_facts(), ("pretrained", "causal"), 1600)
    assert found.minutes == pytest.approx((60 + PRETRAINING) / 60)
    assert found.milliseconds == pytest.approx(4.0)


def test_a_stack_costs_what_it_joins(data):
    found = find_cost(data.study, made_up_facts(), ("stack", "causal"), 1600)
    assert found.bytes == 24_600_000
    assert found.minutes == pytest.approx((62.1 + PRETRAINING) / 60)


def test_what_was_not_measured_is_not_made_up(data):
    facts = {RunKey("tfidf", "", 1600, 0): {"seconds": 2.0}}
    found = find_cost(data.study, facts, ("tfidf", ""), 1600)
    assert (found.bytes, found.milliseconds) == (None, None)
    assert find_cost(data.study, {}, ("tfidf", ""), 1600).minutes is None


def test_a_training_that_cannot_be_read_is_no_reason_to_have_no_report(tmp_path):
    run = RunKey("tfidf", "", 1600, 0)
    place = training_file(tmp_path, run)
    place.parent.mkdir()
    place.write_bytes(b"no such thing")
    assert read_facts(tmp_path, [run, RunKey("tfidf", "", 1600, 1)]) == {}


def test_what_an_arm_chose_is_told_over_its_seeds():
    facts = made_up_facts()
    assert choice_words(facts, ("pretrained", "causal"), 1600) == "rate 0.001, 4–6 epochs, 6 tries"
    assert choice_words(facts, ("tfidf", ""), 1600) == "C 4"
    assert choice_words(facts, ("stack", "causal"), 1600) == ""


def test_an_arm_that_is_as_good_and_smaller_is_told_beside_the_one_to_take(data):
    study = type(data.study)(
        **{**vars(data.study), "best": {"arm": "stack", "objective": "causal"}}
    )
    same = [p for p in data.predictions if p.run.arm == "tfidf"]
    said = [*same, *(_copied(p, "stack", "causal") for p in same)]  # they say the same
    found = recommend(Path("mine"), study, data.analysis, [], said, made_up_facts())
    assert found.series == ("stack", "causal")
    assert found.sentences[0].startswith("Take stack: expect ")
    assert "24.6\u00a0MB" in found.sentences[0]
    assert found.sentences[1].startswith("TF-IDF is as good (0.0 points, −0.2 to 0.2) and 41 times")
    assert found.command == "headstart predict mine/best --input texts.csv"


def test_a_smaller_arm_that_is_clearly_behind_is_not_told(data):
    study = replace(data.study, best={"arm": "stack", "objective": "causal"})
    good = [p for p in data.predictions if p.run.arm == "stack"]
    bad = [replace(_copied(p, "tfidf", ""), predicted=1 - p.gold) for p in good]
    found = recommend(Path("mine"), study, data.analysis, [], [*good, *bad], made_up_facts())
    assert len(found.sentences) == 1


def _copied(said, arm, objective):
    return replace(said, run=RunKey(arm, objective, said.run.labels, said.run.seed))


def test_the_arm_to_take_is_not_chosen_by_its_test_accuracy(data):
    study = replace(data.study, best={"arm": "tfidf", "objective": ""})
    found = recommend(Path("mine"), study, data.analysis, [], data.predictions, {})
    assert found.series == ("tfidf", "")


def test_rows_that_chose_the_arm_and_report_on_it_are_said_to_do_both(data):
    study = replace(data.study, best={"arm": "tfidf", "objective": ""})
    for shared in (False, True):
        found = recommend(
            Path("mine"), replace(study, shared_test=shared), data.analysis, [], [], {}
        )
        assert ("chose it among the arms, too" in " ".join(found.sentences)) == shared


def test_sizes_and_times_are_told_in_fitting_units():
    assert size_words(24_600_100) == "24.6\u00a0MB"
    assert size_words(4_200) == "4\u00a0kB"
    assert minutes_words(0.05) == "3.0\u00a0s"


def test_a_study_is_called_by_its_file_and_folder(tmp_path):
    file = tmp_path / "tickets" / "train.csv"
    file.parent.mkdir()
    file.write_text("text,label\n")
    assert dataset_name([str(file)]) == "tickets/train.csv"
    assert dataset_name([str(file.parent)]) == "tickets"
    assert dataset_name([str(file), "more.csv"]) == "tickets/train.csv and 1 more"
