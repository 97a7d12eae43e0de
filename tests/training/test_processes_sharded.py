"""Processes that share out the blocks train like one that holds all of them."""

import hashlib
import json
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headstart.errors import HeadstartError
from headstart.objectives import find_objective
from headstart.training.listener import Listener
from headstart.training.optimizer import moments
from headstart.training.prepare import prepare
from headstart.training.pretrain import pretrain
from headstart.training.pretrain_loop import PretrainSetup, make_loop, make_model, with_output
from headstart.training.processes import store_ranks
from headstart.training.processes.launch import joined
from headstart.training.processes.ranks import ONE
from tests.conftest import run_here
from tests.ranks import (
    CANDIDATES,
    ROUNDING,
    STEPS,
    TINY,
    SignalAt,
    final_bytes,
    largest_difference,
    pretrain_words,
    start_ranks,
    workers,
)
from tests.runs import small_recipe

# Of four rows, one of three processes has none; of four passes, two of three have one too few.
ROWS = {"batch_tokens": 64, "layers": 2, "steps": 50}
A_ROW_AT_A_TIME = {"micro_batch_tokens": 16}
ROWS_OF_THE_VOCABULARY = {**CANDIDATES, "preset": "lab"}
KINDS = {
    "causal": {},
    "causal, a row at a time": {**A_ROW_AT_A_TIME, **ROWS_OF_THE_VOCABULARY},
    "masked": ROWS_OF_THE_VOCABULARY,
    "masked, a row at a time": A_ROW_AT_A_TIME,
}


def train_all(ranks, folder):
    """Train every kind, the first one twice; what this process has found goes into a file."""
    torch.set_num_threads(1)
    ranks.connect(torch.device("cpu"))
    if ranks.count > 1:
        from headstart.training.processes.sharded import share_blocks

        share_blocks(ranks)
    data = prepare(kind_recipe(folder, "causal"))
    found = {kind: train(ranks, data, kind_recipe(folder, kind)) for kind in KINDS}
    found["again"] = train(ranks, data, kind_recipe(folder, "causal"))
    (folder / f"{ranks.rank} of {ranks.count}.json").write_text(json.dumps(found))
    ranks.gather(True)  # nobody leaves while another one still exchanges


def kind_recipe(folder, kind):
    return small_recipe(folder, kind.split(",")[0], **{**TINY, **ROWS, **KINDS[kind]})


class Losses(Listener):
    def __init__(self):
        self.losses = []

    def on_step(self, progress):
        self.losses.append(progress.loss)


def train(ranks, data, recipe):
    objective = find_objective(recipe.objective)(mask_share=recipe.mask_share)
    setup = PretrainSetup(recipe, Path(), False, data, objective, ranks=ranks)
    setup = with_output(setup, recipe.output)
    model = make_model(setup)
    loop = make_loop(setup, model, steps=recipe.steps, evaluate_every=recipe.steps)
    loop.checkpoints = None
    heard = Losses()
    evaluation = loop.run(listener=heard).evaluation
    loop.gradients(0)
    norm = ranks.placement.clip_gradients(model, 1.0)
    whole = [ranks.placement.weights(model), ranks.placement.moments(loop.optimizer, model)]
    parameters = dict(model.named_parameters())
    state = moments(loop.optimizer, model)
    return {
        "losses": heard.losses,
        "evaluation": evaluation,
        "norm": norm,
        "bits": [bits(one) for one in whole],
        "bits outside": bits({n: p for n, p in parameters.items() if "blocks." not in n}),
        "held": sum(
            numbers(one) for name, one in {**parameters, **state}.items() if "blocks." in name
        ),
    }


def bits(tensors):
    joined_bytes = b"".join(one.detach().numpy().tobytes() for one in tensors.values())
    return hashlib.sha256(joined_bytes).hexdigest()


def numbers(tensor):
    """How many of a tensor's numbers are in this process."""
    return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).numel()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded")
    train_all(ONE, folder)
    for count in (2, 3):
        with joined(count, train_all, (folder,), stuck_seconds=120) as ranks:
            train_all(ranks, folder)
    names = [f"{rank} of {count}" for count in (1, 2, 3) for rank in range(count)]
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, 3])
def test_processes_that_share_the_blocks_have_the_losses_of_one(found, count, kind):
    one, many = found["0 of 1"][kind], found[f"0 of {count}"][kind]
    assert len(many["losses"]) == ROWS["steps"]
    assert many["losses"] == pytest.approx(one["losses"], abs=1e-5)
    assert many["evaluation"] == pytest.approx(one["evaluation"], rel=1e-4)
    assert many["norm"] == pytest.approx(one["norm"], rel=1e-3)  # of all gradients


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_each_process_holds_its_share_of_the_blocks_and_of_their_moments(found, count):
    for kind in KINDS:
        all_of_them = found["0 of 1"][kind]["held"]
        held = [found[f"{rank} of {count}"][kind]["held"] for rank in range(count)]
        assert max(held) == pytest.approx(all_of_them / count, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_what_is_outside_of_the_blocks_is_the_same_in_all_processes(found, count):
    for kind in KINDS:
        assert (
            len({found[f"{rank} of {count}"][kind]["bits outside"] for rank in range(count)}) == 1
        )


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_the_same_number_of_processes_gives_the_same_bits_again(found, count):
    first, again = (found[f"0 of {count}"][kind] for kind in ("causal", "again"))
    assert first == again


def sharded_words(folder, run, *more):
    return pretrain_words(folder, run, "--layers", 2, "--stuck-seconds", 20, *more)


def finish(ranks):
    """Wait for all processes of a run that comes to its end."""
    assert [rank.wait() for rank in ranks] == [0] * len(ranks), [rank.messages for rank in ranks]


@pytest.mark.slow
def test_a_killed_run_goes_on_with_any_number_of_processes_sharded_or_not(tmp_path):
    small_recipe(tmp_path)  # writes the corpus
    whole, run = tmp_path / "whole", tmp_path / "run"
    finish(start_ranks(sharded_words(tmp_path, whole, "--shard"), 2))

    ranks = start_ranks(sharded_words(tmp_path, run, "--shard"), 2)
    ranks[0].wait_for_lines(run / "metrics.jsonl", random.Random(0).randint(5, 20))
    assert ranks[1].kill()
    assert ranks[0].wait()
    assert re.search(r"process 1 of 2 .* (has ended|has not answered)", ranks[0].messages)

    for count, more in ((2, []), (1, []), (3, []), (1, ["--no-shard"]), (3, ["--no-shard"])):
        copy = tmp_path / f"{count} {more}"
        shutil.copytree(run, copy)
        finish(start_ranks(sharded_words(tmp_path, copy, "--resume", *more), count))
        if (count, more) == (2, []):
            assert final_bytes(copy) == final_bytes(whole)
            assert (copy / "model.safetensors").read_bytes() == (
                whole / "model.safetensors"
            ).read_bytes()
        else:
            assert largest_difference(copy, whole) < ROUNDING


@pytest.mark.slow
def test_a_run_that_was_not_sharded_goes_on_sharded(tmp_path):
    small_recipe(tmp_path)  # writes the corpus
    whole, run = tmp_path / "whole", tmp_path / "run"
    finish(start_ranks(sharded_words(tmp_path, whole), 1))
    ranks = start_ranks(sharded_words(tmp_path, run), 1)
    ranks[0].wait_for_lines(run / "metrics.jsonl", 10)
    assert ranks[0].kill()
    finish(start_ranks(sharded_words(tmp_path, run, "--resume", "--shard"), 2))
    assert largest_difference(run, whole) < ROUNDING


@pytest.mark.slow
def test_a_process_that_is_stuck_in_a_block_is_named_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(store_ranks, "GRACE_SECONDS", 1.0)
    recipe = small_recipe(tmp_path, steps=STEPS, processes=2, shard=True, **TINY)
    hangs = SignalAt(5, signal.SIGSTOP, random.Random(1))
    with pytest.raises(HeadstartError) as error:
        pretrain(recipe, tmp_path / "run", listener=hangs, stuck_seconds=3)
    said = r"at step \d+, process 1 of 2 .* has not answered for 3 seconds"
    assert re.search(said, error.value.what)
    assert "--resume" in error.value.fix
    assert not workers()  # nobody is left behind


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "there is only one"),
        ({"processes": 2, "precision": "bf16"}, "shard needs precision fp32"),
        ({"processes": 2, "device": "cuda"}, "shard is for processors"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(tmp_path, more, said):
    with pytest.raises(HeadstartError, match=said):
        pretrain(small_recipe(tmp_path, shard=True, **more), tmp_path / "run")


def test_the_command_line_refuses_it_with_exit_code_2(tmp_path):
    small_recipe(tmp_path)  # writes the corpus
    words = [*pretrain_words(tmp_path, tmp_path / "run"), "--shard"]
    result = run_here(words)
    assert result.returncode == 2
    assert "add --processes 2 or more" in result.stderr


def test_nothing_is_imported_for_sharding_unless_it_is_asked_for():
    modules = "headstart.training.pretrain, headstart.training.processes.group"
    found = "[name for name in sys.modules if 'fully_shard' in name or name.endswith('sharded')]"
    code = f"import sys, {modules}; print({found})"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.strip() == "[]"
