"""The output layer over candidates: what it leaves out, and that it stays right on average."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from headstart.model.vocabulary_loss import (
    Candidates,
    CandidateSampler,
    VocabularyTargets,
    gather_rows,
    vocabulary_loss,
)

VOCABULARY, WIDTH, TARGETS = 60, 8, 20


def counts(size=VOCABULARY):
    return np.arange(size, 0, -1) ** 2


def sampler(frequent=5, drawn=10, seed=0, size=VOCABULARY):
    return CandidateSampler(counts(size), frequent=frequent, drawn=drawn, seed=seed)


def layer(seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = 0.5 * torch.randn(TARGETS, WIDTH, generator=generator)
    hidden.requires_grad_()
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator, requires_grad=True)
    bias = torch.from_numpy(np.log(counts() / counts().sum())).float()  # as a trained one would be
    bias.requires_grad_()
    targets = torch.randint(VOCABULARY, (TARGETS,), generator=generator)
    return hidden, weight, bias, targets


def loss_and_gradients(candidates):
    hidden, weight, bias, targets = layer()
    to = VocabularyTargets(torch.arange(TARGETS), targets, candidates)
    loss = vocabulary_loss(hidden, weight, bias, to)
    loss.backward()
    gradients = [g.to_dense() if g.is_sparse else g for g in (hidden.grad, weight.grad, bias.grad)]
    return loss.detach(), gradients


def test_with_all_pieces_as_candidates_loss_and_gradients_are_the_exact_ones():
    everything = sampler(frequent=VOCABULARY).draw(layer()[3], 0)
    assert len(everything.pieces) == VOCABULARY
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
            (scores[:, found.pieces] + found.correction).exp().sum(1)
            for found in (draw.draw(targets, step) for step in range(4_000))
        ]
    )
    error = estimates.std(0) / len(estimates) ** 0.5
    # 20 means, each within 4.5 standard errors: by chance this fails once in 7,000 seeds.
    assert bool(((estimates.mean(0) - scores.exp().sum(1)).abs() < 4.5 * error).all())


@pytest.mark.slow
@pytest.mark.parametrize(("drawn", "tolerance"), [(10, 0.25), (30, 0.12), (120, 0.03)])
def test_the_mean_gradient_approaches_the_exact_one_with_more_draws(drawn, tolerance):
    # The logarithm of an unbiased normalizer is biased by its variance, which falls with `drawn`;
    # the tolerances are about twice the errors that were seen, relative to the gradient's norm.
    _, exact = loss_and_gradients(None)
    draw, steps = sampler(drawn=drawn), 300
    total = [torch.zeros_like(gradient) for gradient in exact]
    for step in range(steps):
        _, gradients = loss_and_gradients(draw.draw(layer()[3], step))
        for sum_, gradient in zip(total, gradients, strict=True):
            sum_ += gradient
    for sum_, gradient in zip(total, exact, strict=True):
        assert (sum_ / steps - gradient).norm() / gradient.norm() < tolerance


@given(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=40),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_no_target_is_missing_and_every_piece_counts_once(asked, frequent, drawn, step):
    targets = torch.tensor(asked)
    found = sampler(frequent, drawn).draw(targets, step)
    pieces = found.pieces.tolist()
    assert pieces == sorted(set(pieces))
    assert set(asked) <= set(pieces)
    assert found.pieces[found.places(targets)].tolist() == asked
    for piece, correction in zip(pieces, found.correction.tolist(), strict=True):
        certain = piece < frequent or piece in asked  # ids are in the order of their counts here
        assert (correction == 0) if certain else (correction > 0)


def test_candidates_are_a_pure_function_of_seed_step_and_targets():
    targets = layer()[3]
    one, again = sampler().draw(targets, 7), sampler().draw(targets, 7)
    assert torch.equal(one.pieces, again.pieces)
    assert torch.equal(one.correction, again.correction)
    other_step, other_seed = sampler().draw(targets, 8), sampler(seed=1).draw(targets, 7)
    assert one.pieces.tolist() != other_step.pieces.tolist()
    assert one.pieces.tolist() != other_seed.pieces.tolist()


@pytest.mark.parametrize("shape", [(9, 4), (9,)])
def test_gathered_rows_have_a_sparse_gradient_equal_to_the_dense_one(shape):
    rows = torch.tensor([1, 4, 8])
    weight = nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    gathered = gather_rows(weight, rows)
    gathered.square().sum().backward()
    assert weight.grad is not None
    assert weight.grad.is_sparse
    dense = torch.zeros(shape)
    dense[rows] = 2 * weight.detach()[rows]
    torch.testing.assert_close(weight.grad.to_dense(), dense)


def test_candidates_move_to_a_device_together():
    moved = Candidates(torch.tensor([1, 2]), torch.zeros(2)).to(torch.device("meta"))
    assert moved.pieces.device.type == moved.correction.device.type == "meta"
