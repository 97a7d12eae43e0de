"""The chunked loss equals `cross_entropy` in value and gradient."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.model.sampled_softmax import chunked_cross_entropy


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


def test_under_autocast_the_products_are_in_bf16_and_the_loss_in_fp32():
    hidden, weight = torch.randn(5, 4), torch.randn(9, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = chunked_cross_entropy(hidden, weight, None, torch.arange(5))
    loss.backward()
    assert loss.dtype == weight.grad.dtype == torch.float32


@pytest.mark.parametrize("others", [2e-3, 1e-3, 1e-5])
def test_in_bf16_a_target_of_high_probability_still_gets_its_gradient(others):
    # Two classes with probabilities 1 - others and others; in bf16 the first is rounded to 1.
    score = math.log(1 / others - 1)
    weight = torch.tensor([[score], [0.0]], requires_grad=True)
    loss = chunked_cross_entropy(
        torch.ones(1, 1, dtype=torch.bfloat16), weight, None, torch.zeros(1, dtype=torch.long)
    )
    loss.backward()
    assert float(weight.grad[0]) == pytest.approx(-others, rel=0.1)
    assert float(weight.grad[1]) == pytest.approx(others, rel=0.1)


def test_in_bf16_the_loss_is_not_rounded_to_bf16():
    hidden, weight = torch.zeros(1, 4, dtype=torch.bfloat16), torch.zeros(50_000, 4)
    loss = chunked_cross_entropy(hidden, weight, None, torch.zeros(1, dtype=torch.long))
    assert float(loss) == pytest.approx(math.log(50_000), abs=0.005)
