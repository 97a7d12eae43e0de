"""Executors: every job ends with a result or an error."""

import os
import signal
import tempfile
import time
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from headstart.config import StudyConfig
from headstart.errors import HeadstartError
from headstart.study.executors import (
    LocalExecutor,
    make_executor,
    result_of,
)
from headstart.study.progress import StudyCallback
from tests.own_ray import own_ray
from tests.study.small_study import run_config, small_config


def double(number, report):
    report("job", 1, 0.5)
    return 2 * number


def fail(how):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ZeroDivisionError("a bug of ours")


def make_temporary_folder():
    return os.getpid(), Path(tempfile.mkdtemp())


@pytest.fixture
def local(tmp_path):
    executor = LocalExecutor(2, tmp_path / "temporary")
    yield executor
    executor.stop()


@pytest.mark.slow
def test_processes_return_results_and_report_through_a_queue(local):
    futures = [local.submit(double, number, local.report) for number in (1, 2)]
    assert [future.result() for future in futures] == [2, 4]
    assert local.events() == [("job", 1, 0.5)] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("killed", HeadstartError, "may have run out of memory"),
        ("bug", ZeroDivisionError, "a bug of ours"),
    ],
)
def test_a_job_that_ends_badly_says_why(local, how, kind, words):
    future = local.submit(fail, how)
    wait([future])
    with pytest.raises(kind, match=words):
        result_of(future)


@pytest.mark.slow
def test_stopping_ends_processes_that_still_work_and_removes_their_temporary_files(local, tmp_path):
    number, place = local.submit(make_temporary_folder).result()
    assert place.is_dir()
    assert place.is_relative_to(tmp_path)
    local.submit(time.sleep, 1000)
    local.stop()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.parametrize(
    ("name", "package"), [("ray", "ray"), ("dask", "distributed"), ("slurm", "submitit")]
)
def test_a_package_that_is_not_installed_is_named(name, package, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(HeadstartError, match=f"{package} is not installed"):
        make_executor(StudyConfig.create(executor=name), 2, tmp_path, print)


class Once(StudyCallback):
    """Call a function when the first job is done."""

    def __init__(self, function):
        self.function, self.called = function, False

    def on_job(self, job, event, epoch=None, value=None):
        if event == "done" and not self.called:
            self.called = True
            self.function()


def cluster_config(folder, **changes):
    return small_config(folder, arms=["tfidf", "pretrained"], labels=["20"], **changes)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A study in this process, which those on clusters must equal."""
    folder = tmp_path_factory.mktemp("here")
    return run_config(cluster_config(folder), folder / "out")


def assert_same(there, here):
    assert there.trainings == here.trainings
    for job in here.trainings:
        assert (here.results[job].predictions == there.results[job].predictions).all(), job
    assert (there.folder / "best" / "summary.json").is_file()
    assert not (there.folder / "temporary").exists()


def kill_processes(word):
    """Kill the processes below this one whose command holds a word, once there are some."""
    found = []
    while not found:
        every = psutil.Process().children(recursive=True)
        found = [one for one in every if word in " ".join(one.cmdline())]
    for one in found:
        with suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.mark.slow
def test_ray_loses_a_node_and_the_results_are_the_same(tmp_path, here):
    utils = pytest.importorskip("ray.cluster_utils")
    with own_ray():
        checks = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1_000}
        head = {"num_cpus": 1, "_system_config": checks}  # by default it takes half a minute
        cluster = utils.Cluster(initialize_head=True, head_node_args=head)
        try:
            nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
            once = Once(lambda: cluster.remove_node(nodes[0], allow_graceful=False))
            config = cluster_config(tmp_path, executor="ray", jobs=3, address=cluster.address)
            assert_same(run_config(config, tmp_path / "out", once), here)
            assert once.called
        finally:
            cluster.shutdown()


@pytest.mark.slow
def test_dask_loses_all_its_workers_and_the_results_are_the_same(tmp_path, here):
    pytest.importorskip("distributed")
    once = Once(lambda: kill_processes("spawn_main"))
    config = cluster_config(tmp_path, executor="dask", jobs=2)
    assert_same(run_config(config, tmp_path / "out", once), here)
    assert once.called


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package"), [("ray", "ray"), ("dask", "distributed"), ("slurm", "submitit")]
)
def test_a_wrong_address_is_one_message(tmp_path, name, package):
    pytest.importorskip(package)
    config = cluster_config(tmp_path, executor=name, address="127.0.0.1:1")
    with own_ray(), pytest.raises(HeadstartError, match=r"refused|Timed out|know any") as raised:
        make_executor(config, 2, tmp_path, print)
    assert "--address" in raised.value.fix


def test_a_job_that_slurm_rejects_is_one_message(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    for name in ("sbatch", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    executor = make_executor(StudyConfig.create(executor="slurm"), 2, tmp_path / "out", print)
    with pytest.raises(HeadstartError, match="invalid partition") as raised:
        executor.submit(double, 1, print)
    assert "--partition" in raised.value.fix


@pytest.mark.slow
def test_a_study_on_slurm_has_the_same_results(tmp_path, here):
    pytest.importorskip("submitit")
    config = cluster_config(tmp_path, executor="slurm", address="local", jobs=2)
    assert_same(run_config(config, tmp_path / "out"), here)
