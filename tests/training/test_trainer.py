"""The trainer is exact, resumes, and stops when a training diverges."""

import errno
from functools import partial

import pytest
import torch
from torch import nn

from headstart.config import PretrainConfig
from headstart.errors import HeadstartError
from headstart.training.optimizer import make_optimizer
from headstart.training.trainer import (
    Interrupted,
    MicroBatch,
    Trainer,
)
from tests.callbacks import StopAt
from tests.model.networks import tiny


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 1))


def make_trainer(model, folder=None, *, steps=12, target=None, callback=None, **settings):
    """Learn a sum; `target(step, y)` changes what a step must learn."""

    def batches(step):
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        y = x.sum(1, keepdim=True)
        y = y if target is None else target(step, y)

        return [MicroBatch(lambda: (model(x) - y).square().sum(), len(x), len(x))]

    def evaluate():
        return {"loss": float(sum(p.square().sum() for p in model.parameters()))}

    options = {"learning_rate": 0.01, "seed": 3, "save_seconds": 0.0, **settings}
    config = PretrainConfig(corpus=["a sum"], **options)
    trainer = Trainer(model, batches, evaluate, config, folder=folder, callback=callback)
    trainer.fit = partial(trainer.fit, steps, evaluate_every=4)
    return trainer


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(one, two):
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_run_stopped_anywhere_and_resumed_has_the_bits_of_the_uninterrupted_one(tmp_path):
    whole = network()
    expected = make_trainer(whole).fit()
    for stop in (1, 5, 8, 11):
        folder = tmp_path / str(stop)
        with pytest.raises(Interrupted) as stopped:
            make_trainer(network(), folder, callback=StopAt(stop)).fit()
        assert stopped.value.step == stop
        second = network()
        state = make_trainer(second, folder).fit(resume=True)
        assert equal(weights(whole), weights(second))
        losses = [[entry["loss"] for entry in run.history] for run in (expected, state)]
        assert losses[0] == losses[1]


def test_timing_steps_changes_nothing():
    timed, plain = network(), network()
    trainer = make_trainer(timed)
    assert trainer.time_steps([0, 3, 6]) > 0
    assert equal(weights(timed), weights(plain))
    trainer.fit()
    make_trainer(plain).fit()
    assert equal(weights(timed), weights(plain))


def test_a_nan_stops_the_run_and_names_the_step_and_the_last_good_checkpoint(tmp_path):
    def broken(step, y):
        return y * float("nan") if step == 5 else y

    with pytest.raises(HeadstartError, match=r"at step 6.*step-00000005") as error:
        make_trainer(network(), tmp_path, target=broken).fit()
    assert error.value.code == "diverged"


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "another loss", "no checksum"])
def test_a_damaged_checkpoint_is_rejected_and_the_older_one_named(tmp_path, how):
    make_trainer(network(), tmp_path).fit()
    path = tmp_path / "checkpoints" / "step-00000012.safetensors"
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[-8] ^= 0xFF
    damaged = {
        "cut": content[: len(content) // 2],
        "flipped": bytes(flipped),
        "empty": b"",
        "another loss": content.replace(b"loss_sum", b"loss_mus"),
        "no checksum": content.replace(b"sha256", b"sha257"),
    }
    assert damaged[how] != content
    path.write_bytes(damaged[how])
    with pytest.raises(HeadstartError, match="damaged") as error:
        make_trainer(network(), tmp_path).fit(resume=True)
    assert "resumes from step 11" in error.value.fix


def test_a_full_disk_is_reported_and_the_older_checkpoint_stays(tmp_path, monkeypatch):
    make_trainer(network(), tmp_path, steps=3).fit()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def full(arrays, path, about):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headstart.training.run_files.save_arrays", full)
    with pytest.raises(HeadstartError, match="checkpoint of step 3 is complete") as error:
        make_trainer(network(), tmp_path, steps=6).fit(resume=True)
    assert error.value.code == "disk"
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_the_schedule_rises_then_falls_to_zero():
    trainer = make_trainer(network(), learning_rate=1.0, warmup=0.1)
    trainer.state.steps = 100
    rates = [trainer.learning_rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == pytest.approx(1.0)
    assert rates[100] == 0
    trainer.state.steps = 1
    assert trainer.learning_rate(0) == 1.0


def test_norms_biases_and_embeddings_do_not_decay():
    model = tiny("bert", head="language_modeling")
    optimizer = make_optimizer(model, learning_rate=0.1, weight_decay=0.1, betas=(0.9, 0.99))
    names = {id(p): name for name, p in model.named_parameters()}
    decayed = {
        names[id(p)]
        for group in optimizer.param_groups
        if group["weight_decay"]
        for p in group["params"]
    }
    assert decayed
    for name in decayed:
        assert name.endswith("weight")
        assert not any(word in name for word in ("embedding", "norm", "positions", "token_types"))
