"""The trainer: exact, resumable, and it stops when something is wrong."""

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
    WeightAverage,
)
from tests.callbacks import StopAt
from tests.model.networks import tiny


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 1))


def make_trainer(model, folder=None, *, parts=1, steps=12, target=None, callback=None, **settings):
    """Learn a sum; `target(step, y)` changes what a step must learn."""

    def batches(step):
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        y = x.sum(1, keepdim=True)
        y = y if target is None else target(step, y)

        def part(number):
            here = slice(number, None, parts)
            return MicroBatch(
                lambda: (model(x[here]) - y[here]).square().sum(), len(x[here]), len(x[here])
            )

        return [part(number) for number in range(parts)]

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
        for one, two in zip(expected.history, state.history, strict=True):
            assert {**one, "seconds": 0, "total_seconds": 0} == {
                **two,
                "seconds": 0,
                "total_seconds": 0,
            }


def test_timing_takes_complete_steps_and_puts_everything_back():
    timed, plain = network(), network()
    trainer = make_trainer(timed)
    updates = []
    step = trainer.optimizer.step
    trainer.optimizer.step = lambda: updates.append(step())
    assert trainer.time_steps([0, 3, 6]) > 0
    assert len(updates) % 3 == 1  # with clipping and update; the first one warms up
    assert equal(weights(timed), weights(plain))
    trainer.fit()
    make_trainer(plain).fit()
    assert equal(weights(timed), weights(plain))


def test_accumulated_micro_batches_are_the_large_batch():
    whole, parts = network().eval(), network().eval()
    make_trainer(whole).gradients(0)
    make_trainer(parts, parts=3).gradients(0)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_a_nan_stops_the_run_and_names_the_step_and_the_last_good_checkpoint(tmp_path):
    def broken(step, y):
        return y * float("nan") if step == 5 else y

    with pytest.raises(HeadstartError, match=r"at step 6.*step-00000005") as error:
        make_trainer(network(), tmp_path, target=broken).fit()
    assert error.value.code == "diverged"


def test_two_checkpoints_are_saved_and_nothing_half_written(tmp_path):
    make_trainer(network(), tmp_path).fit()
    names = sorted(path.stem for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000011", "step-00000012"]


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


def averaged(values, share, epoch_steps=1):
    """The mean where the weight has these values after the steps."""
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, share, epoch_steps)
    for step, value in enumerate(values, start=1):
        nn.init.constant_(model.weight, value)
        average.update(step, len(values))
    return model, average


def test_the_mean_is_of_the_ends_of_the_last_epochs():
    _, average = averaged([1, 2, 3, 4, 5, 6, 7, 8], 0.5, epoch_steps=2)
    assert average.mean["weight"].item() == pytest.approx(7)
    _, average = averaged([1, 2, 3, 4, 5], 0.5)  # half of five epochs are two
    assert average.mean["weight"].item() == pytest.approx(4.5)


def test_training_continues_with_its_own_weights():
    model, average = averaged([1, 3], 1.0)
    average.swap()
    assert model.weight.item() == pytest.approx(2)
    average.swap()
    assert model.weight.item() == 3


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_fewer_than_two_epochs_are_not_averaged(share):
    model, average = averaged([1, 3], share)
    assert average.mean == {}
    average.swap()
    assert model.weight.item() == 3
