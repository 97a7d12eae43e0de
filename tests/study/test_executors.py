"""Executors: jobs in processes end with a result or with a reason."""

import os
import signal
import tempfile
import time
from concurrent.futures import wait
from pathlib import Path

import pytest

from headstart.config import StudyConfig
from headstart.errors import HeadstartError
from headstart.study.executors import (
    Executor,
    LocalExecutor,
    job_error,
    job_threads,
    make_executor,
    pack,
    parallel_jobs,
)
from headstart.study.jobs import local_inputs
from tests.study.small_study import run_config, small_config


def double(number, report):
    report("job", 1, 0.5)
    return 2 * number


class TwoArgumentsError(Exception):
    """Cannot be pickled and read again."""

    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")


def fail(how):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "odd":
        raise TwoArgumentsError("a bug", "of a library")
    raise ZeroDivisionError("a bug of ours")


def make_temporary_folder():
    return os.getpid(), Path(tempfile.mkdtemp())


@pytest.fixture
def local(tmp_path):
    executor = LocalExecutor(2, tmp_path / "temporary")
    yield executor
    executor.stop()


def test_a_job_in_this_process_reports_directly():
    events = []
    executor = Executor(lambda *event: events.append(event))
    assert executor.submit(double, 3, executor.report).result() == 6
    assert events == [("job", 1, 0.5)]


@pytest.mark.slow
def test_processes_return_results_and_report_through_a_queue(local):
    futures = [local.submit(double, number, local.report) for number in (1, 2)]
    assert [future.result() for future in futures] == [2, 4]
    events, began = [], time.monotonic()
    while len(events) < 2 and time.monotonic() - began < 30:
        events += local.events()
    assert events == [("job", 1, 0.5)] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("killed", HeadstartError, "may have run out of memory"),
        ("bug", ZeroDivisionError, "a bug of ours"),
        ("odd", RuntimeError, "a bug: of a library"),
    ],
)
def test_a_job_that_ends_badly_says_why(local, how, kind, words):
    future = local.submit(fail, how)
    wait([future])
    with pytest.raises(kind, match=words):
        raise job_error(future.exception())


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


def test_a_lack_of_memory_has_a_fix():
    assert "--jobs 1" in job_error(MemoryError()).fix


def test_threads_are_divided_among_jobs():
    config = StudyConfig.create(threads=6, jobs=2)
    assert (parallel_jobs(config), job_threads(config, 2)) == (2, 3)
    assert job_threads(config, 12) == 1
    cluster = StudyConfig.create(executor="slurm", cores=4)
    assert (parallel_jobs(cluster), job_threads(cluster, 16)) == (16, 4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cores": 2}, "--executor local has no use for --cores"),
        ({"executor": "ray", "partition": "p"}, "--executor ray has no use for --partition"),
    ],
)
def test_settings_of_another_executor_are_rejected(settings, words):
    with pytest.raises(HeadstartError, match=words):
        StudyConfig.create(**settings)


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_package_that_is_not_installed_is_named(name, package, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(HeadstartError, match=f"{package} is not installed"):
        make_executor(StudyConfig.create(executor=name), 2, tmp_path, print)


def test_inputs_are_the_same_in_an_archive(tmp_path):
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "tokenizer.json").write_text("{}")
    (tmp_path / "vectors").write_bytes(b"numbers")
    paths = {name: str(tmp_path / name) for name in ("tokenizer", "vectors")}
    with local_inputs(paths) as found:
        assert found == paths
    with local_inputs(pack(paths | {"again": paths["vectors"]})) as found:
        assert set(found) == {"tokenizer", "vectors", "again"}
        assert not set(found.values()) & set(paths.values())
        assert Path(found["tokenizer"], "tokenizer.json").read_text() == "{}"
        assert Path(found["again"]).read_bytes() == b"numbers"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "settings"),
    [
        ("ray", {"executor": "ray"}),
        ("submitit", {"executor": "slurm", "address": "local"}),
    ],
)
def test_a_study_on_a_cluster_has_the_numbers_of_one_here(tmp_path, package, settings):
    pytest.importorskip(package)
    config = small_config(tmp_path, arms=["tfidf", "scratch"], labels=["20"], corpus=None)
    here = run_config(config, tmp_path / "here")
    there = run_config(config.replace(**settings, jobs=2), tmp_path / "there")
    for job in here.trainings:
        assert (here.results[job].probabilities == there.results[job].probabilities).all()
    assert (tmp_path / "there" / "best" / "summary.json").is_file()
