"""Settings of executors: refused where they have no use, named when missing, and passed on."""

import json
import sys

import pytest

from headstart.errors import HeadstartError
from headstart.studies.context import StudyContext, ignore
from headstart.studies.executors import find_executor, slurm
from headstart.studies.executors.protocol import run_trainings
from headstart.studies.executors.ray import _lost, connect
from headstart.studies.outcomes import RunKey
from headstart.studies.plan import StudyPlan
from headstart.studies.plan_file import adapt_plan
from headstart.studies.recipe import make_study_recipe
from tests.labelled import splits
from tests.studies.small_study import small_recipe

RUN = RunKey("tfidf", "", 20, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"executor": "rya"}, "executor is 'rya'; choose local, ray, slurm"),
        ({"memory": 2.0, "gpus": 1}, "local has no use for --memory, --gpus"),
        ({"executor": "ray", "partition": "long"}, "ray has no use for --partition"),
        ({"executor": "slurm", "address": "host:1"}, "--address of slurm is local"),
        ({"jobs": 600}, "on one machine it must be 512 or less"),
    ],
)
def test_a_setting_that_an_executor_has_no_use_for_is_refused(given, words):
    with pytest.raises(HeadstartError, match=words):
        make_study_recipe(**given)


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_missing_extra_is_named(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    recipe = make_study_recipe(executor=name)
    with pytest.raises(HeadstartError, match="is not installed") as caught:
        find_executor(name).at_once(recipe, recipe.resources())
    assert caught.value.fix == f"pip install 'headstart[{name}]'"


def test_without_an_address_ray_is_started_here_beside_any_other(monkeypatch):
    ray, given = pytest.importorskip("ray"), {}
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **settings: given.update(settings))
    connect("")
    assert given["address"] == "local"


def test_a_task_that_could_not_run_is_told_in_its_own_words():
    exceptions = pytest.importorskip("ray.exceptions")
    error = exceptions.RayTaskError("train_in_task", "a traceback", OSError("the disk is full"))
    told = _lost(RUN, error.as_instanceof_cause())
    assert str(told).startswith("the training tfidf, 20 labels, seed 0 came to nothing on Ray: the")
    assert "the disk is full" in str(told)


def test_a_plan_made_elsewhere_runs_as_many_trainings_as_fit_here():
    plan = StudyPlan([0], [20], {20: 1}, 0, jobs=90, threads=3, pretrain_threads=4, executor="ray")
    here = adapt_plan(plan, make_study_recipe(threads=2))
    assert (here.jobs, here.threads) == (2, 3)  # the threads decide the bits
    assert adapt_plan(plan, make_study_recipe(jobs=5)).jobs == 5


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Commands with Slurm's names: every job is number 7, and in the state that `state` holds."""
    submitit = pytest.importorskip("submitit")
    monkeypatch.setattr(submitit.SlurmJob, "watcher", type(submitit.SlurmJob.watcher)())
    for name, text in {
        "sbatch": "cat $1 >> $HOME/scripts; echo Submitted batch job 7",
        "sacct": "echo 'JobID|State|NodeList'; echo \"7|$(cat $HOME/state)|\"",
        "scancel": "echo $1 >> $HOME/cancelled",
        "srun": "exit 1",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PAUSE", "GRACE", "STATE_SECONDS", "PATIENCE", "PREEMPTED_SECONDS"):
        monkeypatch.setattr(slurm, name, 0.0)
    return tmp_path


def run_on(cluster, **changes):
    """One training on that cluster."""
    recipe = small_recipe(cluster, executor="slurm", **changes)
    executor = find_executor("slurm")
    assert executor.at_once(recipe, recipe.resources()) == slurm.JOBS
    study = StudyContext(cluster / "study", recipe, splits(), epochs={})
    heard = {"on_start": stop, "on_epoch": ignore, "on_done": ignore}
    run_trainings(executor, [RUN], study, recipe.resources(), jobs=1, **heard)


def stop(run, node):
    raise KeyboardInterrupt


@pytest.mark.parametrize("state", ["FAILED", "PREEMPTED"])
def test_slurm_is_asked_for_what_was_given_and_again_for_a_job_that_is_lost(cluster, state):
    (cluster / "state").write_text(state)
    wanted = {"cores": 2, "memory": 3.0, "gpus": 1, "partition": "long", "time_limit": 30}
    with pytest.raises(HeadstartError, match=rf"the job 7 of tfidf, 20 labels.*{state}"):
        run_on(cluster, **wanted)
    asked = (cluster / "scripts").read_text().splitlines()
    assert asked.count("#SBATCH --partition=long") == 1 + find_executor("slurm").retries
    for line in ("--cpus-per-task=2", "--mem=3GB", "--gpus-per-node=1", "--time=30"):
        assert f"#SBATCH {line}" in asked
    assert json.loads((cluster / "study" / "executor" / "jobs.json").read_text()) == []


def test_a_study_that_is_stopped_cancels_its_jobs(cluster, monkeypatch):
    (cluster / "state").write_text("RUNNING")
    report = slurm.report_file(cluster / "study" / "executor", RUN)
    submit = slurm.SlurmSession.submit

    def submit_and_start(session, run):
        submit(session, run)
        report.write_text('{"kind": "start", "node": "far"}\n')

    monkeypatch.setattr(slurm.SlurmSession, "submit", submit_and_start)
    with pytest.raises(KeyboardInterrupt):
        run_on(cluster)
    assert (cluster / "cancelled").read_text() == "7\n"


def test_the_jobs_of_a_study_that_was_killed_are_cancelled_by_the_next(cluster):
    (cluster / "state").write_text("FAILED")
    folder = cluster / "study" / "executor"
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_text('["5", "6"]')
    with pytest.raises(HeadstartError):
        run_on(cluster)
    assert (cluster / "cancelled").read_text().split()[:2] == ["5", "6"]


def test_a_job_that_slurm_refuses_is_told_in_its_words(cluster):
    (cluster / "sbatch").write_text("#!/bin/sh\necho invalid partition: x >&2; exit 1\n")
    with pytest.raises(HeadstartError, match=r"Slurm does not take the job: .*invalid partition"):
        run_on(cluster, partition="x")


def test_without_slurm_the_command_that_is_missing_is_named(monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", "/nowhere")
    recipe = make_study_recipe(executor="slurm")
    with pytest.raises(HeadstartError, match="there is no sbatch here"):
        find_executor("slurm").at_once(recipe, recipe.resources())
