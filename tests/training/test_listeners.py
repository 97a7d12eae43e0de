"""One listener serves pretraining and fine-tuning, and several listen side by side."""

import json

import pytest
import torch

from headstart import register_tracker
from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model
from headstart.training.finetune import FinetunePlan, finetune
from headstart.training.listener import (
    Listener,
    Listeners,
    find_trackers,
    unregister_tracker,
)
from headstart.training.loop import Interrupted
from headstart.training.plan import Plan
from headstart.training.pretrain import pretrain
from headstart.training.pretrain_prepare import prepare_pretraining
from headstart.training.pretrain_results import evaluate_held_out
from tests.labelled import recipe, splits
from tests.listeners import Recorder, StopAt
from tests.runs import small_recipe


@pytest.fixture
def tracker():
    """One that is registered from outside the package."""
    register_tracker("outside", Recorder)
    yield find_trackers(["outside"])[0]
    unregister_tracker("outside")


def test_a_tracker_sees_the_events_of_a_pretraining(tmp_path, tracker):
    settings = small_recipe(tmp_path, steps=4)
    summary = pretrain(settings, tmp_path / "run", listener=tracker)
    (start,) = tracker.values("start")
    assert (start.kind, start.folder, start.step) == ("pretraining", tmp_path / "run", 0)
    assert start.recipe == settings.changed(output=start.recipe.output)  # measured
    assert isinstance(start.plan, Plan)
    assert tracker.values("step") == [1, 2, 3, 4]
    assert "tokenizing" in tracker.values("stage")
    assert tracker.values("evaluation")[-1].keys() >= {"loss", "perplexity"}
    assert tracker.names()[-1] == "finish"
    assert tracker.values("finish") == [summary]


def test_a_tracker_sees_the_events_of_a_fine_tuning(tmp_path, tracker):
    summary = finetune(recipe(epochs=2), tmp_path / "run", splits=splits(), listener=tracker)
    (start,) = tracker.values("start")
    assert start.kind == "finetuning"
    assert isinstance(start.plan, FinetunePlan)
    assert tracker.values("step") == list(range(1, start.plan.steps + 1))
    accuracies = [row["accuracy"] for row in summary["epochs"]]
    assert [found["accuracy"] for found in tracker.values("evaluation")] == accuracies
    assert tracker.values("best")[-1] == summary["best_epoch"] * start.plan.evaluate_every
    assert tracker.values("finish") == [summary]


def test_a_stopped_training_is_reported_and_the_resumed_one_says_where_it_begins(tmp_path):
    first, second = Recorder(), Recorder()
    with pytest.raises(Interrupted):
        finetune(
            recipe(), tmp_path / "run", splits=splits(), listener=Listeners([first, StopAt(3)])
        )
    assert isinstance(first.values("stop")[0], Interrupted)
    assert "finish" not in first.names()
    finetune(recipe(), tmp_path / "run", splits=splits(), resume=True, listener=second)
    assert second.values("start")[0].step == 3
    assert second.values("step")[0] == 4


def test_every_listener_hears_everything_in_order(tmp_path):
    one, two = Recorder(), Recorder()
    pretrain(small_recipe(tmp_path, steps=3), tmp_path / "run", listener=Listeners([one, two]))
    assert one.names() == two.names()
    assert set(one.names()) >= {"stage", "start", "step", "best", "evaluation", "finish"}


def test_the_progress_of_a_stage_reaches_every_listener():
    seen = []

    class Counter(Listener):
        def stage(self, name):
            return lambda done, total: seen.append((name, done, total))

    Listeners([Counter(), Counter()]).stage("reading")(1, 2)
    assert seen == [("reading", 1, 2)] * 2


def test_a_listener_that_overrides_nothing_ignores_everything(tmp_path):
    pretrain(small_recipe(tmp_path, steps=1), tmp_path / "run", listener=Listener())
    assert (tmp_path / "run" / "summary.json").is_file()


def test_an_unknown_tracker_lists_the_known_ones():
    with pytest.raises(HeadstartError, match=r"unknown tracker 'wandbb'; there are .*tensorboard"):
        find_trackers(["wandbb"])


def test_a_fine_tuning_writes_tensorboard_files(tmp_path):
    pytest.importorskip("tensorboard")
    (board,) = find_trackers(["tensorboard", "tensorboard"])
    finetune(recipe(epochs=1), tmp_path / "run", splits=splits(), listener=board)
    assert list((tmp_path / "run" / "tensorboard").iterdir())


@pytest.mark.parametrize("training", ["pretraining", "fine-tuning"])
def test_a_training_leaves_the_global_random_state_as_it_was(tmp_path, training):
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    if training == "pretraining":
        pretrain(small_recipe(tmp_path, steps=2, preset="gpt2"), tmp_path / "run")  # has dropout
    else:
        finetune(recipe(epochs=1, preset="gpt2", threads=0), tmp_path / "run", splits=splits())
    assert torch.equal(torch.rand(3), wanted)


def test_the_numbers_of_a_pretraining_belong_to_the_weights_that_it_kept(tmp_path):
    """Trained for so long on so little that it gets worse again."""
    (tmp_path / "corpus.txt").write_text(
        "".join(f"{n} {'abcdefghij'[n % 10] * 3} {n * 7919 % 1000} {n * n}\n" for n in range(60))
    )
    settings = small_recipe(tmp_path, steps=120, held_out=0.5, evaluations=12, learning_rate=2e-2)
    recorder = Recorder()
    summary = pretrain(settings, tmp_path / "run", listener=recorder)
    evaluations = recorder.values("evaluation")
    assert summary["best_step"] < summary["steps"]
    assert summary["held_out"] == min(evaluations, key=lambda found: found["loss"])
    assert summary["held_out"] != evaluations[-1]
    kept, setup = load_model(tmp_path / "run").eval(), prepare_pretraining(settings, tmp_path / "b")
    with torch.no_grad():
        found = evaluate_held_out(kept, setup.objective, setup.data, rows=settings.rows)
    assert found["loss"] == pytest.approx(summary["held_out"]["loss"], rel=1e-5)
    card = (tmp_path / "run" / "README.md").read_text()
    assert f"| loss | {summary['held_out']['loss']:.3f} |" in card
    assert f"at step {summary['best_step']}, whose weights were kept |" in card
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == summary
