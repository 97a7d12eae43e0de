"""Split the rows of a label budget for model selection: into folds, or with one held-out part.

The rows on which settings are selected are part of the label budget. A small budget is split into
folds, so that each row is held out once; of a large budget, a tenth is held out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RowNumbers = NDArray[np.int64]
FOLDS = 3  # for networks and linear models
MANY = 2_000  # rows; from this number on, one part is held out in place of folds
HELD_BACK = 10  # a tenth of the rows is held out
MOST_HELD_BACK = 1_000


@dataclass(frozen=True)
class Fold:
    """The numbers of the training rows and of the held-out rows."""

    train: RowNumbers
    held: RowNumbers


def make_folds(labels: ArrayLike, count: int = FOLDS) -> list[Fold]:
    """Make `count` stratified folds of rows by their class numbers; one where there are many rows.

    Every row is held out in one of them, except for the only row of a class. The list is empty if
    the rows are too few for a selection: if a fold would have no held-out row, or fewer than two
    classes to train on.

    >>> [fold.held.tolist() for fold in make_folds([0, 0, 1, 1, 0, 1])]
    [[3, 4], [0, 2], [1, 5]]
    """
    y = np.asarray(labels)
    many = len(y) >= MANY
    parts = max(HELD_BACK, -(-len(y) // MOST_HELD_BACK)) if many else min(count, len(y))
    # Rows are assigned to parts in turn, class by class, in random order.
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
