"""The causal mask and its relatives."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.model.mask import attention_layout, causal_mask, segment_mask

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


@given(rows)
def test_texts_packed_into_a_row_do_not_see_each_other(row):
    mask = segment_mask(torch.tensor([row]))[0]
    for i, own in enumerate(row):
        assert mask[i].tolist() == [other == own for other in row]


def test_each_packed_text_starts_at_position_zero():
    _, positions = attention_layout(torch.tensor([[1, 1, 1, 2, 2, 0]]), causal=True)
    assert positions.tolist() == [[0, 1, 2, 0, 1, 0]]


def test_left_padding_does_not_move_a_text():
    _, positions = attention_layout(torch.tensor([[0, 0, 1, 1]]), causal=True)
    assert positions[0, 2:].tolist() == [0, 1]


def test_a_boolean_mask_of_real_tokens_is_understood():
    mask, _ = attention_layout(torch.tensor([[False, True, True]]), causal=False)
    assert mask[0, 0, 1].tolist() == [False, True, True]
