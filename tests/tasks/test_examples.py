"""Examples in batches: windows of long texts, token dropout, padding, pooling."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.errors import HeadstartError
from headstart.model.config import POOLINGS, ClassificationConfig
from headstart.model.model import Model, new_head
from headstart.model.pooling import pool
from headstart.tasks.task import Examples, TokenDropout, run_network
from headstart.training.finetune import finetune
from tests.labelled import config, splits
from tests.model.networks import tiny

LENGTHS = [[5], [4, 4], [6, 5, 5], [3], [6] * 9]


def examples(lengths=LENGTHS, targets=None, **more):
    """Make examples of rows that begin with 0, end with 1 and have other ids in between."""
    random = np.random.default_rng(0)
    tokens = [
        [np.array([0, *random.integers(2, 30, size=n - 2), 1]) for n in one] for one in lengths
    ]
    count = len(lengths)
    weights = np.ones(count, dtype=np.float32)
    return Examples(tokens, np.arange(count), targets or [0] * count, weights, **more)


def classifier(pooling):
    base = tiny("small").base
    return Model(base, new_head(base, ClassificationConfig(classes=3, pooling=pooling), seed=2))


# Windows


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_text_in_windows_is_pooled_over_all_of_its_tokens_in_prediction_and_training(pooling):
    model = classifier(pooling)
    batch = examples().batch(range(len(LENGTHS)))
    trained = model(batch.tokens, batch.segments, owners=batch.owners).detach()
    found = run_network(model, examples(), batch_tokens=20)
    for row, windows in enumerate(examples().tokens):
        states = [model.base(torch.from_numpy(one).unsqueeze(0))[0] for one in windows]  # (T, d)
        vector = pool(torch.cat(states).unsqueeze(0), None, pooling)
        if pooling in ("last", "first"):  # one token per window, averaged
            place = -1 if pooling == "last" else 0
            vector = torch.stack([state[place] for state in states]).mean(0, keepdim=True)
        expected = model.head.classify(vector)[0].detach()
        for scores in (torch.from_numpy(found[row]), trained[row]):
            torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)


def test_training_takes_no_more_windows_than_fit_evenly_spread():
    one = examples([[3] * 10])
    batch = one.batch([0], most=4)
    assert batch.tokens.tolist() == np.stack(one.tokens[0])[[0, 3, 6, 9]].tolist()
    assert batch.owners.tolist() == [0] * 4
    assert one.batch([0]).tokens.shape == (10, 3)
    assert examples([[4], [3]]).batch([0, 1]).owners is None


# Token dropout


def dropout(share=0.5, long_share=None):
    return TokenDropout(share, share if long_share is None else long_share, {0, 1})


def random(seed=0):
    return np.random.default_rng(seed)


@given(
    words=st.lists(st.integers(2, 20), min_size=1, max_size=30),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 1_000),
)
def test_what_is_left_is_the_text_in_its_order_with_its_frame_and_a_word(words, share, seed):
    ids = np.array([0, *words, 1])
    first, *kept, last = ids[dropout(share).keep(ids, random(seed))].tolist()
    assert (first, last) == (0, 1)
    assert kept
    left = iter(words)
    assert all(word in left for word in kept)


@pytest.mark.parametrize(("words", "kept"), [(0, 0), (1, 1), (2, 1), (9, 6), (1_000, 700)])
def test_the_share_of_dropped_words_is_not_random(words, kept):
    ids = np.array([0, *[7] * words, 1])
    assert {int(dropout(0.3).keep(ids, random(seed)).sum()) for seed in range(9)} == {kept + 2}


def test_long_texts_can_lose_tokens_while_others_stay_whole():
    made, how = examples([[7], [6, 5]]), {"dropout": dropout(0.0, 0.6), "random": random()}
    batch = made.batch([0, 1], **how)
    assert batch.owners.tolist() == [0, 1, 1]
    assert batch.segments.sum(1).tolist() == [7, 4, 3]
    assert made.batch([1], most=1, **how).segments.sum() == 4


def test_token_types_stay_with_their_tokens():
    made = examples([[22]])
    made = examples([[22]], token_types=[made.tokens[0][0] % 2])
    batch = made.batch([0], dropout=dropout(0.6), random=random())
    assert (batch.tokens % 2 == batch.token_types).all()


# Padding


# Pooling is used or rejected, never ignored.


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_a_stock_head_with_another_pooling_is_rejected(tmp_path, objective):
    settings = config(objective=objective, pooling="max", head="stock", epochs=1)
    with pytest.raises(HeadstartError, match="stock head cannot pool with max") as error:
        finetune(settings, tmp_path / "run", splits=splits())
    assert "--head stock" in error.value.fix
    assert not (tmp_path / "run" / "model.safetensors").exists()
