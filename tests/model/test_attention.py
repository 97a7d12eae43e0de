"""Both paths of attention give the same numbers and the same gradients."""

import pytest
import torch

from headstart.model.attention import attend, faster_path
from headstart.model.mask import layout


def heads(*, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(3, 2, 2, 9, 8, generator=generator).to(dtype)
    return [part.clone().requires_grad_() for part in parts]


def results(path, mask, causal, dtype=torch.float32):
    parts = heads(dtype=dtype)
    out = attend(*parts, mask=mask, causal=causal, path=path)
    out.float().square().sum().backward()
    return [out.detach(), *(part.grad for part in parts)]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("segments", [None, [[1] * 6 + [0] * 3, [0] * 2 + [1] * 7]])
def test_fused_and_written_out_are_equal_in_value_and_gradient(causal, segments):
    mask, _ = layout(None if segments is None else torch.tensor(segments), causal=causal)
    for fused, written in zip(
        results("fused", mask, causal), results("written", mask, causal), strict=True
    ):
        torch.testing.assert_close(fused, written, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("path", ["fused", "written"])
def test_bf16_stays_near_fp32(path):
    exact = results(path, None, True)[0]
    rounded = results(path, None, True, dtype=torch.bfloat16)[0].float()
    torch.testing.assert_close(rounded, exact, atol=0.03, rtol=0.03)


def test_attention_is_written_out_only_where_bf16_is_trained_on_amx(monkeypatch):
    query = torch.zeros(1, 1, 128, 8, dtype=torch.bfloat16, requires_grad=True)
    long = torch.zeros(1, 1, 1024, 8, dtype=torch.bfloat16, requires_grad=True)
    for amx, expected in [(True, "written"), (False, "fused")]:
        monkeypatch.setattr("headstart.model.attention._amx", lambda amx=amx: amx)
        assert faster_path(query) == expected
        assert faster_path(query.float()) == "fused"
        assert faster_path(query.detach()) == "fused"
        assert faster_path(long) == "fused"


@pytest.mark.parametrize("path", ["fused", "written"])
def test_dropout_changes_what_is_gathered(path):
    query, key, value = heads()
    torch.manual_seed(0)
    plain = attend(query, key, value, path=path)
    dropped = attend(query, key, value, dropout=0.5, path=path)
    assert not torch.allclose(plain, dropped)
