"""Token dropout: in every epoch of fine-tuning, some tokens of each text are left out at random.

The network then cannot rely on single words of the few texts that it is shown, and has less to
read. Known as word dropout (Iyyer et al. 2015, deep averaging networks) and as random deletion (Wei
and Zou 2019, easy data augmentation).
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TokenDropout:
    """Draws which tokens of a row stay.

    Parameters
    ----------
    share : float
        Of the tokens that are left out, on average.
    long_share : float
        The same for a text that is longer than one window.
    special : collection of int
        Ids that always stay: begin, end, separators.
    random : numpy.random.Generator
        Decides.

    Example
    -------
    >>> dropout = TokenDropout(0.5, 0.5, {0, 1}, np.random.default_rng(0))
    >>> ids = np.array([0, 7, 8, 9, 10, 11, 1])
    >>> ids[dropout.keep(ids)].tolist()
    [0, 10, 11, 1]
    """

    share: float
    long_share: float
    special: Collection[int]
    random: np.random.Generator

    def keep(self, ids: NDArray[np.int64], *, long: bool = False) -> NDArray[np.bool_]:
        """Which of a row's ids stay (T,); all of them where no word would be left."""
        share = self.long_share if long else self.share
        if not share:
            return np.ones(len(ids), dtype=bool)
        special = np.isin(ids, list(self.special))
        drawn = self.random.random(len(ids)) >= share
        if not (drawn & ~special).any():
            return np.ones(len(ids), dtype=bool)
        return drawn | special
