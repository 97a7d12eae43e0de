"""The plan: which jobs, how long, and what gives way to the minutes, in which order."""

import json
import re
from dataclasses import asdict, replace

import pytest

from headstart.config import StudyConfig
from headstart.errors import HeadstartError
from headstart.study.plan import (
    Job,
    Plan,
    Speed,
    find_epochs,
    fit_plan,
    job_seconds,
    seconds_left,
)
from headstart.study.study import plan_study
from tests.study.small_study import small_config

SPEED = Speed({"": 3e-3}, {"causal": 0.1}, row_bytes=120, corpus_bytes=1_000_000)
PLAN = Plan(
    seeds=[0, 1, 2, 3],
    budgets=[100, 400],
    pretrain_steps=500,
    jobs=2,
    threads=1,
    pretrain_threads=2,
    precision="fp32",
    all_labels=1000,
)


def fitted(minutes, plan=PLAN):
    return fit_plan(StudyConfig.create(minutes=minutes), plan, SPEED)


def test_the_precision_is_chosen_once_and_clusters_use_fp32(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "headstart.study.plan.choose_precision", lambda device: {"precision": "bf16"}
    )
    config = small_config(tmp_path, precision=None, arms=["scratch"], labels=["20"], seeds=1)
    folder = tmp_path / "study"
    assert plan_study(config, folder).plan.precision == "bf16"
    cluster = config.replace(executor="slurm", address="local")
    assert plan_study(cluster, folder).plan.precision == "fp32"


def test_the_choice_of_settings_gives_way_first_for_all_networks():
    plan = fitted((fitted(None).seconds - 1) / 60)
    assert (plan.tries, plan.seeds, plan.budgets) == (1, PLAN.seeds, PLAN.budgets)
    assert plan.cuts == ["every network takes the usual learning rate and epochs without a choice"]


def test_seeds_give_way_next_down_to_two():
    plan = fitted(0.6 * fitted(None).seconds / 60)
    assert 2 <= len(plan.seeds) < 4
    assert plan.pretrain_steps == PLAN.pretrain_steps


def test_pretraining_and_then_budgets_give_way_but_no_training_is_cut_short():
    plan = fitted(1.2)
    assert plan.seeds == [0, 1]
    assert plan.budgets == [100]
    assert PLAN.pretrain_steps / 4 <= plan.pretrain_steps
    assert plan.seconds <= 72
    assert "no trainings with 400 labels" in plan.cuts


def test_what_does_not_fit_is_an_error_with_minutes_that_do():
    with pytest.raises(HeadstartError, match="this study does not fit into") as error:
        fitted(0.1)
    minutes = float(re.search(r"--minutes (\d+)", error.value.fix)[1])
    assert fitted(minutes).seconds <= 60 * minutes


def test_few_labels_get_many_epochs_and_many_labels_few():
    epochs = [find_epochs(StudyConfig.create(), n) for n in (100, 400, 6400)]
    assert epochs == sorted(epochs, reverse=True)
    assert find_epochs(StudyConfig.create(epochs=7), 6400) == 7
    assert find_epochs(StudyConfig.create(preset="lab"), 6400) == 15


def test_trainings_that_are_compared_run_next_to_each_other():
    config = StudyConfig.create(arms=["scratch", "pretrained"], objectives=["causal", "masked"])
    jobs = PLAN.trainings(config)
    assert len(jobs) == 4 * 2 * 2 * 2
    assert [(job.arm, job.objective) for job in jobs[:4]] == [
        ("scratch", "causal"),
        ("scratch", "masked"),
        ("pretrained", "causal"),
        ("pretrained", "masked"),
    ]


def test_with_all_labels_each_base_has_one_selection():
    config = StudyConfig.create(arms=["pretrained"], seeds=4, bases=2)
    plan = replace(PLAN, all_labels=400)
    selections = [job for job in plan.all_jobs(config) if job.select]
    assert selections == [Job("pretrained", "causal", 400, seed, select=True) for seed in (0, 1)]
    assert plan.needed(Job("pretrained", "causal", 400, 3), config) == selections[1:]
    assert plan.needed(Job("pretrained", "causal", 100, 3), config) == []
    (_, last) = (
        job_seconds(Job("pretrained", "causal", n, 3), config, plan, SPEED) for n in (100, 400)
    )
    alone = job_seconds(Job("pretrained", "causal", 400, 3), config, PLAN, SPEED)
    assert last < alone


def test_the_time_left_comes_from_finished_jobs_of_the_same_kind():
    jobs = [Job("scratch", "causal", labels, seed) for labels in (100, 400) for seed in (0, 1)]
    jobs.append(Job("pretrained", "causal", 400, 0))
    assert seconds_left(jobs, {}, parallel=2) is None
    done = {jobs[0]: 10.0}
    assert seconds_left(jobs, done, parallel=1) == 10 + 40 + 40 + 40
    done[jobs[2]] = 30.0
    assert seconds_left(jobs, done, parallel=2) == (10 + 30 + 400 * 40 / 500) / 2


def test_a_plan_that_was_shown_is_the_plan_that_is_run(tmp_path):
    config = small_config(tmp_path, arms=["tfidf"])
    shown = plan_study(config, tmp_path / "none").plan
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**asdict(shown), "seeds": [0], "seconds": 7.0, "trainings": 2}))
    planned = plan_study(config, tmp_path / "study", plan=path).plan
    assert planned == replace(shown, seeds=[0], seconds=7.0)


@pytest.mark.parametrize("change", [{"budgets": [7]}, {"folds": 3}])
def test_a_plan_for_another_study_is_rejected(tmp_path, change):
    config = small_config(tmp_path, arms=["tfidf"])
    path = tmp_path / "plan.json"
    shown = plan_study(config, tmp_path / "none").plan
    path.write_text(json.dumps({**asdict(shown), **change}))
    with pytest.raises(HeadstartError, match="made for other data"):
        plan_study(config, tmp_path / "study", plan=path)


def test_the_first_estimate_times_steps_of_the_networks_themselves(tmp_path):
    config = small_config(tmp_path, arms=["tfidf", "scratch", "pretrained"])
    plan = plan_study(config, tmp_path / "none").plan
    linear = plan_study(config.replace(arms=["tfidf"]), tmp_path / "none").plan
    assert plan.seconds > linear.seconds > 0
    assert not (tmp_path / "none").exists()
