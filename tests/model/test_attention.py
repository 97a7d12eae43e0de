"""Attention: in bf16, with masks, positions and a cache."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from headstart.errors import HeadstartError
from headstart.model.attention import attend
from headstart.model.mask import attention_layout, causal_mask
from headstart.model.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotate,
    sinusoids,
)

PADDED = [[1] * 6 + [0] * 3, [0] * 2 + [1] * 7, [1] * 9]


def heads(dtype=torch.float32):
    parts = torch.randn(3, 3, 2, 9, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    return [part.clone().requires_grad_() for part in parts]


def results(dtype, mask, causal, scale=1.0):
    parts = heads(dtype)
    out = attend(scale * parts[0], *parts[1:], mask=mask, causal=causal)
    out.float().square().sum().backward()
    return [out.detach(), *(part.grad for part in parts)]


@pytest.mark.parametrize("scale", [1.0, 4.0])  # the larger the scores, the coarser they are in bf16
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("segments", [None, PADDED])
def test_bf16_stays_near_fp32_in_value_and_gradient(causal, segments, scale):
    mask, _ = attention_layout(None if segments is None else torch.tensor(segments), causal=causal)
    exact = results(torch.float32, mask, causal, scale)
    rounded = results(torch.bfloat16, mask, causal, scale)
    for one, other in zip(rounded, exact, strict=True):
        assert float((one.float() - other).norm() / other.norm()) < 0.03


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_new_tokens_of_a_cache_see_the_earlier_ones(dtype):
    query, key, value = heads(dtype)
    whole = attend(query, key, value, causal=True)
    new = attend(query[:, :, 5:], key, value, mask=causal_mask(9)[5:], causal=True)
    torch.testing.assert_close(new, whole[:, :, 5:])


def test_long_texts_in_bf16_use_the_fused_kernel_and_agree():
    query, key, value = torch.randn(3, 1, 1, 600, 8, generator=torch.Generator().manual_seed(0))
    exact = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    rounded = attend(query.bfloat16(), key.bfloat16(), value.bfloat16(), causal=True)
    assert float((rounded.float() - exact).norm() / exact.norm()) < 0.02


rows = st.lists(st.integers(0, 3), min_size=1, max_size=12)


def test_the_causal_mask_shows_the_past_and_hides_the_future():
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


@given(rows, st.booleans())
def test_no_row_of_a_mask_is_ever_empty(row, causal):
    mask, _ = attention_layout(torch.tensor([row]), causal=causal)
    assert mask is None or bool(mask.any(dim=-1).all())


def test_each_packed_text_starts_at_position_zero():
    _, positions = attention_layout(torch.tensor([[1, 1, 1, 2, 2, 0]]), causal=True)
    assert positions.tolist() == [[0, 1, 2, 0, 1, 0]]


def test_a_boolean_mask_of_real_tokens_is_understood():
    mask, _ = attention_layout(torch.tensor([[False, True, True]]), causal=False)
    assert mask[0, 0, 1].tolist() == [False, True, True]


def test_sinusoids_follow_the_published_formula():
    table = sinusoids(50, 8)
    for position, column in [(0, 0), (1, 0), (7, 3), (49, 6), (49, 7)]:
        angle = position / 10_000 ** ((column - column % 2) / 8)
        expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
        assert table[position, column].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "make", [lambda n: SinusoidalPositions(n, 8), lambda n: RotaryPositions(n, 8, 1e4)]
)
def test_a_text_longer_than_the_table_gets_the_positions_of_a_longer_table(make):
    assert torch.equal(make(4)(11, None), make(16)(11, None))


def test_a_text_longer_than_the_learned_positions_is_rejected_with_both_numbers():
    with pytest.raises(HeadstartError, match="a text of 5 tokens; this base has learned 4"):
        LearnedPositions(4, 8)(5, None)


def test_a_rotated_product_depends_on_the_distance_alone():
    rotary = RotaryPositions(32, 8, 1e4)(32, None)
    query, key = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    products = [
        (rotate(query, rotary[start + 3]) @ rotate(key, rotary[start])).item()
        for start in (0, 5, 20)
    ]
    assert products == pytest.approx([products[0]] * 3, abs=1e-4)
