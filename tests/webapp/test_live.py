"""A study while it runs, from its progress file."""

import json
import time

import pytest

from headstart.webapp.live import live_document

ARMS = ["scratch", "pretrained"]
PLAN = {
    "event": "plan", "trainings": 4, "seconds": 100.0, "pretrain_steps": 10,
    "budgets": [20], "seeds": [0, 1], "arms": ARMS, "objectives": ["causal"], "metric": "accuracy",
}  # fmt: skip
REPORT = {"event": "stage", "name": "computing intervals and writing the report"}


def run(arm, seed, **more):
    names = {"arm": arm, "objective": "causal", "labels": 20, "seed": seed}
    return {**names, "fold": 0, **more}


def done(arm, seed, **more):
    return {"event": "done", **run(arm, seed, seconds=1.0, value=0.5, **more)}


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
    assert live(tmp_path)["plan"] is None


def test_the_curves_grow_with_the_epochs(write):
    epoch = {"event": "epoch", **run("scratch", 0)}
    folder = write((0, PLAN), (1, {**epoch, "epoch": 1, "value": 0.5}))
    (first,) = live(folder)["figures"]
    write((2, {**epoch, "epoch": 2, "value": 0.6}))
    write((3, {"event": "epoch", **run("pretrained", 1), "epoch": 1, "value": 0.8}))
    (second,) = live(folder)["figures"]
    assert first["wide"] != second["wide"]
    assert "pretrained" in second["wide"]
    assert 'class="seeds"' in second["phone"]


def test_an_epoch_that_is_trained_again_after_a_stop_counts_once(write):
    epoch = {"event": "epoch", **run("scratch", 0), "epoch": 1}
    folder = write((0, PLAN), (1, {**epoch, "value": 0.7}))
    once = live(folder)["figures"]
    write((50, PLAN), (51, {**epoch, "value": 0.7}))
    assert live(folder)["figures"] == once


def test_the_time_between_two_sessions_is_not_counted(write):
    folder = write((5, PLAN), (10, {"event": "stage", "name": "x"}))
    write((1005, PLAN), (1010, {"event": "stage", "name": "x"}))
    assert live(folder, running=False)["spent"] == pytest.approx(10.0)


def test_the_time_left_is_the_plans_and_then_that_of_the_study(write):
    folder = write((3590, PLAN))
    assert live(folder)["seconds_left"] == pytest.approx(90, abs=5)
    write((3595, done("scratch", 0, left=40.0)))
    assert live(folder)["seconds_left"] == pytest.approx(35, abs=5)
    assert live(folder, running=False)["seconds_left"] is None


def test_no_time_is_left_when_every_training_is_finished(write):
    folder = write((0, PLAN))
    write(*((10, done(arm, seed, left=5.0)) for arm in ARMS for seed in (0, 1)))
    assert live(folder)["seconds_left"] is None
    write((11, REPORT))
    assert live(folder)["stage"] == REPORT["name"]
    write((12, {"event": "finished"}))
    found = live(folder)
    assert (found["stage"], found["seconds_left"]) == ("finished", None)


def test_pretraining_shows_its_step_and_its_loss(write):
    folder = write((0, PLAN), (1, {"event": "pretraining", "objective": "causal"}))
    base = folder / "bases" / "causal"
    base.mkdir(parents=True)
    steps = [{"step": n, "tokens": 100 * n, "seconds": n / 2, "loss": 9.0 / n} for n in (1, 2, 3)]
    (base / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    found = live(folder)
    assert found["stage"] == "pretraining, causal"
    assert (found["pretraining"]["step"], found["pretraining"]["steps"]) == (3, 10)
    assert "Pretraining, causal" in found["figures"][0]["caption"]
    write((9, {"event": "start", **run("scratch", 0)}))
    assert live(folder)["pretraining"] is None


def test_finished_trainings_are_means_over_their_seeds(write):
    folder = write((0, PLAN), (1, {**done("scratch", 0), "value": 0.5}))
    write((2, {**done("scratch", 1), "value": 0.7}))
    scratch, pretrained = live(folder)["arms"]
    assert scratch["cells"] == [{"value": 0.6, "trainings": 2}]
    assert pretrained["cells"][0]["value"] is None


def test_a_line_that_is_cut_short_is_ignored(write):
    folder = write((0, PLAN))
    with (folder / "progress.jsonl").open("a") as file:
        file.write('{"time": 3, "event": "ep')
    assert live(folder)["plan"] is not None


def test_a_job_without_a_value_is_not_a_training(write):
    folder = write((0, PLAN), (5, {"event": "done", **run("scratch", 0, seconds=4.0)}))
    assert live(folder)["finished"] == 0
