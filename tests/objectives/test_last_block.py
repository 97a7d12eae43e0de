"""Where few tokens are asked for, the last block works for these alone: the loss is the same."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.model import model as model_module
from headstart.model.model import build_model
from headstart.model.pooling import asked_places
from headstart.model.presets import preset
from headstart.model.vocabulary_loss import VocabularyTargets
from headstart.objectives import find_objective

ROWS, LENGTH, PIECES = 3, 16, 32


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


def results(objective, kind):
    """The loss, the scores of the second question, and the gradient of every weight."""
    chosen = preset("small", objective="masked", vocab_size=PIECES, width=16, heads=2, layers=2)
    model = build_model(chosen.base, find_objective(objective)(mask_share=0.3).head(chosen))
    places = torch.tensor([5, 8, 20, 23, 25, 44])
    pieces, answers = model(
        tokens(), segments(kind), None, VocabularyTargets(places, tokens().flatten()[places])
    )
    total = pieces if answers is None else pieces + answers.square().sum()
    parts = [part for part in model.parameters() if part.requires_grad]
    return [pieces.detach(), *torch.autograd.grad(total, parts, allow_unused=True)]


@pytest.mark.parametrize("objective", ["masked", "masked+next-sentence"])
@pytest.mark.parametrize("kind", ["full", "padded", "padded on the left", "packed"])
def test_loss_and_gradients_are_those_of_all_tokens(objective, kind, monkeypatch):
    few = results(objective, kind)
    monkeypatch.setattr(model_module, "MOST_READ", 0.0)
    for found, expected in zip(few, results(objective, kind), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_the_last_block_computes_only_what_is_asked_for():
    chosen = preset("small", objective="masked", vocab_size=PIECES, width=16, heads=2, layers=2)
    model = build_model(chosen.base, chosen.language_modeling)
    seen = []
    for block in model.base.blocks:
        block.feed_forward.register_forward_hook(lambda _, x, out: seen.append(out.shape[:2]))
    places = torch.tensor([5, 8, 20, 23, 25, 44])
    model(tokens(), None, None, VocabularyTargets(places, tokens().flatten()[places]))
    assert seen == [(ROWS, LENGTH), (ROWS, 8)]


@given(st.lists(st.integers(0, ROWS * LENGTH - 1), unique=True), st.booleans())
def test_every_target_stays_at_its_place(positions, with_first):
    at = torch.tensor(positions, dtype=torch.int64)
    first = torch.tensor([0, 4, 2]) if with_first else None
    places, moved = asked_places(at, tokens(), first)
    rows = torch.arange(ROWS).unsqueeze(1) * LENGTH
    assert torch.equal((rows + places).flatten()[moved], at)
    assert first is None or torch.equal(places[:, 0], first)
    assert places.shape[1] % 8 == 0
