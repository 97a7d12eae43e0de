"""Real engines: a machine or a job is killed on the way, and the results are the same."""

import signal

import psutil
import pytest

from headstart.studies.executors import slurm
from headstart.studies.outcomes import is_finished
from headstart.studies.run import StudyListener, StudyRun
from tests.own_ray import own_ray
from tests.studies.small_study import small_recipe
from tests.studies.test_executors import results

pytestmark = pytest.mark.slow

EPOCHS = 40  # long enough to be killed on the way


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def whole(data):
    """The study on this machine, one training after another."""
    study = StudyRun(recipe(data, jobs=1), data / "whole")
    study.run()
    return results(study.folder, study.runs)


def recipe(data, **changes):
    settings = {"arms": ["scratch"], "labels": ["20"], "seeds": 3, "epochs": EPOCHS}
    return small_recipe(data, **settings | {"selection": "validation"} | changes)


class Watch:
    """Keeps where trainings ran, and does something at one of the first epochs."""

    def __init__(self, act):
        self.act, self.places, self.acted = act, {}, []

    def listener(self):
        return StudyListener(on_start=self.on_start, on_epoch=self.on_epoch)

    def on_start(self, run, node):
        self.places.setdefault(run, []).append(node)

    def on_epoch(self, run, epoch, value):
        if not self.acted and self.act(run, self.places[run][-1]):
            self.acted.append(run)


@pytest.fixture(scope="module")
def cluster():
    """Three machines of one core each, as far as Ray can tell."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 80_000_000}
    head = {**small, "include_dashboard": False, "node_name": "first"}
    with own_ray():
        made = Cluster(initialize_head=True, head_node_args=head)
        nodes = {name: made.add_node(**small, node_name=name) for name in ("second", "third")}
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made, nodes
        ray.shutdown()
        made.shutdown()


def test_ray_runs_the_trainings_of_a_lost_machine_again(data, whole, cluster, tmp_path):
    made, nodes = cluster

    def kill(run, node):
        if node not in nodes:
            return False
        made.remove_node(nodes.pop(node), allow_graceful=False)
        return True

    watch = Watch(kill)
    given = recipe(data, executor="ray", cores=1)
    study = StudyRun(given, tmp_path / "study", listener=watch.listener())
    assert study.plan.jobs == 3
    study.run()
    assert results(study.folder, study.runs) == whole
    (lost,) = watch.acted
    assert len(watch.places[lost]) == 2  # it began anew, on another machine
    assert set(watch.places[lost]) <= {"first", "second", "third"}


def test_ray_brings_results_back_and_a_stopped_study_goes_on_here(
    data, whole, cluster, tmp_path, monkeypatch
):
    """No machine sees the study's folder; after the first result the user stops the study."""
    module = "headstart.studies.executors.ray"
    monkeypatch.setattr(f"{module}.write_marker", lambda folder: "another folder's")
    monkeypatch.setattr(f"{module}._may_be_elsewhere", lambda address: True)

    def stop(run):
        raise KeyboardInterrupt

    given = recipe(data, executor="ray", cores=1)
    study = StudyRun(given, tmp_path / "study", listener=StudyListener(on_done=stop))
    with pytest.raises(KeyboardInterrupt):
        study.run()
    assert sum(is_finished(study.folder, run) for run in study.runs) == 1
    again = StudyRun(recipe(data, jobs=1), tmp_path / "study")
    again.run()
    assert results(again.folder, again.runs) == whole


def test_a_job_of_submitit_that_is_killed_and_then_preempted_runs_again(data, whole, tmp_path):
    pytest.importorskip("submitit")
    signals = [signal.SIGKILL, signal.SIGUSR2]  # the second announces the time limit
    hit = set()

    def send(run, node):
        for job in psutil.Process().children():
            if job.pid not in hit and any("submitit" in word for word in job.cmdline()):
                hit.add(job.pid)
                job.children()[0].send_signal(signals.pop(0))
        return not signals

    watch = Watch(send)
    given = recipe(data, executor="slurm", address=slurm.LOCAL, cores=1, seeds=1)
    study = StudyRun(given, tmp_path / "study", listener=watch.listener())
    study.run()
    (run,) = study.runs
    assert results(study.folder, [run]) == {run: whole[run]}
    assert len(watch.places[run]) == 3
