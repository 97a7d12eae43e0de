"""The disk refuses at any operation of a command: one message, and the same command finishes.

A few operations of each command here; `make torture` takes every one of them.
"""

import os

import pytest
import torch

from headstart.training.checkpoints import Checkpoints
from headstart.training.optimizer import make_optimizer, optimizer_tensors
from tests.fault_cases import CASES, survive, uninterrupted, write_inputs
from tests.faulty_disk import KILLED, refusing

pytestmark = pytest.mark.slow

FAULTS = {"pretrain": 6, "finetune": 6, "compare": 1, "predict": 6}  # how many are tried here


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("name", CASES)
def test_a_disk_that_refuses_costs_one_message_and_no_bit(inputs, tmp_path, name):
    case, count = CASES[name], FAULTS[name]
    expected, disk = uninterrupted(case, inputs, tmp_path / "whole")
    total = len(disk.log)
    assert total >= count
    for number in range(count):
        nth = 1 + (2 * number + 1) * total // (2 * count)  # the middle of each of `count` parts
        survive(case, inputs, tmp_path / str(nth), expected, nth, stays=bool(number % 2))


def save(checkpoints, step, model, optimizer):
    weights = {name: one.detach() for name, one in model.named_parameters()}
    tensors = {"model": weights, "optimizer": optimizer_tensors(optimizer, model)}
    checkpoints.save(step, tensors, {"loss": 0.5})


def steps_of_a_checkpoint(folder, nth, *, kill):
    """Save a second checkpoint on a disk that refuses; in a process of its own if it is killed."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = make_optimizer(model, learning_rate=1e-2, weight_decay=0.0, betas=(0.9, 0.99))
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    checkpoints = Checkpoints(folder)
    save(checkpoints, 1, model, optimizer)
    child = os.fork() if kill else 0
    if not child:
        try:
            with refusing(nth, folder, kill=kill) as disk:
                save(checkpoints, 2, model, optimizer)
        finally:
            if kill:
                os._exit(0)
        return checkpoints, model, optimizer, len(disk.log)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == KILLED
    return checkpoints, model, optimizer, nth


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
def test_a_kill_at_every_step_of_a_checkpoint_leaves_the_old_or_the_new_one(tmp_path):
    *_, total = steps_of_a_checkpoint(tmp_path / "whole", None, kill=False)
    assert total >= 4  # opened, written, synced, renamed
    for nth in range(1, total + 1):
        folder = tmp_path / str(nth)
        checkpoints, model, optimizer, _ = steps_of_a_checkpoint(folder, nth, kill=True)
        # The last operation comes after the rename.
        assert checkpoints.last_step() == (2 if nth == total else 1)
        _, state = checkpoints.load(model)
        assert state == {"loss": 0.5}
        save(checkpoints, 2, model, optimizer)
        assert [path.stem for path in checkpoints.list()] == ["step-00000001", "step-00000002"]
