"""The order of the data depends on the seed and the step alone; every item comes once per epoch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.batches import LengthBatches, shuffled_batch

sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32)
lengths_of_texts = st.lists(st.integers(0, 500), min_size=1, max_size=80)


@given(items=sizes, batch_size=sizes, seed=seeds)
def test_every_epoch_has_every_item_once(items, batch_size, seed):
    steps = range(-(-3 * items // batch_size))
    batches = [shuffled_batch(items, batch_size, seed=seed, step=step) for step in steps]
    assert {len(batch) for batch in batches} == {batch_size}
    stream = np.concatenate(batches)
    for epoch in range(3):
        assert sorted(stream[epoch * items : (epoch + 1) * items]) == list(range(items))


def test_a_batch_depends_on_seed_and_step_alone():
    shuffled_batch(10, 3, seed=1, step=0)
    assert shuffled_batch(10, 4, seed=1, step=2_000).tolist() == [5, 1, 8, 4]


@given(lengths=lengths_of_texts, batch_size=st.integers(1, 20), seed=seeds)
def test_every_epoch_has_every_text_once_and_a_step_needs_no_replay(lengths, batch_size, seed):
    batches = LengthBatches(lengths, batch_size=batch_size, seed=seed)
    steps = batches.steps_per_epoch
    for number in range(2):
        found = [batches.batch(number * steps + step).tolist() for step in range(steps)]
        assert sorted(text for batch in found for text in batch) == list(range(len(lengths)))
        assert sum(len(batch) < batch_size for batch in found) <= 1
    again = LengthBatches(lengths, batch_size=batch_size, seed=seed)
    assert again.batch(2 * steps - 1).tolist() == found[-1]


def test_batches_of_similar_lengths_have_little_padding_and_are_shuffled():
    lengths = np.random.default_rng(0).integers(30, 500, 1600)
    batches = LengthBatches(lengths, batch_size=8, seed=0)
    first, second = ([batches.batch(200 * epoch + n) for n in range(200)] for epoch in (0, 1))
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in first)
    assert lengths.sum() / padded > 0.9
    means = [lengths[batch].mean() for batch in first]
    assert abs(np.corrcoef(means, range(200))[0, 1]) < 0.2
    assert len({tuple(sorted(b)) for b in first} & {tuple(sorted(b)) for b in second}) < 20
