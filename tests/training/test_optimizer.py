"""Rows that a step did not use do not change; the others are updated as by Adam."""

import pytest
import torch
from torch import nn

from headstart.training.optimizer import (
    RowAdamW,
    clip_gradients,
)

RATE, BETAS = 0.1, (0.9, 0.99)


def table(sparse=True):
    torch.manual_seed(0)
    return nn.Embedding(6, 3, sparse=sparse)


def train(model, optimizer, steps):
    for rows in steps:
        optimizer.zero_grad(set_to_none=True)
        (model(torch.tensor(rows)) - 1).square().sum().backward()
        optimizer.step()


def optimizer_of(model):
    return RowAdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=0.0, fused=True)


def test_when_every_row_is_touched_each_step_it_equals_dense_adamw():
    lazy, dense = table(), table(sparse=False)
    steps = [[0, 1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0]] * 4
    train(lazy, optimizer_of(lazy), steps)
    train(dense, torch.optim.AdamW(dense.parameters(), RATE, BETAS, weight_decay=0.0), steps)
    torch.testing.assert_close(lazy.weight, dense.weight)


def test_it_equals_pytorchs_sparse_adam():
    ours, theirs = table(), table()
    steps = [[0, 1, 1], [2], [1, 5], [0, 2, 2, 2]]
    train(ours, optimizer_of(ours), steps)
    train(theirs, torch.optim.SparseAdam(list(theirs.parameters()), RATE, BETAS), steps)
    torch.testing.assert_close(ours.weight, theirs.weight)


@pytest.mark.parametrize("most", [0.5, 100.0])
def test_clipping_sparse_and_dense_gradients_together_equals_pytorchs_on_dense_ones(most):
    ours, theirs = [nn.Sequential(table(sparse), nn.Linear(3, 2)) for sparse in (True, False)]
    theirs.load_state_dict(ours.state_dict())
    for model in (ours, theirs):
        model(torch.tensor([1, 1, 4])).square().sum().backward()
    norm = clip_gradients(ours.parameters(), most)
    expected = nn.utils.clip_grad_norm_(theirs.parameters(), most)
    assert norm == pytest.approx(float(expected), rel=1e-5)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        gradient = one.grad.to_dense() if one.grad.is_sparse else one.grad
        torch.testing.assert_close(gradient, other.grad)
