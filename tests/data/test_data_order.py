"""The data's order depends on the seed and the step, and on nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.batches import shuffled_batch

sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32)


@given(items=sizes, batch_size=sizes, seed=seeds)
def test_every_epoch_has_every_item_once(items, batch_size, seed):
    steps = range(-(-3 * items // batch_size))
    batches = [shuffled_batch(items, batch_size, seed=seed, step=step) for step in steps]
    assert {len(batch) for batch in batches} == {batch_size}
    stream = np.concatenate(batches)
    for epoch in range(3):
        assert sorted(stream[epoch * items : (epoch + 1) * items]) == list(range(items))


def test_a_batch_depends_on_seed_and_step_alone():
    expected = [5, 1, 8, 4]
    shuffled_batch(10, 3, seed=1, step=0)
    assert shuffled_batch(10, 4, seed=1, step=2_000).tolist() == expected
