"""The chunked loss equals `cross_entropy` in value and gradient."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.vocabulary_loss import chunked_cross_entropy


def both(tokens, vocabulary, with_bias, chunk, dtype=torch.float32):
    generator = torch.Generator().manual_seed(tokens * 1_000 + vocabulary)
    hidden = torch.randn(tokens, 12, generator=generator).to(dtype)
    weight = torch.randn(vocabulary, 12, generator=generator)
    bias = torch.randn(vocabulary, generator=generator) if with_bias else None
    targets = torch.randint(vocabulary, (tokens,), generator=generator)

    def results(loss):
        inputs = [x.clone().requires_grad_() for x in (hidden, weight, bias) if x is not None]
        value = loss(inputs[0], inputs[1], inputs[2] if with_bias else None)
        (0.5 * value).backward()
        return [value.detach(), *(x.grad.float() for x in inputs)]

    ours = results(lambda h, w, b: chunked_cross_entropy(h, w, b, targets, chunk=chunk))
    theirs = results(
        lambda h, w, b: F.cross_entropy(F.linear(h.float(), w, b), targets, reduction="sum")
    )
    return zip(ours, theirs, strict=True)


@settings(max_examples=40, deadline=None)
@given(
    tokens=st.integers(1, 40),
    vocabulary=st.integers(1, 200),
    with_bias=st.booleans(),
    chunk=st.integers(1, 50),
)
def test_value_and_gradients_equal_cross_entropy(tokens, vocabulary, with_bias, chunk):
    for ours, theirs in both(tokens, vocabulary, with_bias, chunk):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_in_bf16_value_and_gradients_stay_within_two_percent_of_their_size():
    for ours, theirs in both(300, 130, True, 64, dtype=torch.bfloat16):
        assert float((ours - theirs).norm() / theirs.norm()) < 0.02


def test_without_gradients_only_the_value_is_computed():
    hidden, weight = torch.randn(5, 4), torch.randn(9, 4)
    loss = chunked_cross_entropy(hidden, weight, None, torch.arange(5))
    assert not loss.requires_grad


def test_under_autocast_the_products_are_in_bf16_and_the_loss_in_fp32():
    hidden, weight = torch.randn(5, 4), torch.randn(9, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = chunked_cross_entropy(hidden, weight, None, torch.arange(5))
    loss.backward()
    assert loss.dtype == weight.grad.dtype == torch.float32


@pytest.mark.parametrize("vocabulary", [64, 65])
def test_rows_that_pad_the_vocabulary_get_no_probability(vocabulary):
    loss = chunked_cross_entropy(
        torch.zeros(1, 4), torch.zeros(vocabulary, 4), None, torch.zeros(1, dtype=torch.long)
    )
    assert float(loss) == pytest.approx(torch.tensor(vocabulary).log().item())


def test_without_gradients_none_are_computed_on_the_way(monkeypatch):
    from headstart.model import vocabulary_loss

    wanted = []
    forward = vocabulary_loss._ChunkedCrossEntropy.forward

    def spy(context, *inputs):
        wanted.append(any(context.needs_input_grad[:3]))
        return forward(context, *inputs)

    monkeypatch.setattr(vocabulary_loss._ChunkedCrossEntropy, "forward", staticmethod(spy))
    weight = torch.nn.Parameter(torch.ones(5, 3))
    with torch.no_grad():
        chunked_cross_entropy(torch.ones(2, 3), weight, None, torch.tensor([1, 2]))
    assert wanted == [False]
