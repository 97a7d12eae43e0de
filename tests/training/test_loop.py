"""The loop: exact, restartable, and it stops when something is wrong."""

import errno
import json
import math

import pytest
import torch
from torch import nn

from headstart.errors import HeadstartError
from headstart.training import checkpoints as checkpoints_module
from headstart.training.checkpoints import Checkpoints
from headstart.training.loop import Interrupted, Loop, LoopSettings, MicroBatch
from headstart.training.optimizer import split_by_decay
from headstart.training.schedule import Schedule
from tests.listeners import StopAt
from tests.model.networks import tiny


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 1))


def make_loop(model, folder=None, *, micro_batches=1, steps=12, break_at=None, **settings):
    def batches(step):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(8, 4, generator=generator)
        y = x.sum(1, keepdim=True)
        if break_at == step:
            y = y * float("nan")

        def part(number):
            here = slice(number, None, micro_batches)
            return MicroBatch(
                lambda: (model(x[here]) - y[here]).square().sum(), len(x[here]), len(x[here])
            )

        return [part(number) for number in range(micro_batches)]

    def evaluate():
        return {"loss": float(sum(p.square().sum() for p in model.parameters()))}

    options = {"learning_rate": 0.01, "seed": 3, "evaluate_every": 4, "save_seconds": 0.0}
    return Loop(
        model,
        LoopSettings(steps=steps, **{**options, **settings}),
        batches=batches,
        evaluate=evaluate,
        checkpoints=None if folder is None else Checkpoints(folder),
    )


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(one, two):
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_run_stopped_anywhere_and_resumed_has_the_bits_of_the_uninterrupted_one(tmp_path):
    whole = network()
    make_loop(whole).run()
    for stop in (1, 5, 8, 11):
        folder = tmp_path / str(stop)
        first = network()
        loop = make_loop(first, folder)
        with pytest.raises(Interrupted) as stopped:
            loop.run(listener=StopAt(stop))
        assert stopped.value.step == stop
        second = network()
        progress = make_loop(second, folder).run(resume=True)
        assert progress.step == 12
        assert equal(weights(whole), weights(second))


def test_accumulated_micro_batches_are_the_large_batch():
    whole, parts = network().eval(), network().eval()
    make_loop(whole).gradients(0)
    make_loop(parts, micro_batches=3).gradients(0)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_a_nan_stops_the_run_and_names_the_step_and_the_last_good_checkpoint(tmp_path):
    with pytest.raises(HeadstartError, match=r"at step 6: the loss is nan; .*step-00000005"):
        make_loop(network(), tmp_path, break_at=5).run()


def test_an_exploding_loss_stops_the_run():
    with pytest.raises(HeadstartError, match=r"after .* at first"):
        make_loop(network(), learning_rate=1e4, clip=1e9, steps=50).run()


def test_the_best_evaluation_is_remembered():
    progress = make_loop(network()).run()
    assert progress.best_step in (4, 8, 12)
    assert progress.best <= progress.evaluation["loss"]


def test_two_checkpoints_are_kept_and_nothing_half_written(tmp_path):
    make_loop(network(), tmp_path).run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000011", "step-00000012"]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_a_damaged_checkpoint_is_refused_and_the_older_one_named(tmp_path, name, how):
    make_loop(network(), tmp_path).run()
    path = tmp_path / "step-00000012" / name
    content = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    with pytest.raises(HeadstartError, match="damaged") as error:
        make_loop(network(), tmp_path).run(resume=True)
    assert "resumes from step 11" in error.value.fix


def test_resuming_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(HeadstartError, match="no checkpoint to resume from"):
        make_loop(network(), tmp_path).run(resume=True)


def test_a_full_disk_is_said_and_the_older_checkpoint_stays(tmp_path, monkeypatch):
    make_loop(network(), tmp_path, steps=3).run()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def full(tensors, path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints_module, "save_file", full)
    with pytest.raises(HeadstartError, match="disk is full; the checkpoint of step 3 is whole"):
        make_loop(network(), tmp_path, steps=6).run(resume=True)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_the_schedule_rises_then_falls_to_zero():
    rates = [Schedule(1.0, 100, warmup=0.1).at(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == pytest.approx(1.0)
    assert rates[100] == 0


def test_a_schedule_of_one_step_works():
    assert Schedule(1.0, 1).at(0) == 1.0


def test_norms_biases_and_embeddings_do_not_decay():
    model = tiny("bert", head="language_modeling")
    decayed, plain = split_by_decay(model)
    names = {id(p): name for name, p in model.named_parameters()}
    assert all("embedding" not in names[id(p)] and "norm" not in names[id(p)] for p in decayed)
    assert all(names[id(p)].endswith("weight") for p in decayed)
    assert {names[id(p)] for p in plain} >= {
        "base.embedding.weight",
        "base.positions.weight",
        "base.token_types.weight",
        "base.blocks.0.attention_norm.weight",
    }
    assert len(decayed) + len(plain) == len(list(model.parameters()))


def test_a_checkpoint_carries_numbers_as_they_were(tmp_path):
    loop = make_loop(network(), tmp_path)
    loop.run()
    state = json.loads((tmp_path / "step-00000012" / "state.json").read_text())
    assert state["progress"]["loss"] == loop.progress.loss
    assert not math.isnan(state["progress"]["first_loss"])
