"""Attention in fp32 and bf16, with masks, dropout and a cache."""

import pytest
import torch
import torch.nn.functional as F

from headstart.model.attention import attend
from headstart.model.mask import attention_layout, causal_mask

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
