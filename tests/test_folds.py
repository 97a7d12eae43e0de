"""Folds of a budget's rows: each row is held out once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.folds import MANY, MOST_HELD_BACK, make_folds

LABELS = st.lists(st.integers(0, 4), min_size=0, max_size=80)


@given(LABELS, st.integers(2, 6))
def test_every_row_is_held_back_once_and_trains_otherwise(labels, count):
    folds = make_folds(labels, count)
    for fold in folds:
        assert sorted([*fold.train, *fold.held]) == list(range(len(labels)))
        trained = {labels[row] for row in fold.train}
        assert len(trained) > 1
        assert trained >= {labels[row] for row in fold.held}
    if folds:
        alone = [row for row, label in enumerate(labels) if labels.count(label) == 1]
        held = sorted(row for fold in folds for row in fold.held.tolist())
        assert held == sorted({*range(len(labels))} - {*alone})


@pytest.mark.parametrize("labels", [[], [0], [0, 1], [0, 0, 0, 0]])
def test_too_few_rows_make_no_folds(labels):
    assert make_folds(labels, 3) == []


def test_classes_keep_their_shares():
    labels = np.repeat([0, 1], [60, 30])
    for fold in make_folds(labels, 3):
        assert np.bincount(labels[fold.held]).tolist() == [20, 10]


@pytest.mark.parametrize("rows", [MANY, 100 * MANY])
def test_of_many_rows_one_part_is_held_back(rows):
    labels = np.arange(rows) % 2
    (fold,) = make_folds(labels, 5)
    assert len(fold.held) == min(rows // 10, MOST_HELD_BACK)
    assert abs(labels[fold.held].mean() - 0.5) < 0.01
