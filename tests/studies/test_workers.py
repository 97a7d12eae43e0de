"""Trainings side by side on this machine: a worker always tells its parent how it ended."""

import multiprocessing

import pytest

from headstart.errors import HeadstartError
from headstart.studies.context import StudyContext
from headstart.studies.executors import find_executor
from headstart.studies.executors.attempt import as_sent
from headstart.studies.executors.local import LocalSession, work
from headstart.studies.outcomes import RunKey
from tests.labelled import splits
from tests.studies.small_arms import Failing, registered
from tests.studies.small_study import small_recipe
from tests.studies.test_executors import run_with


@pytest.fixture
def study(tmp_path):
    with registered(Failing()) as arm:
        yield StudyContext(tmp_path, small_recipe(tmp_path), splits(), epochs={}, arms=(arm,))


def hear(study, labels):
    """What the parent hears of a worker that trains `failing`, in this process."""
    session, run = LocalSession(study), RunKey("failing", "", labels, 0)
    ours, theirs = multiprocessing.Pipe()
    session._workers[ours], session._busy[ours] = multiprocessing.current_process(), run
    ours.send(run)
    work(theirs, study)
    assert next(iter(session.events())).kind == "start"
    return next(iter(session.events())).error


def test_a_worker_stopped_by_hand_says_so(study):
    assert isinstance(hear(study, 1), KeyboardInterrupt)


def test_a_bug_in_a_worker_is_told_as_what_it_is_with_its_place(study):
    error = hear(study, 2)
    assert isinstance(error, ZeroDivisionError)
    assert "small_arms.py" in "".join(error.__notes__)


def test_a_worker_that_ended_while_it_waited_keeps_nobody_from_closing(study):
    session = LocalSession(study)
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    ours, theirs = multiprocessing.Pipe()
    theirs.close()
    session._workers[ours] = process
    session.close()
    assert not session._workers


def test_an_error_that_cannot_be_sent_is_told_by_name():
    class LocalError(Exception):
        """Not importable, so not picklable."""

    sent = as_sent(LocalError("odd"))
    assert (type(sent), str(sent)) == (RuntimeError, "LocalError: odd")


def test_a_lack_of_memory_is_told_with_what_to_do():
    sent = as_sent(MemoryError())
    assert isinstance(sent, HeadstartError)
    assert "--jobs 1" in sent.fix


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "kind", "words"),
    [(9, HeadstartError, "may have run out of memory"), (2, ZeroDivisionError, "a bug of ours")],
    ids=["killed", "bug"],
)
def test_processes_know_arms_that_were_registered_here_and_tell_their_end(
    study, labels, kind, words
):
    runs = [RunKey("failing", "", labels, seed) for seed in range(2)]
    with pytest.raises(kind, match=words):
        run_with(find_executor("local"), runs, study, jobs=2)
