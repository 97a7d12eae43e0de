"""Token dropout: some tokens of each text are left out while it is learned, and only then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.tasks.examples import Examples, TokenDropout

SPECIAL = {0, 1}


def dropout(share=0.5, long_share=None):
    return TokenDropout(share, share if long_share is None else long_share, SPECIAL)


def random(seed=0):
    return np.random.default_rng(seed)


@given(
    words=st.lists(st.integers(2, 20), min_size=1, max_size=30),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 1_000),
)
def test_what_is_left_is_the_text_in_its_order_with_its_frame_and_a_word(words, share, seed):
    ids = np.array([0, *words, 1])
    kept = ids[dropout(share).keep(ids, random(seed))].tolist()
    assert kept[0] == 0
    assert kept[-1] == 1
    assert len(kept) > 2
    left = iter(words)
    assert all(word in left for word in kept[1:-1])


@pytest.mark.parametrize(("words", "kept"), [(1, 1), (2, 1), (9, 6), (10, 7), (1_000, 700)])
def test_the_share_is_that_of_the_words_left_out_however_they_are_drawn(words, kept):
    ids = np.array([0, *[7] * words, 1])
    assert {int(dropout(0.3).keep(ids, random(seed)).sum()) for seed in range(9)} == {kept + 2}


def test_every_word_is_left_out_equally_often():
    draws = [dropout(0.3).keep(np.full(10, 7), random(seed)) for seed in range(4_000)]
    # Five standard deviations of a share that is the mean of 4,000 draws.
    assert np.mean(draws, axis=0) == pytest.approx(0.7, abs=5 * np.sqrt(0.3 * 0.7 / 4_000))


def test_a_text_of_nothing_but_special_tokens_stays_whole():
    assert dropout(0.99).keep(np.array([0, 1]), random()).all()


def examples(**more):
    tokens = [np.array([0, *range(2, 2 + length), 1]) for length in (5, 9, 20)]
    return Examples(tokens, np.arange(3), [0, 1, 0], np.ones(3, dtype=np.float32), **more)


def test_a_batch_is_as_long_as_the_longest_text_that_is_left():
    batch = examples().batch([0, 1, 2], dropout=dropout(0.6), random=random())
    lengths = batch.segments.sum(1)
    assert batch.tokens.shape[1] == lengths.max() < 22


def test_windows_keep_their_owners():
    windows = [np.array([7]), np.array([6, 5]), np.array([11, 11])]
    batch = examples(windows=windows).batch([0, 1, 2], dropout=dropout(0.6), random=random())
    assert batch.owners.tolist() == [0, 1, 1, 2, 2]
    assert batch.tokens.shape[1] < 11


def test_texts_of_several_windows_can_lose_tokens_while_others_stay_whole():
    windows = [np.array([7]), np.array([6, 5]), np.array([11, 11])]
    batch = examples(windows=windows).batch([0, 1, 2], dropout=dropout(0.0, 0.6), random=random())
    kept = np.bincount(batch.owners, weights=batch.segments.sum(1)).tolist()
    assert kept[0] == 7
    assert kept[1] < 11
    assert kept[2] < 22


def test_a_long_text_of_which_only_one_window_is_read_still_loses_tokens():
    windows = [np.array([7]), np.array([6, 5]), np.array([11, 11])]
    how = {"most": 1, "dropout": dropout(0.0, 0.9), "random": random()}
    assert examples(windows=windows).batch([2], **how).segments.sum() < 11


@given(
    lengths=st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=4), min_size=1, max_size=8),
    share=st.floats(0.0, 0.9),
    long_share=st.floats(0.0, 0.9),
)
def test_the_rows_of_a_batch_are_as_long_as_they_were_said_to_be(lengths, share, long_share):
    windows = [np.array(one) + 2 for one in lengths]  # each with its frame
    tokens = [np.concatenate([[0, *[7] * words, 1] for words in one]) for one in lengths]
    count = len(lengths)
    made = Examples(
        tokens, np.arange(count), [0] * count, np.ones(count, dtype=np.float32), windows=windows
    )
    left = dropout(share, long_share)
    for row, said in enumerate(made.kept_after(left)):
        batch = made.batch([row], dropout=left, random=random())
        assert batch.segments.sum(1).tolist() == said.tolist()


def test_what_is_left_of_texts_without_windows_and_without_tokens():
    empty = np.array([], dtype=np.int64)
    made = Examples(
        [np.array([0, *[7] * 10, 1]), empty], np.arange(2), [0, 1], np.ones(2, dtype=np.float32)
    )
    assert [rows.tolist() for rows in made.kept_after(dropout(0.5))] == [[7], [0]]


def test_a_share_that_was_given_is_that_of_long_texts_too():
    given = FinetuneConfig.create(dataset=["rotten-tomatoes"], token_dropout=0.1)
    assert given.long_token_dropout == 0.1
    whole = FinetuneConfig.create(dataset=["rotten-tomatoes"], token_dropout=0.0)
    assert whole.long_token_dropout == 0.0


def test_by_default_only_long_texts_lose_tokens():
    usual = FinetuneConfig.create(dataset=["rotten-tomatoes"])
    assert usual.token_dropout is None
    assert usual.long_token_dropout > 0


def test_token_types_stay_with_their_tokens():
    kinds = [(np.arange(len(one)) % 2) for one in examples().tokens]
    batch = examples(token_types=kinds).batch([2], dropout=dropout(0.6), random=random())
    text = batch.tokens[0, :-1]
    assert (text[1:] % 2 != batch.token_types[0, 1:-1]).all()  # the id 2 has the place 1, and so on


def test_all_tokens_cannot_be_left_out():
    with pytest.raises(HeadstartError, match="token_dropout is 1"):
        FinetuneConfig.create(dataset=["rotten-tomatoes"], token_dropout=1.0)
