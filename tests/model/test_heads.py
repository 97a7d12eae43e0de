"""Pooling and heads ignore padding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.errors import HeadstartError
from headstart.model.config import (
    POOLINGS,
    ClassificationConfig,
    LanguageModelingConfig,
    MaskedNextSentenceConfig,
    SpansConfig,
    TaggingConfig,
)
from headstart.model.model import build_model
from headstart.model.pooling import pool
from tests.model.networks import tiny, tokens


@pytest.mark.parametrize("how", POOLINGS)
@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 8), left=st.integers(0, 4), right=st.integers(0, 4))
def test_pooling_does_not_see_padding(how, length, left, right):
    hidden = torch.randn(1, length, 6, generator=torch.Generator().manual_seed(length))
    poison = torch.full((1, 1, 6), float("nan"))
    padded = torch.cat([poison.expand(1, left, 6), hidden, poison.expand(1, right, 6)], dim=1)
    real = torch.tensor([[0] * left + [1] * length + [0] * right])
    torch.testing.assert_close(pool(padded, real, how), pool(hidden, None, how))


def test_pooling_takes_what_its_name_says():
    hidden = torch.tensor([[[1.0], [5.0], [3.0]]])
    expected = {"last": [3], "mean": [3], "first": [1], "max": [5], "mean+max": [3, 5]}
    assert {how: pool(hidden, None, how)[0].tolist() for how in POOLINGS} == expected


def test_a_text_without_tokens_cannot_be_pooled():
    with pytest.raises(HeadstartError, match="tokens"):
        pool(torch.zeros(1, 2, 4), torch.zeros(1, 2), "last")


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        (LanguageModelingConfig(tied=True), (2, 5, 30)),
        (LanguageModelingConfig(tied=False, bias=True, transform=True), (2, 5, 30)),
        (MaskedNextSentenceConfig(), (2, 5, 30)),
        (ClassificationConfig(classes=4, pooling="mean", dense=True), (2, 4)),
        (TaggingConfig(tags=7), (2, 5, 7)),
        (SpansConfig(), (2, 5, 2)),
    ],
)
def test_each_head_answers_in_its_shape(head, shape):
    assert build_model(tiny("small").base.config, head)(tokens(2, 5)).shape == shape


def test_a_span_never_starts_in_the_padding():
    model = build_model(tiny("small").base.config, SpansConfig())
    scores = model(tokens(1, 4), torch.tensor([[1, 1, 0, 0]]))
    assert scores.softmax(dim=1)[0, 2:].sum() == 0
