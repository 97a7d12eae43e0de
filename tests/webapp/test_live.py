"""A study while it runs, from its progress file."""

import json

import pytest

from headstart.webapp.live import LiveStudy, live_document, version_of

ARMS = ["scratch", "pretrained"]
PLAN = {
    "event": "plan", "trainings": 4, "seconds": 100.0, "pretrain_steps": 10, "jobs": 1,
    "budgets": [20], "seeds": [0, 1], "arms": ARMS, "objectives": ["causal"], "metric": "accuracy",
    "all_jobs": [[arm, "causal", 20, seed, False] for seed in (0, 1) for arm in ARMS],
}  # fmt: skip


def run(arm, seed):
    return {
        "arm": arm,
        "objective": "causal",
        "labels": 20,
        "seed": seed,
        "select": False,
        "fold": 0,
    }


@pytest.fixture
def write(tmp_path):
    def lines(*events):
        with (tmp_path / "progress.jsonl").open("a") as file:
            for time, event in events:
                file.write(json.dumps({"time": time, **event}) + "\n")
        return tmp_path

    return lines


def test_before_the_plan_there_is_nothing_to_draw(tmp_path):
    found = live_document(tmp_path, running=True)
    assert found["plan"] is None
    assert found["figures"] == []


def test_the_curves_grow_with_the_epochs(write):
    epoch = {"event": "epoch", **run("scratch", 0)}
    folder = write((0, PLAN), (1, {**epoch, "epoch": 1, "value": 0.5}))
    before = version_of(folder)
    assert len(LiveStudy.read(folder).curves[0].seeds[0]) == 1
    write((2, {**epoch, "epoch": 2, "value": 0.6}))
    write((3, {"event": "epoch", **run("pretrained", 1), "epoch": 1, "value": 0.8}))
    assert version_of(folder) != before
    found = live_document(folder, running=True)
    assert "scratch" in found["figures"][0]
    assert "pretrained" in found["figures"][0]
    assert 'class="seeds"' in found["figures"][0]


def test_an_epoch_that_is_trained_again_after_a_stop_counts_once(write):
    epoch = {"event": "epoch", **run("scratch", 0), "epoch": 1}
    folder = write(
        (0, PLAN), (1, {**epoch, "value": 0.5}), (50, PLAN), (51, {**epoch, "value": 0.7})
    )
    assert LiveStudy.read(folder).curves[0].seeds == {0: [0.7]}


def test_the_time_between_two_sessions_is_not_counted(write):
    folder = write((5, PLAN), (10, {"event": "stage", "name": "x"}))
    write((1005, PLAN), (1010, {"event": "stage", "name": "x"}))
    assert LiveStudy.read(folder).spent == 10.0


def test_the_time_left_is_the_plans_and_then_that_of_finished_jobs(write):
    folder = write((0, PLAN), (10, {"event": "stage", "name": "x"}))
    assert LiveStudy.read(folder).seconds_left(10, running=True) == 90.0
    write((12, {"event": "start", **run("scratch", 0)}))
    write((40, {"event": "done", **run("scratch", 0), "value": 0.6, "seconds": 28.0}))
    write((40, {"event": "start", **run("pretrained", 0)}))
    assert LiveStudy.read(folder).seconds_left(50, running=True) == 3 * 28.0 - 10.0 + 15.0
    assert LiveStudy.read(folder).seconds_left(50, running=False) is None


def test_pretraining_shows_its_pace_and_its_loss(write):
    folder = write((0, PLAN), (1, {"event": "pretraining", "objective": "causal"}))
    base = folder / "bases" / "causal"
    base.mkdir(parents=True)
    steps = [{"step": n, "tokens": 100 * n, "seconds": n / 2, "loss": 9.0 / n} for n in (1, 2, 3)]
    (base / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    found = live_document(folder, running=True)
    assert found["pretraining"]["tokens_per_second"] == 200.0
    assert found["pretraining"]["seconds_left"] == 3.5
    assert "Pretraining, causal" in found["figures"][0]
    write((9, {"event": "start", **run("scratch", 0)}))
    assert live_document(folder, running=True)["pretraining"] is None


def test_finished_trainings_are_means_over_their_seeds(write):
    done = {"event": "done", "seconds": 1.0}
    folder = write((0, PLAN), (1, {**done, **run("scratch", 0), "value": 0.5}))
    write((2, {**done, **run("scratch", 1), "value": 0.7}))
    scratch, pretrained = live_document(folder, running=True)["arms"]
    assert scratch["cells"] == [{"labels": 20, "value": 0.6, "seeds": 2}]
    assert pretrained["cells"][0]["value"] is None


def test_a_line_that_is_cut_short_is_left_out(write):
    folder = write((0, PLAN))
    with (folder / "progress.jsonl").open("a") as file:
        file.write('{"time": 3, "event": "ep')
    assert LiveStudy.read(folder).plan is not None


def test_a_selection_is_not_a_training(write):
    selection = {**run("scratch", 0), "select": True}
    folder = write((0, PLAN), (1, {"event": "start", **selection}))
    write((5, {"event": "done", **selection, "seconds": 4.0}))
    assert live_document(folder, running=True)["finished"] == 0
    write((20, PLAN))
    assert LiveStudy.read(folder).running == {}
