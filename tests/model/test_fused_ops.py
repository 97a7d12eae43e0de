"""The lean steps equal the plain formulas, in value and gradient."""

import pytest
import torch
import torch.nn.functional as F

from headstart.model.fused_ops import RMSNorm, gate, rotate, split_heads
from headstart.model.positions import RotaryPositions

ACTIVATIONS = {"swiglu": F.silu, "geglu": F.gelu, "reglu": torch.relu}


def value_and_gradient(function, x):
    x = x.clone().requires_grad_()
    out = function(x)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    (out * weight).sum().backward()
    return out.detach(), x.grad


def test_without_gradients_the_values_are_the_same():
    table = RotaryPositions(8, 6, 1e4)(5, None)
    x = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    norm = RMSNorm(6, eps=1e-6)
    with torch.no_grad():
        quiet = rotate(x, table), gate(x, "swiglu"), norm(x)
        parts = split_heads(x[0], 3, 2)
    assert torch.equal(quiet[0], rotate(x, table))
    assert torch.equal(quiet[1], gate(x, "swiglu"))
    assert torch.equal(quiet[2], norm(x))
    assert all(map(torch.equal, parts, split_heads(x[0].requires_grad_(), 3, 2)))


def plain_rotation(x, table):
    cosine, sine = table.chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


@pytest.mark.parametrize("positions", [None, torch.tensor([[3, 1, 0, 5, 2]])])
def test_rotation_equals_the_plain_formula(positions):
    table = RotaryPositions(8, 6, 1e4)(5, positions)
    x = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0))
    ours = value_and_gradient(lambda x: rotate(x, table), x)
    plain = value_and_gradient(lambda x: plain_rotation(x, table), x)
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("read", [slice(None), slice(1)])  # all parts, or only the first
def test_parts_of_a_product_are_its_columns_and_their_gradients_go_back_there(parts, read):
    joined = torch.randn(2, 5, parts * 6, generator=torch.Generator().manual_seed(0))

    def plain(x):
        heads = [x[..., 6 * n : 6 * n + 6].unflatten(-1, (2, 3)) for n in range(parts)]
        return torch.stack([one.transpose(1, 2) for one in heads][read])

    ours = value_and_gradient(lambda x: torch.stack(split_heads(x, parts, 2)[read]), joined)
    for a, b in zip(ours, value_and_gradient(plain, joined), strict=True):
        assert torch.equal(a, b)


def test_columns_of_a_wider_product_have_the_gradient_that_they_have_by_themselves():
    wider = torch.randn(2, 5, 20, generator=torch.Generator().manual_seed(0))
    ours = value_and_gradient(lambda x: torch.stack(split_heads(x[..., 8:], 2, 2)), wider)
    alone = value_and_gradient(lambda x: torch.stack(split_heads(x, 2, 2)), wider[..., 8:])
    assert torch.equal(ours[0], alone[0])
    assert torch.equal(ours[1][..., 8:], alone[1])
    assert not ours[1][..., :8].any()


@pytest.mark.parametrize("kind", list(ACTIVATIONS))
def test_a_gate_equals_the_plain_formula(kind):
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))

    def plain(x):
        a, b = x.chunk(2, dim=-1)
        return ACTIVATIONS[kind](a) * b

    ours = value_and_gradient(lambda x: gate(x, kind), x)
    for a, b in zip(ours, value_and_gradient(plain, x), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_a_norm_equals_pytorchs_in_value_and_both_gradients(scale):
    generator = torch.Generator().manual_seed(0)
    x = scale * torch.randn(2, 5, 8, generator=generator)
    ours, plain = RMSNorm(8, eps=1e-6), torch.nn.RMSNorm(8, eps=1e-6)
    with torch.no_grad():
        ours.weight.copy_(1 + 0.1 * torch.randn(8, generator=generator))
        plain.weight.copy_(ours.weight)
    for a, b in zip(value_and_gradient(ours, x), value_and_gradient(plain, x), strict=True):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad)


def test_a_norms_gradient_under_autocast_is_that_outside():
    norm = RMSNorm(8, eps=1e-6)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    _, expected = value_and_gradient(norm, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, found = value_and_gradient(norm, x)
    torch.testing.assert_close(found, expected)


def test_a_norm_takes_and_gives_rows_that_do_not_lie_side_by_side():
    x = torch.randn(2, 8, 5, generator=torch.Generator().manual_seed(0))
    ours, plain = (
        value_and_gradient(lambda x, norm=norm: norm(x.transpose(1, 2)).transpose(1, 2).sin(), x)
        for norm in (RMSNorm(8, eps=1e-6), torch.nn.RMSNorm(8, eps=1e-6))
    )
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_norm_of_halves_is_pytorchs_own(dtype):
    x = (30 * torch.randn(2, 256, generator=torch.Generator().manual_seed(0))).to(dtype)
    ours, plain = (one(256, eps=1e-6).to(dtype) for one in (RMSNorm, torch.nn.RMSNorm))
    assert torch.equal(ours(x), plain(x))


def test_a_row_of_zeros_stays_one_and_has_a_gradient():
    out, gradient = value_and_gradient(RMSNorm(8, eps=1e-6), torch.zeros(1, 2, 8))
    assert bool((out == 0).all())
    assert bool(gradient.isfinite().all())
