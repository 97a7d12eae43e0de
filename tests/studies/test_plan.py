"""The plan: which trainings, how long, and what gives way to the minutes, in which order."""

from dataclasses import replace

import pytest

from headstart.errors import HeadstartError
from headstart.studies.arms import find_arm
from headstart.studies.arms.arm import Amounts, Speed
from headstart.studies.plan import (
    StudyPlan,
    estimate,
    find_epochs,
    fit_plan,
    read_plan,
    write_plan,
)
from headstart.studies.recipe import make_study_recipe
from headstart.training.recipe import make_recipe

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
    plan = fitted(0.0)
    assert (plan.seeds, plan.epochs, plan.pretrain_steps) == ([0, 1, 2, 3], PLAN.epochs, 500)
    assert plan.cuts == []
    assert plan.seconds == estimate(make_study_recipe(), PLAN, SPEED, AMOUNTS)


def test_seeds_give_way_first():
    whole = fitted(0.0).seconds
    plan = fitted((whole - 1) / 60)
    assert len(plan.seeds) == 3
    assert plan.epochs == PLAN.epochs
    assert plan.cuts == ["3 seeds instead of 4"]


def test_two_seeds_stay_and_epochs_give_way_next():
    two = fit_plan(
        make_study_recipe(), StudyPlan(**{**vars(PLAN), "seeds": [0, 1]}), SPEED, AMOUNTS
    )
    plan = fitted((two.seconds - 1) / 60)
    assert plan.seeds == [0, 1]
    assert plan.epochs[100] < 15
    assert plan.pretrain_steps == 500
    assert plan.seconds <= two.seconds - 1


def test_pretraining_gives_way_last_and_what_cannot_fit_is_said():
    plan = fitted(0.5)
    assert plan.epochs == {100: 1, 400: 1}
    assert plan.pretrain_steps < 500
    assert fitted(0.1).cuts[-1] == "even so it takes longer than 0.1 minutes"


def test_one_seed_that_was_asked_for_stays_one():
    plan = fitted(0.1, StudyPlan(**{**vars(PLAN), "seeds": [0]}))
    assert plan.seeds == [0]


def test_few_labels_get_many_epochs_and_many_labels_few():
    usual = make_recipe(dataset=["none"])
    epochs = [find_epochs(make_study_recipe(), n, usual) for n in (100, 400, 6400)]
    assert epochs == sorted(epochs, reverse=True)
    assert find_epochs(make_study_recipe(epochs=7), 6400, usual) == 7
    lab = make_recipe(dataset=["none"], preset="lab")
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
    plan = fitted(1.0)
    write_plan(plan, tmp_path)
    assert read_plan(tmp_path) == plan


def test_with_all_labels_an_arm_that_the_seed_does_not_change_counts_once():
    recipe = make_study_recipe(arms=["tfidf"])
    some = estimate(recipe, PLAN, SPEED, AMOUNTS)
    everything = estimate(recipe, PLAN, SPEED, replace(AMOUNTS, train_rows=400))
    seconds = find_arm("tfidf").seconds(400, 0, AMOUNTS, SPEED)
    assert some - everything == pytest.approx(3 * seconds / PLAN.jobs)


def test_a_damaged_plan_is_named(tmp_path):
    (tmp_path / "plan.json").write_text("{", encoding="utf-8")
    with pytest.raises(HeadstartError, match="plan is damaged"):
        read_plan(tmp_path)
