"""The data's order depends on the seed and the step, and on nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headstart.text.store.token_source import DataOrder

sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32)


@given(items=sizes, batch_size=sizes, seed=seeds)
def test_every_epoch_has_every_item_once(items, batch_size, seed):
    order = DataOrder(items, batch_size=batch_size, seed=seed)
    stream = np.concatenate([order.batch(step) for step in range(-(-3 * items // batch_size))])
    for epoch in range(3):
        assert sorted(stream[epoch * items : (epoch + 1) * items]) == list(range(items))


@given(items=sizes, batch_size=sizes, seed=seeds, step=st.integers(0, 10**9))
def test_a_step_needs_no_replay(items, batch_size, seed, step):
    after_others = DataOrder(items, batch_size=batch_size, seed=seed)
    for earlier in range(3):
        after_others.batch(earlier)
    at_once = DataOrder(items, batch_size=batch_size, seed=seed)
    assert (after_others.batch(step) == at_once.batch(step)).all()
    assert len(at_once.batch(step)) == batch_size


def test_epochs_and_seeds_differ():
    first, second = (DataOrder(1000, batch_size=1000, seed=seed) for seed in (0, 1))
    assert (first.batch(0) != first.batch(1)).any()
    assert (first.batch(0) != second.batch(0)).any()
