"""BERT's masking rule."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.objectives import mask_tokens

MASK, VOCABULARY = 5, 1_000


def masked(tokens, maskable, share=0.3, seed=0):
    return mask_tokens(
        tokens,
        maskable,
        share=share,
        mask_id=MASK,
        vocab_size=VOCABULARY,
        generator=torch.Generator().manual_seed(seed),
    )


def test_of_the_chosen_80_percent_are_masked_10_random_and_10_stay():
    tokens = torch.full((200, 500), 7)
    changed, chosen = masked(tokens, torch.ones_like(tokens, dtype=torch.bool))
    assert chosen.float().mean().item() == pytest.approx(0.3, abs=0.01)
    fates = changed[chosen]
    assert (fates == MASK).float().mean().item() == pytest.approx(0.8, abs=0.01)
    assert (fates == 7).float().mean().item() == pytest.approx(0.1, abs=0.01)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0.01, 0.99), length=st.integers(1, 30))
def test_what_was_not_chosen_stays_and_what_may_not_be_chosen_is_not(seed, share, length):
    tokens = torch.randint(
        6, VOCABULARY, (3, length), generator=torch.Generator().manual_seed(seed)
    )
    maskable = tokens % 3 != 0
    changed, chosen = masked(tokens, maskable, share, seed)
    assert torch.equal(changed[~chosen], tokens[~chosen])
    assert not bool((chosen & ~maskable).any())


def test_at_least_one_token_is_always_asked_for():
    tokens = torch.full((1, 3), 7)
    _, chosen = masked(tokens, torch.tensor([[False, True, False]]), share=1e-9)
    assert chosen.tolist() == [[False, True, False]]
