"""Trainings side by side: a worker always tells its parent how it ended."""

import multiprocessing

import pytest

from headstart.studies.arms import Ground
from headstart.studies.results import RunKey
from headstart.studies.workers import _hear, _work
from tests.studies.small_study import small_recipe


class StoppedByHand:
    """Rows that a person has no patience for."""

    @property
    def train(self):
        raise KeyboardInterrupt


def test_a_worker_stopped_by_hand_says_so(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    ground = Ground(folder=tmp_path, recipe=small_recipe(tmp_path), epochs={})
    ours.send(RunKey("tfidf", "", 20, 0))
    _work(theirs, StoppedByHand(), ground)
    with pytest.raises(KeyboardInterrupt):
        _hear(ours, print, print)
