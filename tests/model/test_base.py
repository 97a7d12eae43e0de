"""Properties of every base, for all kinds of blocks."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.model import build_model
from tests.model.networks import KINDS, tiny, tokens

ids = st.lists(st.integers(0, 29), min_size=2, max_size=12)
every_kind = pytest.mark.parametrize(("name", "objective"), KINDS)


@pytest.mark.parametrize("name", ["lab", "small", "bert", "gpt2"])
@settings(max_examples=25, deadline=None)
@given(row=ids, data=st.data())
def test_under_the_causal_mask_no_output_depends_on_a_later_token(name, row, data):
    base = tiny(name, "causal")
    cut = data.draw(st.integers(1, len(row) - 1))
    other = row[:cut] + data.draw(
        st.lists(st.integers(0, 29), min_size=len(row) - cut, max_size=len(row) - cut)
    )
    before, after = base(torch.tensor([row])), base(torch.tensor([other]))
    torch.testing.assert_close(before[:, :cut], after[:, :cut], atol=1e-6, rtol=0)


def without_positions(**changes):
    config = tiny("lab", "masked").base.config
    return build_model(replace(config, **changes), seed=1).eval()


@settings(max_examples=25, deadline=None)
@given(row=ids, data=st.data())
def test_without_positions_a_bidirectional_base_is_permutation_equivariant(row, data):
    base = without_positions(positions="none")
    order = data.draw(st.permutations(range(len(row))))
    straight = base(torch.tensor([row]))
    shuffled = base(torch.tensor([[row[i] for i in order]]))
    torch.testing.assert_close(shuffled, straight[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_with_positions_the_order_of_the_tokens_matters(positions):
    base = without_positions(positions=positions)
    straight, swapped = base(torch.tensor([[1, 2, 3, 4]])), base(torch.tensor([[2, 1, 3, 4]]))
    assert not torch.allclose(straight[:, [1, 0, 2, 3]], swapped, atol=1e-4)


@every_kind
@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), left=st.booleans())
def test_padding_on_either_side_does_not_change_a_text(name, objective, lengths, left):
    base = tiny(name, objective)
    longest = max(lengths) + 2
    batch, real = (
        torch.zeros(len(lengths), longest, dtype=torch.long),
        torch.zeros(len(lengths), longest, dtype=torch.long),
    )
    texts = [tokens(length, seed=number) for number, length in enumerate(lengths)]
    places = [slice(longest - n, longest) if left else slice(0, n) for n in lengths]
    for number, (text, place) in enumerate(zip(texts, places, strict=True)):
        batch[number, place], real[number, place] = text, 1
    together = base(batch, real)
    for number, (text, place) in enumerate(zip(texts, places, strict=True)):
        alone = base(text.unsqueeze(0))[0]
        torch.testing.assert_close(together[number, place], alone, atol=1e-5, rtol=1e-5)


@every_kind
def test_texts_packed_into_one_row_come_out_as_if_alone(name, objective):
    base = tiny(name, objective)
    first, second = tokens(4, seed=1), tokens(5, seed=2)
    packed = base(torch.cat([first, second]).unsqueeze(0), torch.tensor([[1] * 4 + [2] * 5]))
    for text, place in [(first, slice(0, 4)), (second, slice(4, 9))]:
        alone = base(text.unsqueeze(0))[0]
        torch.testing.assert_close(packed[0, place], alone, atol=1e-5, rtol=1e-5)


@every_kind
@pytest.mark.parametrize("left", [False, True])
def test_tokens_asked_for_are_the_same_as_among_all_of_them(name, objective, left):
    model, batch = tiny(name, objective), tokens(2, 8)
    real = torch.tensor([[1] * 8, [0] * 3 + [1] * 5 if left else [1] * 5 + [0] * 3])
    places = torch.tensor([[7, 0], [3, 5] if left else [4, 1]])
    one = model.base(batch, real, only_at=places)
    of_all = model.base(batch, real)[[[0], [1]], places]
    torch.testing.assert_close(one, of_all, atol=1e-5, rtol=1e-5)
    parts = [part for part in model.base.parameters() if part.requires_grad]
    for found, expected in zip(
        torch.autograd.grad(one.square().sum(), parts),
        torch.autograd.grad(of_all.square().sum(), parts),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_same_seed_draws_the_same_weights_and_leaves_the_process_alone():
    state = torch.get_rng_state()
    one, two = tiny("small"), tiny("small")
    assert torch.equal(torch.get_rng_state(), state)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


@every_kind
def test_gradients_reach_every_parameter(name, objective):
    model = tiny(name, objective, head="language_modeling").train()
    model(tokens(2, 6)).logsumexp(-1).sum().backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None]
    assert silent == []
