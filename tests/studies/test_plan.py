"""The plan: which trainings, how long, and what gives way to the minutes, in which order."""

import json
import re
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest

from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.studies.arms import find_arm
from headstart.studies.arms.arm import Amounts, Effort, Speed
from headstart.studies.plan import StudyPlan, dropout_share, estimate, find_epochs, fit_plan
from headstart.studies.plan_file import read_plan, write_plan
from headstart.studies.recipe import make_study_recipe
from headstart.studies.run import StudyRun
from headstart.tasks import find_task
from tests.studies.small_study import small_recipe

SPEED = Speed({"causal": 0.1}, trained_token=1e-4, read_token=3e-5)
AMOUNTS = Amounts(
    text_tokens=30, batch_size=16, validation_rows=800, test_rows=800, corpus_bytes=1_000_000
)
PLAN = StudyPlan(
    seeds=[0, 1, 2, 3],
    budgets=[100, 400],
    epochs={100: 15, 400: 10},
    pretrain_steps=500,
    jobs=2,
    threads=1,
    pretrain_threads=2,
)


def fitted(minutes, plan=PLAN):
    return fit_plan(make_study_recipe(minutes=minutes), plan, SPEED, AMOUNTS)


def test_without_minutes_nothing_is_cut():
    plan = fitted(None)
    assert (plan.seeds, plan.epochs, plan.pretrain_steps) == ([0, 1, 2, 3], PLAN.epochs, 500)
    assert plan.cuts == []
    assert plan.seconds == estimate(make_study_recipe(), PLAN, SPEED, AMOUNTS)


def test_tokens_that_are_left_out_need_no_time_to_be_learned_from():
    whole, fewer = (
        find_arm("scratch").seconds(
            400, Effort(5, tries=0), replace(AMOUNTS, dropout_share=share), SPEED
        )
        for share in (0.0, 0.35)
    )
    learning = 5 * 400 * AMOUNTS.text_tokens * SPEED.trained_token
    assert fewer == pytest.approx(whole - 0.35 * learning)


def of_length(words, task="classification"):
    """As much of a study's data as the share of its tokens depends on."""
    text = " ".join(["token"] * words)
    kind = find_task(task)
    texts = SimpleNamespace(
        whole_texts=kind.whole_texts,
        supports_windows=kind.supports_windows,
        texts=lambda part: [text],
    )
    return SimpleNamespace(task=texts, splits=SimpleNamespace(train=None))


@pytest.mark.parametrize(
    ("words", "task", "share"),
    [
        (20, "classification", 0.0),
        (500, "classification", 0.35),
        (500, "pairs", 0.0),  # not read in windows
        (500, "tagging", 0.0),  # every token has a target
    ],
)
def test_only_long_texts_that_are_read_in_windows_count_as_left_out(words, task, share):
    usual = FinetuneConfig.create(dataset=["none"])
    found = dropout_share(make_study_recipe(), usual, of_length(words, task))
    assert found == pytest.approx(share)


def test_the_choice_of_settings_gives_way_first_for_all_networks():
    plan = fitted((fitted(None).seconds - 1) / 60)
    assert (plan.tries, plan.seeds, plan.epochs) == (1, PLAN.seeds, PLAN.epochs)
    assert plan.cuts == ["every network takes the usual learning rate and epochs without a choice"]


def test_seeds_give_way_next_down_to_two():
    plan = fitted(0.6 * fitted(None).seconds / 60)
    assert 2 <= len(plan.seeds) < 4
    assert plan.pretrain_steps == PLAN.pretrain_steps


def test_pretraining_and_then_budgets_give_way_but_no_training_is_cut_short():
    plan = fitted(2.0)
    assert plan.seeds == [0, 1]
    assert plan.budgets == [100]
    assert plan.epochs == {100: PLAN.epochs[100]}
    assert PLAN.pretrain_steps / 4 <= plan.pretrain_steps
    assert plan.seconds <= 120
    assert "no trainings with 400 labels" in plan.cuts


def test_what_does_not_fit_is_said_with_what_would():
    with pytest.raises(HeadstartError, match="this study does not fit into") as error:
        fitted(0.1)
    minutes = float(re.search(r"--minutes (\d+)", error.value.fix)[1])
    assert fitted(minutes).seconds <= 60 * minutes


def test_one_seed_that_was_asked_for_stays_one():
    plan = fitted(3.0, StudyPlan(**{**vars(PLAN), "seeds": [0]}))
    assert plan.seeds == [0]


def test_few_labels_get_many_epochs_and_many_labels_few():
    usual = FinetuneConfig.create(dataset=["none"])
    epochs = [find_epochs(make_study_recipe(), n, usual) for n in (100, 400, 6400)]
    assert epochs == sorted(epochs, reverse=True)
    assert find_epochs(make_study_recipe(epochs=7), 6400, usual) == 7
    lab = FinetuneConfig.create(dataset=["none"], preset="lab")
    assert find_epochs(make_study_recipe(preset="lab"), 6400, lab) == 15


def test_runs_that_are_compared_stand_next_to_each_other():
    recipe = make_study_recipe(arms=["scratch", "pretrained"], objectives=["causal", "masked"])
    runs = PLAN.runs(recipe)
    assert len(runs) == 4 * 2 * 2 * 2
    assert [(run.arm, run.objective) for run in runs[:4]] == [
        ("scratch", "causal"),
        ("scratch", "masked"),
        ("pretrained", "causal"),
        ("pretrained", "masked"),
    ]


def test_a_plan_comes_back_from_the_disk_as_it_was(tmp_path):
    plan = fitted(4.0)
    write_plan(plan, tmp_path)
    assert read_plan(tmp_path) == plan


def test_with_all_labels_an_arm_that_the_seed_does_not_change_counts_once():
    recipe = make_study_recipe(arms=["tfidf"])
    some = estimate(recipe, PLAN, SPEED, AMOUNTS)
    everything = estimate(recipe, PLAN, SPEED, replace(AMOUNTS, train_rows=400))
    seconds = find_arm("tfidf").seconds(400, Effort(1), AMOUNTS, SPEED)
    assert some - everything == pytest.approx(3 * seconds)


def test_more_machines_save_time_until_every_training_has_its_own():
    recipe = make_study_recipe(arms=["tfidf", "scratch"])
    seconds = [
        estimate(recipe, replace(PLAN, jobs=jobs), SPEED, AMOUNTS) for jobs in (1, 2, 8, 100)
    ]
    assert seconds == sorted(seconds, reverse=True)
    alone = replace(PLAN, seeds=[0], budgets=[400], jobs=1)
    network = make_study_recipe(arms=["scratch"])
    quick = estimate(make_study_recipe(arms=["tfidf"]), PLAN, SPEED, AMOUNTS)
    waiting = estimate(network, replace(alone, seeds=[]), SPEED, AMOUNTS)
    assert seconds[-1] == pytest.approx(quick + estimate(network, alone, SPEED, AMOUNTS) - waiting)


def test_a_damaged_plan_is_named(tmp_path):
    (tmp_path / "plan.json").write_text("{", encoding="utf-8")
    with pytest.raises(HeadstartError, match="plan is damaged"):
        read_plan(tmp_path)


def test_a_plan_that_was_shown_is_the_plan_that_is_run(tmp_path):
    recipe = small_recipe(tmp_path, arms=["tfidf"], seeds=2)
    shown = StudyRun(recipe, tmp_path / "none").plan
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**asdict(shown), "seeds": [0], "seconds": 7.0, "trainings": 2}))
    assert StudyRun(recipe, tmp_path / "study", plan=path).plan == replace(
        shown, seeds=[0], seconds=7.0
    )


@pytest.mark.parametrize("change", [{"budgets": [7]}, {"seeds": [0, 1, 2]}, {"epochs": {}}])
def test_a_plan_for_another_study_is_refused(tmp_path, change):
    recipe = small_recipe(tmp_path, arms=["tfidf"], seeds=2)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**asdict(StudyRun(recipe, tmp_path / "none").plan), **change}))
    with pytest.raises(HeadstartError, match="made for other data"):
        StudyRun(recipe, tmp_path / "study", plan=path)
