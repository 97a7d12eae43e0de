"""Trainings side by side: a worker always tells its parent how it ended."""

import multiprocessing

import pytest

from headstart.errors import HeadstartError
from headstart.studies.context import StudyContext
from headstart.studies.outcomes import RunKey
from headstart.studies.workers import _as_sent, _hear, _work, run_side_by_side
from tests.labelled import splits
from tests.studies.small_arms import Failing, registered
from tests.studies.small_study import small_recipe


@pytest.fixture
def study(tmp_path):
    with registered(Failing()) as arm:
        yield StudyContext(tmp_path, small_recipe(tmp_path), splits(), epochs={}, arms=(arm,))


def hear(study, labels):
    """What the parent hears of a worker that trains `failing`, in this process."""
    ours, theirs = multiprocessing.Pipe()
    ours.send(RunKey("failing", "", labels, 0))
    _work(theirs, study)
    _hear(ours, multiprocessing.current_process(), print, print)


def test_a_worker_stopped_by_hand_says_so(study):
    with pytest.raises(KeyboardInterrupt):
        hear(study, 1)


def test_a_bug_in_a_worker_is_told_as_what_it_is_with_its_place(study):
    with pytest.raises(ZeroDivisionError, match="a bug of ours") as caught:
        hear(study, 2)
    assert "small_arms.py" in "".join(caught.value.__notes__)


def test_an_error_that_cannot_be_sent_is_told_by_name():
    class LocalError(Exception):
        """Not importable, so not picklable."""

    sent = _as_sent(LocalError("odd"))
    assert (type(sent), str(sent)) == (RuntimeError, "LocalError: odd")


def test_a_lack_of_memory_is_told_with_what_to_do():
    sent = _as_sent(MemoryError())
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
        run_side_by_side(runs, study, jobs=2, on_epoch=print, on_done=print)
