"""Positions: computed once, not trained, not saved, and as long as the text."""

import math

import pytest
import torch

from headstart.errors import HeadstartError
from headstart.model.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    rotate,
    sinusoids,
)


def test_sinusoids_follow_the_published_formula():
    table = sinusoids(50, 8)
    for position, column in [(0, 0), (1, 0), (7, 3), (49, 6), (49, 7)]:
        angle = position / 10_000 ** ((column - column % 2) / 8)
        expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
        assert table[position, column].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("positions", [SinusoidalPositions(4, 8), RotaryPositions(4, 8, 1e4)])
def test_computed_positions_are_neither_trained_nor_saved(positions):
    assert list(positions.parameters()) == []
    assert positions.state_dict() == {}


@pytest.mark.parametrize(
    "make", [lambda n: SinusoidalPositions(n, 8), lambda n: RotaryPositions(n, 8, 1e4)]
)
def test_a_text_longer_than_the_table_gets_the_positions_of_a_longer_table(make):
    assert torch.equal(make(4)(11, None), make(16)(11, None))


def test_a_text_longer_than_the_learned_positions_is_refused_with_both_numbers():
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
