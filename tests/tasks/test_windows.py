"""Long texts are read in windows and answered as a whole."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstart.model.config import POOLINGS, ClassificationConfig
from headstart.model.model import Model, new_head
from headstart.model.pooling import join_windows, pool
from headstart.tasks.examples import Examples, run_network
from tests.model.networks import tiny, tokens

LENGTHS = [[5], [4, 4], [6, 5, 5], [3], [6] * 9]


def examples(lengths=LENGTHS):
    generator = np.random.default_rng(0)
    return Examples(
        tokens=[generator.integers(30, size=sum(parts)) for parts in lengths],
        owners=np.arange(len(lengths)),
        targets=[0] * len(lengths),
        weights=np.ones(len(lengths), dtype=np.float32),
        windows=[np.array(parts) for parts in lengths],
    )


def classifier(pooling):
    base = tiny("small").base
    return Model(base, new_head(base, ClassificationConfig(classes=3, pooling=pooling), seed=2))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_text_in_windows_is_pooled_over_all_of_its_tokens(pooling):
    model = classifier(pooling)
    found = run_network(model, examples(), batch_tokens=20)
    for row, lengths in enumerate(LENGTHS):
        windows = torch.from_numpy(examples().tokens[row]).split(lengths)
        states = [model.base(window.unsqueeze(0))[0] for window in windows]  # (T, d) each
        together = torch.cat(states).unsqueeze(0)
        if pooling in ("last", "first"):  # one token per window, averaged
            place = -1 if pooling == "last" else 0
            vector = torch.stack([state[place] for state in states]).mean(0, keepdim=True)
        else:
            vector = pool(together, None, pooling)
        expected = model.head.classify(vector)[0].detach()
        torch.testing.assert_close(torch.from_numpy(found[row]), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_training_and_prediction_give_a_text_the_same_scores(pooling):
    model = classifier(pooling)
    batch = examples().batch(range(len(LENGTHS)))
    scores = model(batch.tokens, batch.segments, owners=batch.owners)
    found = torch.from_numpy(np.stack(run_network(model, examples(), batch_tokens=20)))
    torch.testing.assert_close(scores.detach(), found, atol=1e-5, rtol=1e-5)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.sampled_from(POOLINGS))
def test_a_single_window_is_the_text_itself(counts, pooling):
    hidden = torch.randn(len(counts), 4, 2, generator=torch.Generator().manual_seed(0))
    segments = (torch.arange(4) < torch.tensor(counts).unsqueeze(1)).long()
    vectors = pool(hidden, segments, pooling)
    joined = join_windows(vectors, torch.tensor(counts), torch.arange(len(counts)), pooling)
    torch.testing.assert_close(joined, vectors)


def test_an_answer_does_not_depend_on_the_other_texts():
    model = classifier("mean+max")
    together = run_network(model, examples(), batch_tokens=40)
    for row, lengths in enumerate(LENGTHS):
        alone = run_network(model, examples().picked(np.array([row])))
        (
            torch.testing.assert_close(
                torch.from_numpy(alone[0]), torch.from_numpy(together[row]), atol=1e-6, rtol=1e-6
            ),
            lengths,
        )


def test_what_is_trained_on_takes_no_more_windows_than_fit_evenly_spread():
    one = examples([[2] * 10])
    batch = one.batch([0], most=4)
    windows = one.tokens[0].reshape(10, 2)
    assert batch.tokens.tolist() == windows[[0, 3, 6, 9]].tolist()
    assert batch.owners.tolist() == [0] * 4
    assert one.batch([0]).tokens.shape == (10, 2)


def test_rows_without_windows_have_no_owners():
    plain = Examples(
        tokens=[tokens(4).numpy(), tokens(3).numpy()],
        owners=np.arange(2),
        targets=[0, 1],
        weights=np.ones(2, dtype=np.float32),
    )
    assert plain.batch([0, 1]).owners is None
