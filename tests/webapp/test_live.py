"""A study while it runs, from its progress file."""

import json
import time

import pytest

from headstart.webapp.live import live_document

ARMS = ["scratch", "pretrained"]
PLAN = {
    "event": "plan", "trainings": 4, "seconds": 100.0, "pretrain_tokens": 10,
    "budgets": [20], "seeds": [0, 1], "arms": ARMS, "objectives": ["causal"], "metric": "accuracy",
}  # fmt: skip


def run(event, arm="scratch", seed=0, **more):
    names = {"event": event, "arm": arm, "objective": "causal", "labels": 20, "seed": seed}
    return {**names, "fold": 0, **more}


@pytest.fixture
def write(tmp_path):
    """Append events, with the seconds since an hour ago."""
    began = time.time() - 3600

    def lines(*events):
        with (tmp_path / "progress.jsonl").open("a") as file:
            for at, event in events:
                file.write(json.dumps({"time": began + at, **event}) + "\n")
        return tmp_path

    return lines


def live(folder, *, running=True):
    return live_document(folder, running=running)


def test_before_the_plan_there_is_nothing_to_draw(tmp_path):
    assert live(tmp_path) == {"stage": "reading the data", "trainings": None}


def test_the_curves_grow_with_the_epochs_and_an_epoch_counts_once(write):
    folder = write((0, PLAN), (1, run("epoch", epoch=1, value=0.5)))
    (first,) = live(folder)["figures"]
    write((50, PLAN), (51, run("epoch", epoch=1, value=0.5)))  # trained again after a stop
    assert live(folder)["figures"] == [first]
    write((52, run("epoch", "pretrained", seed=1, epoch=1, value=0.8)))
    (second,) = live(folder)["figures"]
    assert first["wide"] != second["wide"]
    assert "pretrained" in second["wide"]
    assert 'class="seeds"' in second["phone"]


def test_the_time_between_two_sessions_is_not_counted(write):
    folder = write((5, PLAN), (10, {"event": "stage", "name": "x"}))
    write((1005, PLAN), (1010, {"event": "stage", "name": "x"}))
    assert live(folder, running=False)["spent"] == pytest.approx(10.0)


def test_the_time_left_is_the_plans_then_the_studys_and_none_at_the_end(write):
    folder = write((3580, PLAN))
    assert live(folder)["seconds_left"] == pytest.approx(80, abs=5)
    write((3590, run("done", value=0.5, left=40.0)))
    assert live(folder)["seconds_left"] == pytest.approx(30, abs=5)
    assert live(folder, running=False)["seconds_left"] is None
    write(*((3591, run("done", arm, seed, value=0.5)) for arm in ARMS for seed in (0, 1)))
    write((3592, {"event": "finished"}))
    found = live(folder)
    assert (found["stage"], found["seconds_left"], found["finished"]) == ("finished", None, 4)


def test_pretraining_shows_its_loss(write):
    folder = write((0, PLAN), (1, {"event": "pretraining", "objective": "causal"}))
    base = folder / "bases" / "causal"
    base.mkdir(parents=True)
    steps = [{"step": n, "tokens": 100 * n, "seconds": n / 2, "loss": 9.0 / n} for n in (1, 2, 3)]
    (base / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    found = live(folder)
    assert found["stage"] == "pretraining, causal"
    assert "Pretraining, causal" in found["figures"][0]["caption"]


def test_a_job_without_a_value_is_not_a_training_and_a_cut_line_is_ignored(write):
    folder = write((0, PLAN), (5, run("done", seconds=4.0)))
    with (folder / "progress.jsonl").open("a") as file:
        file.write('{"time": 3, "event": "ep')
    assert live(folder)["finished"] == 0
