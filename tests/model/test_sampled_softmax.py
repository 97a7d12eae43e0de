"""Sampled softmax: which classes it includes, and that it is correct on average."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.model.sampled_softmax import (
    SoftmaxSampler,
    SoftmaxTargets,
    softmax_loss,
)

VOCABULARY, WIDTH, TARGETS = 60, 8, 20


def counts(size=VOCABULARY):
    return np.arange(size, 0, -1) ** 2


def sampler(frequent=5, drawn=10, seed=0, size=VOCABULARY):
    return SoftmaxSampler(counts(size), num_frequent=frequent, num_sampled=drawn, seed=seed)


def layer(seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = 0.5 * torch.randn(TARGETS, WIDTH, generator=generator)
    hidden.requires_grad_()
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator, requires_grad=True)
    bias = torch.from_numpy(np.log(counts() / counts().sum())).float()  # as a trained one would be
    bias.requires_grad_()
    targets = torch.randint(VOCABULARY, (TARGETS,), generator=generator)
    return hidden, weight, bias, targets


def loss_and_gradients(sampled):
    hidden, weight, bias, targets = layer()
    to = SoftmaxTargets(torch.arange(TARGETS), targets, sampled)
    loss = softmax_loss(hidden, weight, bias, to)
    loss.backward()
    gradients = [g.to_dense() if g.is_sparse else g for g in (hidden.grad, weight.grad, bias.grad)]
    return loss.detach(), gradients


def test_with_all_tokens_sampled_loss_and_gradients_are_the_exact_ones():
    everything = sampler(frequent=VOCABULARY).draw(layer()[3], 0)
    assert len(everything.ids) == VOCABULARY
    loss, gradients = loss_and_gradients(everything)
    exact, exact_gradients = loss_and_gradients(None)
    torch.testing.assert_close(loss, exact)
    for ours, theirs in zip(gradients, exact_gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.slow
def test_over_many_draws_the_estimated_normalizer_has_the_exact_mean():
    hidden, weight, bias, targets = layer()
    scores = (hidden @ weight.t() + bias).detach().double()
    draw = sampler(drawn=20)
    estimates = torch.stack(
        [
            (scores[:, found.ids] + found.correction).exp().sum(1)
            for found in (draw.draw(targets, step) for step in range(4_000))
        ]
    )
    error = estimates.std(0) / len(estimates) ** 0.5
    # 20 means, each within 4.5 standard errors: by chance this fails once in 7,000 seeds.
    assert bool(((estimates.mean(0) - scores.exp().sum(1)).abs() < 4.5 * error).all())


@given(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=40),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_no_target_is_missing_and_every_token_counts_once(asked, frequent, drawn, step):
    targets = torch.tensor(asked)
    found = sampler(frequent, drawn).draw(targets, step)
    ids = found.ids.tolist()
    assert ids == sorted(set(ids))
    assert set(asked) <= set(ids)
    assert found.ids[torch.searchsorted(found.ids, targets)].tolist() == asked
    for token, correction in zip(ids, found.correction.tolist(), strict=True):
        certain = token < frequent or token in asked  # ids are in the order of their counts here
        assert (correction == 0) if certain else (correction > 0)
