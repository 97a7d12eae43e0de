"""The plan: jobs, time, and the order of reductions for `--minutes`."""

import json
import re
from dataclasses import asdict, replace
from functools import partial

import pytest

from headstart.config import StudyConfig
from headstart.errors import HeadstartError
from headstart.study.plan import (
    Job,
    Plan,
    fit_plan,
    seconds_left,
    study_seconds,
)
from headstart.study.study import plan_study
from tests.study.small_study import small_config

SPEED = {"row_seconds": {"": 3e-3}, "token_seconds": 1e-4, "row_bytes": 120, "corpus_bytes": 10**6}
PLAN = Plan(
    seeds=[0, 1, 2, 3],
    budgets=[100, 400],
    pretrain_tokens=500_000,
    jobs=2,
    threads=1,
    pretrain_threads=2,
    precision="fp32",
    all_labels=1000,
)


def fitted(minutes):
    config = StudyConfig.create(minutes=minutes)
    return fit_plan(config, PLAN, partial(study_seconds, config, **SPEED))


def test_choices_seeds_pretraining_and_budgets_give_way_in_this_order():
    whole = fitted(None).seconds / 60
    first, second, last = (fitted(minutes) for minutes in (0.99 * whole, 0.6 * whole, 1.2))
    assert (first.tries, first.seeds, first.budgets) == (1, PLAN.seeds, PLAN.budgets)
    assert len(first.cuts) == 1
    assert 2 <= len(second.seeds) < 4
    assert second.pretrain_tokens == PLAN.pretrain_tokens
    assert (last.seeds, last.budgets) == ([0, 1], [100])
    assert PLAN.pretrain_tokens / 4 <= last.pretrain_tokens
    assert last.seconds <= 72
    assert "no trainings with 400 labels" in last.cuts


def test_the_precision_is_chosen_once_and_clusters_use_fp32(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "headstart.study.plan.choose_precision", lambda device: {"precision": "bf16"}
    )
    config = small_config(tmp_path, precision=None, arms=["scratch"], labels=["20"], seeds=1)
    folder = tmp_path / "study"
    assert plan_study(config, folder).plan.precision == "bf16"
    cluster = config.replace(executor="slurm", address="local")
    assert plan_study(cluster, folder).plan.precision == "fp32"


def test_what_does_not_fit_is_an_error_with_minutes_that_do():
    with pytest.raises(HeadstartError) as error:
        fitted(0.1)
    assert error.value.code == "does-not-fit"
    minutes = float(re.search(r"--minutes (\d+)", error.value.fix)[1])
    assert f"about {minutes:.0f} min" in error.value.what
    assert fitted(minutes).seconds <= 60 * minutes


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
