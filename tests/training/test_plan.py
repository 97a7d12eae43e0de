"""The plan, and what is said when it cannot be kept."""

import pytest

from headstart.training.listener import Progress
from headstart.training.plan import Pace, Plan


def plan(seconds=60.0):
    return Plan(
        steps=100,
        evaluate_every=10,
        tokens=1,
        epochs=1.0,
        corpus_tokens=1,
        parameters=1,
        memory_bytes=1,
        peak_memory_bytes=1,
        threads=1,
        seconds_per_step=seconds / 100,
        seconds=seconds,
    )


def warnings(seconds_per_step):
    pace = Pace(plan())
    return [
        step
        for step in range(1, 101)
        if pace.is_off(Progress(100, step=step, seconds=step * seconds_per_step))
    ]


def test_a_training_as_fast_as_planned_says_nothing():
    assert warnings(0.6) == []


def test_a_training_half_as_fast_says_so_once():
    assert len(warnings(1.2)) == 1


def test_the_warning_names_both_times():
    pace = Pace(plan())
    pace.is_off(Progress(100, step=1, seconds=1.2))
    text = pace.warning(Progress(100, step=41, seconds=49.2))
    assert "2.0 minutes in all instead of 1.0" in text


@pytest.mark.parametrize("step", [1, 5])
def test_the_first_seconds_are_not_judged(step):
    pace = Pace(plan())
    assert not pace.is_off(Progress(100, step=step, seconds=step * 5.0))
