"""Which rows of a label budget choose settings: all of them in turn, or a part that is held back.

Rows that select settings are part of the label budget. A small budget is cut into folds, so that
each row selects once and trains otherwise; of a large one a tenth is held out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RowNumbers = NDArray[np.int64]
FOLDS = 3  # for networks and linear models
MANY = 2_000  # rows, from which on a part is held back in place of folds
HELD_BACK = 10  # one row in so many
MOST_HELD_BACK = 1_000


@dataclass(frozen=True)
class Fold:
    """Numbers of rows: those that train, and those that were held back from it."""

    train: RowNumbers
    held: RowNumbers


def make_folds(labels: ArrayLike, count: int = FOLDS) -> list[Fold]:
    """Make `count` stratified folds of rows by their class numbers; one where there are many rows.

    Every row is held back by one of them, except for the only row of a class. There are none where
    a fold would hold nothing back or leave fewer than two classes to train on: so few rows cannot
    choose anything.

    >>> [fold.held.tolist() for fold in make_folds([0, 0, 1, 1, 0, 1])]
    [[3, 4], [0, 2], [1, 5]]
    """
    y = np.asarray(labels)
    many = len(y) >= MANY
    parts = max(HELD_BACK, -(-len(y) // MOST_HELD_BACK)) if many else min(count, len(y))
    # A part for each row, dealt out class by class in a drawn order.
    drawn = np.random.default_rng(0).permutation(len(y))
    part = np.empty(len(y), dtype=np.int64)
    part[drawn[np.argsort(y[drawn], kind="stable")]] = np.arange(len(y)) % max(parts, 1)
    folds = []
    for number in range(1 if many else parts):
        held = part == number
        held &= np.isin(y, y[~held])  # the only row of a class stays in training
        folds.append(Fold(np.flatnonzero(~held), np.flatnonzero(held)))
    enough = all(len(np.unique(y[fold.train])) > 1 and len(fold.held) for fold in folds)
    return folds if enough else []
