"""Where few tokens are asked for, the last block works for these alone: the loss is the same."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.model import model as model_module
from headstart.model.model import build_model
from headstart.model.pooling import positions_per_row
from headstart.model.presets import preset
from headstart.model.sampled_softmax import SoftmaxTargets
from headstart.objectives import OBJECTIVES

ROWS, LENGTH, PIECES = 3, 16, 32
SIZES = {"width": 16, "heads": 2, "layers": 2}


def tokens():
    return torch.randint(PIECES, (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))


def segments(kind):
    whole = torch.ones(ROWS, LENGTH, dtype=torch.int64)
    if kind == "padded":
        whole[1, 10:] = 0
    elif kind == "padded on the left":
        whole[1, :4] = 0
    elif kind == "packed":
        whole[:, 9:] = 2
    return whole


NETWORKS = {
    "both sides": {},
    "the past": {"objective": "causal"},
}


def results(objective, kind, network="both sides"):
    """The loss, the scores of the second question, and the gradient of every weight."""
    more = dict(NETWORKS[network])
    chosen = preset("small", objective=more.pop("objective", "masked"), vocab_size=PIECES, **SIZES)
    base = replace(chosen.base, **more)
    model = build_model(base, OBJECTIVES[objective](mask_share=0.3).head(chosen))
    places = torch.tensor([5, 8, 20, 23, 25, 44])
    pieces, answers = model(
        tokens(), segments(kind), None, SoftmaxTargets(places, tokens().flatten()[places])
    )
    answers = torch.zeros(1) if answers is None else answers
    parts = [part for part in model.parameters() if part.requires_grad]
    gradients = torch.autograd.grad(pieces + answers.square().sum(), parts, allow_unused=True)
    return [pieces.detach(), answers.detach(), *gradients]


def assert_the_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("objective", ["masked", "masked+next-sentence"])
@pytest.mark.parametrize("kind", ["full", "padded", "padded on the left", "packed"])
def test_loss_and_gradients_are_those_of_all_tokens(objective, kind, monkeypatch):
    few = results(objective, kind)
    monkeypatch.setattr(model_module, "MOST_READ", 0.0)
    assert_the_same(few, results(objective, kind))


@pytest.mark.parametrize("network", list(NETWORKS)[1:])
def test_so_they_are_in_other_networks(network, monkeypatch):
    few = results("masked", "padded", network)
    monkeypatch.setattr(model_module, "MOST_READ", 0.0)
    assert_the_same(few, results("masked", "padded", network))


def test_a_row_with_many_targets_lets_the_last_block_work_for_all():
    model, seen = counted_model()
    places = torch.arange(10)
    model(tokens(), None, None, SoftmaxTargets(places, tokens().flatten()[places]))
    assert seen == [(ROWS, LENGTH), (ROWS, LENGTH)]


@pytest.mark.parametrize("order", [1, -1])
def test_targets_in_any_order_find_their_hidden_states(order):
    model, _ = counted_model()
    at = torch.arange(8) + torch.arange(ROWS).unsqueeze(1) * LENGTH  # (rows, 8): as many as read
    at = at.T.flatten() if order > 0 else at.flatten().flip(0)
    pieces = tokens().flatten()
    found = model(tokens(), None, None, SoftmaxTargets(at, pieces[at])).tokens
    in_rows = at.sort().values
    expected = model(tokens(), None, None, SoftmaxTargets(in_rows, pieces[in_rows])).tokens
    torch.testing.assert_close(found, expected)


def counted_model():
    """A model, and the rows and tokens that its blocks' feed-forward networks have worked for."""
    chosen = preset("small", objective="masked", vocab_size=PIECES, **SIZES)
    model = build_model(chosen.base, chosen.language_modeling)
    seen = []
    for block in model.base.blocks:
        block.feed_forward.register_forward_hook(lambda _, x, out: seen.append(out.shape[:2]))
    return model, seen


def test_the_last_block_computes_only_what_is_asked_for():
    model, seen = counted_model()
    places = torch.tensor([5, 8, 20, 23, 25, 44])
    model(tokens(), None, None, SoftmaxTargets(places, tokens().flatten()[places]))
    assert seen == [(ROWS, LENGTH), (ROWS, 8)]


@given(st.lists(st.integers(0, ROWS * LENGTH - 1), unique=True), st.booleans())
def test_every_target_stays_at_its_place(positions, with_first):
    at = torch.tensor(positions, dtype=torch.int64)
    first = torch.tensor([0, 4, 2]) if with_first else None
    places, moved = positions_per_row(at, tokens(), first)
    rows = torch.arange(ROWS).unsqueeze(1) * LENGTH
    assert torch.equal((rows + places).flatten()[moved], at)
    assert first is None or torch.equal(places[:, 0], first)
    assert places.shape[1] % 8 == 0
