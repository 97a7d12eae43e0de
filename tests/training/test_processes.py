"""Two processes train like one: the same losses and evaluations, whatever they exchange."""

import hashlib
import json
import re
import threading
from datetime import timedelta
from itertools import product
from unittest import mock

import psutil
import pytest
import torch

from headstart.errors import HeadstartError
from headstart.objectives import find_objective
from headstart.training.listener import Listener
from headstart.training.prepare import prepare
from headstart.training.pretrain_loop import PretrainSetup, make_loop, make_model, with_output
from headstart.training.processes import shared_memory, store_ranks
from headstart.training.processes.exchange import GradientExchange
from headstart.training.processes.group import ProcessGroup
from headstart.training.processes.launch import _local_store, joined, process_count
from headstart.training.processes.limited_store import LimitedStore, SilentStoreError
from headstart.training.processes.ranks import ONE
from headstart.training.processes.shared_memory import SharedSum, share_memory
from headstart.training.processes.store_ranks import LostProcessError, Place
from tests.ranks import CANDIDATES
from tests.runs import small_recipe

STEPS = 50
OBJECTIVES = ("causal", "masked", "masked+next-sentence")
PRESETS = {"tied": "small", "untied": "lab"}
OUTPUTS = {"dense": "full", "rows": "candidates"}  # the gradients of the output layer
TINY = {"width": 16, "layers": 1, "feed_forward_width": 16, "length": 16, "batch_tokens": 80}
KINDS = [*product(OBJECTIVES, PRESETS, OUTPUTS)]
AGAIN = KINDS[1]


class Losses(Listener):
    def __init__(self):
        self.losses, self.evaluations = [], []

    def on_step(self, progress):
        self.losses.append(progress.loss)

    def on_evaluation(self, progress):
        self.evaluations.append(progress.evaluation)


def train_all(ranks, folder):
    """Train every kind; what this process has found goes into a file of its own."""
    torch.set_num_threads(1)
    ranks.connect(torch.device("cpu"))
    data = prepare(small_recipe(folder, **TINY))
    kinds = [*KINDS, AGAIN]
    found = [train(ranks, data, kind_recipe(folder, *kind), folder / "kind") for kind in kinds]
    (folder / f"{ranks.rank} of {ranks.count}.json").write_text(json.dumps(found))
    ranks.gather(True)  # nobody leaves while another one still exchanges


def kind_recipe(folder, objective, preset, output):
    settings = {**TINY, **CANDIDATES, "output": OUTPUTS[output], "preset": PRESETS[preset]}
    return small_recipe(folder, objective, **settings)


def train(ranks, data, recipe, folder):
    objective = find_objective(recipe.objective)(mask_share=recipe.mask_share)
    setup = PretrainSetup(recipe, folder, False, data, objective, ranks=ranks)
    setup = with_output(setup, recipe.output)
    model = make_model(setup)
    heard = Losses()
    make_loop(setup, model, steps=STEPS, evaluate_every=STEPS).run(listener=heard)
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    return {
        "losses": heard.losses,
        "evaluation": heard.evaluations[-1],
        "weights": hashlib.sha256(weights).hexdigest(),
        "bytes": getattr(ranks, "exchanged_bytes", 0),
        "all bytes": len(weights),
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    train_all(ONE, folder)
    with joined(2, train_all, (folder,), stuck_seconds=120) as ranks:
        train_all(ranks, folder)
    names = ("0 of 1", "0 of 2", "1 of 2")
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in names}


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_two_processes_have_the_losses_of_one(found, kind):
    one, two = (found[name][KINDS.index(kind)] for name in ("0 of 1", "0 of 2"))
    assert len(two["losses"]) == STEPS
    assert two["losses"] == pytest.approx(one["losses"], abs=1e-5)
    assert two["evaluation"] == pytest.approx(one["evaluation"], rel=1e-4)


def test_both_processes_have_the_same_weights(found):
    assert [one["weights"] for one in found["0 of 2"]] == [
        one["weights"] for one in found["1 of 2"]
    ]


def test_the_same_number_of_processes_gives_the_same_bits_again(found):
    first, again = found["0 of 2"][KINDS.index(AGAIN)], found["0 of 2"][-1]
    assert first["weights"] == again["weights"]


def test_where_rows_are_updated_only_touched_rows_are_exchanged(found):
    for kind, one in zip(KINDS, found["0 of 2"], strict=False):
        assert (one["bytes"] < one["all bytes"]) == ("rows" in kind or "untied" in kind)


def test_the_rows_of_all_processes_are_added_up():
    parameter = torch.nn.Parameter(torch.zeros(6, 2))
    model = torch.nn.Module()
    model.rows, model.vocabulary_rows = parameter, [parameter]

    def sparse(rows, value):
        values = torch.full((len(rows), 2), value)
        return torch.sparse_coo_tensor(torch.tensor([rows]), values, (6, 2), check_invariants=True)

    def all_reduce(tensor, largest):  # another process has touched rows 1 and 4
        if largest:
            tensor[[2 + 1, 2 + 4]] = 1
        else:
            assert len(tensor) == 3 * 2 + 1  # of 6 rows, the 3 that were touched; and the loss
            tensor += torch.tensor([10.0, 10, 0, 0, 10, 10, 0.5])

    parameter.grad = sparse([3, 1, 1], 1.0)
    loss, stop = GradientExchange(model, all_reduce)(1.0, stop=False)
    expected = torch.zeros(6, 2)
    expected[1], expected[3], expected[4] = 12.0, 1.0, 10.0
    assert torch.equal(parameter.grad.to_dense(), expected)
    assert (loss, stop) == (1.5, False)


def test_processes_that_share_their_memory_add_up_in_the_order_of_their_ranks():
    parts = torch.tensor([[1e8, 1.0, 9.0], [1.0, 2.0, 9.0], [-1e8, 3.0, 9.0]])
    ranks = [SharedSum(parts, rank, lambda: None) for rank in range(3)]
    assert [rank.own(2).tolist() for rank in ranks] == parts[:, :2].tolist()
    assert all(rank.total(2).tolist() == [0.0, 6.0] for rank in ranks)  # (1e8 + 1) - 1e8 in fp32


@pytest.mark.skipif(not shared_memory.FOLDER.is_dir(), reason="only Linux has /dev/shm")
def test_memory_is_shared_without_leaving_a_file(monkeypatch):
    before = set(shared_memory.FOLDER.glob("headstart-*"))
    assert share_memory(ONE, 5).shape == (1, 5)
    refuse = mock.Mock(side_effect=OSError)  # as a container does that has too little of it
    monkeypatch.setattr(shared_memory.os, "posix_fallocate", refuse)
    assert share_memory(ONE, 5) is None
    monkeypatch.setattr(shared_memory, "FOLDER", shared_memory.FOLDER / "missing")
    assert share_memory(ONE, 5) is None
    monkeypatch.undo()
    assert set(shared_memory.FOLDER.glob("headstart-*")) == before


def test_more_processes_than_rows_of_a_step_are_refused(tmp_path):
    with pytest.raises(HeadstartError, match="processes is 17, and a step has only 16 rows"):
        small_recipe(tmp_path, processes=17)


def test_torchrun_decides_how_many_processes_there_are(monkeypatch):
    assert process_count(2) == 2
    for name, value in {"RANK": 1, "WORLD_SIZE": 4, "MASTER_ADDR": "x", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    assert process_count(1) == 4


def test_only_this_machine_reaches_the_store_of_processes_that_were_started_here():
    store = _local_store(timedelta(seconds=30))
    listening = [one.laddr for one in psutil.Process().net_connections() if not one.raddr]
    assert [one.ip for one in listening if one.port == store.port] == ["127.0.0.1"]


def test_a_store_that_does_not_answer_is_given_up_in_time():
    answered = threading.Event()
    inner = mock.Mock(check=mock.Mock(side_effect=lambda keys: answered.wait()))
    store = LimitedStore(inner, 0.01)
    for _ in range(2):
        with pytest.raises(SilentStoreError):
            store.check(["key"])
    assert inner.check.call_count == 1  # it is not called again
    answered.set()
    store.close()


def member(store, rank):
    return ProcessGroup(store, Place(rank, 3, rank, 3), stuck_seconds=7)


@pytest.mark.parametrize(
    ("waited", "others_waited", "said"),
    [
        (True, False, "process 1 and 2 of 3 .* has not answered for 7 seconds, but lives"),
        (False, True, "process 1 and 2 of 3 .* has waited for process 0 for 7 seconds"),
        (False, False, "process 1 and 2 of 3 .* cannot be exchanged with: reset by peer"),
    ],
)
def test_an_exchange_that_fails_among_the_living_is_no_bug(
    monkeypatch, waited, others_waited, said
):
    monkeypatch.setattr(store_ranks, "GRACE_SECONDS", 0.5)
    store = _local_store(timedelta(seconds=30))
    members = [member(store, rank) for rank in range(3)]
    for one in members[1:]:
        one._set(f"lives/{one.rank}", others_waited)
    error = members[0]._diagnosis(RuntimeError("reset by peer"), waited)
    assert isinstance(error, LostProcessError)
    assert re.search(said, error.what)
    assert "--resume" in error.fix
    follower = members[1]._diagnosis(RuntimeError("reset by peer"), waited)
    assert [one.speaks_for(follower) for one in members] == [True, False, False]


def test_a_lack_of_memory_in_an_exchange_stays_one(monkeypatch):
    monkeypatch.setattr(store_ranks, "GRACE_SECONDS", 0.5)
    first = member(_local_store(timedelta(seconds=30)), 0)
    for rank in (1, 2):
        first._set(f"lives/{rank}", False)
    error = RuntimeError("can't allocate memory")
    assert first._diagnosis(error, waited=False) is error


def test_what_cannot_be_told_to_a_silent_store_is_the_first_process_s_fault():
    answered = threading.Event()
    silent = mock.Mock(set=mock.Mock(side_effect=lambda key, value: answered.wait()))
    one = ProcessGroup(silent, Place(1, 2, 0, 1, 1), stuck_seconds=0.01)
    with pytest.raises(LostProcessError, match=r"process 0 of 2 .* has not answered for 0.01"):
        one.gather(1)
    answered.set()
    one.close()
