"""If few tokens are predicted, the last block computes only these; the loss is the same."""

import pytest
import torch

from headstart.model import model as model_module
from headstart.model.model import build_model
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


def results(objective, kind, network):
    """Return the loss, the next-sentence scores and the gradient of every weight."""
    chosen = preset("small", objective=network, vocab_size=PIECES, **SIZES)
    model = build_model(chosen.base, OBJECTIVES[objective].head(chosen))
    places = torch.tensor([5, 8, 20, 23, 25, 44])
    pieces, answers = model(
        tokens(), segments(kind), None, SoftmaxTargets(places, tokens().flatten()[places])
    )
    answers = torch.zeros(1) if answers is None else answers
    parts = [part for part in model.parameters() if part.requires_grad]
    gradients = torch.autograd.grad(pieces + answers.square().sum(), parts, allow_unused=True)
    return [pieces.detach(), answers.detach(), *gradients]


@pytest.mark.parametrize(
    ("objective", "kind", "network"),
    [
        ("masked", "full", "masked"),
        ("masked", "packed", "masked"),
        ("masked+next-sentence", "padded", "masked"),
        ("masked+next-sentence", "padded on the left", "masked"),
        ("masked", "padded", "causal"),
    ],
)
def test_loss_and_gradients_are_those_of_all_tokens(objective, kind, network, monkeypatch):
    few = results(objective, kind, network)
    monkeypatch.setattr(model_module, "MOST_READ", 0.0)
    for one, other in zip(few, results(objective, kind, network), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
