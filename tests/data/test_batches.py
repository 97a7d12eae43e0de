"""Batches of similar length: little padding, every text once, reproducible."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.batches import LengthBatches, shuffled_batch
from headstart.data.tokenizers import load_tokenizer

LAB = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cls-books-fr"

lengths_of_texts = st.lists(st.integers(0, 500), min_size=1, max_size=80)
seeds = st.integers(0, 2**32)


def padding_share(lengths, batches) -> float:
    """The share of positions that are padding when each batch is padded to its longest text."""
    lengths = np.asarray(lengths)
    batches = [np.asarray(batch) for batch in batches]
    used = sum(int(lengths[batch].sum()) for batch in batches)
    return 1 - used / sum(int(lengths[batch].max()) * len(batch) for batch in batches)


def epoch(batches: LengthBatches, number: int = 0) -> list[list[int]]:
    steps = batches.steps_per_epoch
    return [batches.batch(number * steps + step).tolist() for step in range(steps)]


@given(lengths=lengths_of_texts, batch_size=st.integers(1, 20), seed=seeds)
def test_every_epoch_has_every_text_once(lengths, batch_size, seed):
    batches = LengthBatches(lengths, batch_size=batch_size, seed=seed)
    for number in range(2):
        texts = [text for batch in epoch(batches, number) for text in batch]
        assert sorted(texts) == list(range(len(lengths)))


@given(lengths=lengths_of_texts, seed=seeds, step=st.integers(0, 10**6))
def test_a_step_needs_no_replay(lengths, seed, step):
    first = LengthBatches(lengths, batch_size=4, seed=seed)
    epoch(first)
    second = LengthBatches(lengths, batch_size=4, seed=seed)
    assert first.batch(step).tolist() == second.batch(step).tolist()


def test_the_order_of_lengths_is_shuffled():
    lengths = np.random.default_rng(0).integers(30, 500, 1600)
    batches = epoch(LengthBatches(lengths, batch_size=8, seed=0))
    means = [lengths[batch].mean() for batch in batches]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.2


def test_epochs_group_the_texts_differently():
    lengths = np.random.default_rng(0).integers(30, 500, 1600)
    batches = LengthBatches(lengths, batch_size=8, seed=0)
    first, second = ({tuple(sorted(b)) for b in epoch(batches, number)} for number in (0, 1))
    assert len(first & second) < 20


@pytest.mark.skipif(not LAB.is_dir(), reason="the lab's files are not here")
def test_padding_is_under_ten_percent_on_the_labs_reviews():
    lines = (LAB / "train.review.spm").read_text(encoding="utf-8").splitlines()
    lengths = [len(ids) for ids in load_tokenizer(LAB).encode(lines)]
    batches = LengthBatches(lengths, batch_size=8, seed=0)
    steps = range(batches.steps_per_epoch)
    plain = [shuffled_batch(len(lengths), 8, seed=0, step=step) for step in steps]
    assert padding_share(lengths, plain) > 0.4
    assert padding_share(lengths, map(batches.batch, steps)) < 0.1
