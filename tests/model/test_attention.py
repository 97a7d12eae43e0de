"""Both paths of attention give the same numbers and the same gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.model import blocked_attention
from headstart.model.attention import attend, faster_path
from headstart.model.blocked_attention import pieces
from headstart.model.mask import layout, square_mask

PADDED = [[1] * 6 + [0] * 3, [0] * 2 + [1] * 7, [1] * 9]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Nine tokens are enough for several blocks, and three texts for several pieces."""
    monkeypatch.setattr(
        blocked_attention, "BLOCK", dict.fromkeys((torch.float32, torch.bfloat16, torch.float64), 4)
    )
    monkeypatch.setattr(blocked_attention, "MOST_SCORES", 2 * 2 * 4 * 9)


def heads(*, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(3, 3, 2, 9, 8, generator=generator).to(dtype)
    return [part.clone().requires_grad_() for part in parts]


def results(path, mask, causal, dtype=torch.float32, scale=1.0):
    parts = heads(dtype=dtype)
    out = attend(scale * parts[0], *parts[1:], mask=mask, causal=causal, path=path)
    out.float().square().sum().backward()
    return [out.detach(), *(part.grad for part in parts)]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("segments", [None, PADDED])
def test_fused_and_in_blocks_are_equal_in_value_and_gradient(causal, segments):
    mask, _ = layout(None if segments is None else torch.tensor(segments), causal=causal)
    for fused, blocks in zip(
        results("fused", mask, causal), results("blocks", mask, causal), strict=True
    ):
        torch.testing.assert_close(fused, blocks, atol=1e-5, rtol=1e-5)


def test_the_new_tokens_of_a_cache_see_the_old_ones_in_blocks_too():
    query, key, value = heads()
    mask = square_mask(9)[5:]  # (new, all)
    fused, blocks = (
        attend(query[:, :, 5:], key, value, mask=mask, causal=True, path=path)
        for path in ("fused", "blocks")
    )
    torch.testing.assert_close(fused, blocks, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("path", ["fused", "blocks"])
@pytest.mark.parametrize("scale", [1.0, 4.0])  # the larger the scores, the coarser they are in bf16
def test_bf16_stays_near_fp32_in_value_and_gradient(path, scale):
    exact = results(path, None, True, scale=scale)
    rounded = results(path, None, True, dtype=torch.bfloat16, scale=scale)
    for one, other in zip(rounded, exact, strict=True):
        assert float((one.float() - other).norm() / other.norm()) < 0.02


def test_in_blocks_a_gradient_under_autocast_is_that_outside():
    plain, parts = results("blocks", None, True), heads()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attend(*parts, causal=True, path="blocks")
        out.float().square().sum().backward()
    for found, expected in zip([out, *(part.grad for part in parts)], plain, strict=True):
        torch.testing.assert_close(found, expected)


def test_in_blocks_keys_alone_may_want_a_gradient():
    query, key, value = heads()
    fused, blocks = (
        torch.autograd.grad(
            attend(query.detach(), key, value.detach(), causal=True, path=path).square().sum(), key
        )[0]
        for path in ("fused", "blocks")
    )
    torch.testing.assert_close(fused, blocks, atol=1e-5, rtol=1e-5)


def test_in_blocks_parts_of_one_joined_product_have_the_same_gradients():
    joined = torch.randn(3, 9, 3, 2, 8, generator=torch.Generator().manual_seed(0))
    found = []
    for path in ("fused", "blocks"):
        leaf = joined.clone().requires_grad_()
        parts = leaf.permute(2, 0, 3, 1, 4).unbind()
        attend(*parts, causal=True, path=path).square().sum().backward()
        found.append(leaf.grad)
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


def test_in_blocks_a_second_derivative_is_refused():
    query, key, value = heads()
    out = attend(query, key, value, causal=True, path="blocks").square().sum()
    (gradient,) = torch.autograd.grad(out, query, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("shape", [(0, 2, 9, 8), (2, 2, 0, 8)])
def test_nothing_to_attend_to_is_nothing(shape):
    assert attend(*[torch.zeros(shape)] * 3, causal=True, path="blocks").shape == shape


@given(
    batch=st.integers(1, 5),
    heads=st.integers(1, 4),
    length=st.integers(1, 30),
    causal=st.booleans(),
)
def test_every_query_of_every_text_is_in_one_piece_with_all_keys_that_it_may_see(
    batch, heads, length, causal
):
    query = torch.zeros(batch, heads, length, 2)
    asked = torch.zeros(batch, length, length)
    for texts, queries, keys in pieces(query, query, causal=causal):
        asked[texts, queries, keys] += 1
    seen = square_mask(length) if causal else torch.ones(length, length)
    assert asked.max() == 1
    assert bool((asked[:, seen.bool()] == 1).all())


@pytest.mark.parametrize(
    ("dtype", "length", "causal", "training", "path"),
    [
        (torch.bfloat16, 128, True, True, "blocks"),
        (torch.bfloat16, 128, False, True, "blocks"),
        (torch.bfloat16, 512, False, False, "blocks"),
        (torch.bfloat16, 1024, False, False, "fused"),
        (torch.bfloat16, 1024, True, True, "fused"),
        (torch.float32, 512, True, True, "blocks"),
        (torch.float32, 256, True, True, "fused"),
        (torch.float32, 512, False, True, "fused"),
        (torch.float32, 512, True, False, "fused"),
        (torch.float32, 1024, True, True, "fused"),
    ],
)
def test_blocks_are_taken_where_they_were_measured_to_be_faster(
    dtype, length, causal, training, path
):
    query = torch.zeros(1, 1, length, 8, dtype=dtype, requires_grad=training)
    assert faster_path(query, query, causal=causal) == path


@pytest.mark.parametrize("path", ["fused", "blocks"])
def test_dropout_changes_what_is_gathered(path):
    query, key, value = heads()
    torch.manual_seed(0)
    plain = attend(query, key, value, path=path)
    dropped = attend(query, key, value, dropout=0.5, path=path)
    assert not torch.allclose(plain, dropped)


@pytest.mark.slow
def test_in_blocks_the_gradient_is_that_of_the_probabilities_that_dropout_left():
    parts = [part.double().detach().requires_grad_() for part in heads()]

    def gathered(*parts):
        torch.manual_seed(0)  # the same ones are left out each time
        return attend(*parts, causal=True, dropout=0.5, path="blocks")

    assert torch.autograd.gradcheck(gathered, parts)
