"""Token dropout: in every epoch of fine-tuning, some tokens of each text are left out at random.

The network then cannot rely on single words of the few texts that it is shown, and has less to
read. Known as word dropout (Iyyer et al. 2015, deep averaging networks) and as random deletion (Wei
and Zou 2019, easy data augmentation). Unlike there, how many tokens a row loses is no matter of
chance, only which: then the length of what is left is known beforehand, and batches of equally long
rows can be made. If every token were left out or not by itself, the longest row of each batch
would pad the others.
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
        Of a row's tokens that are left out, to the nearest whole number of them: of fewer than
        1 / (2 · share), none is.
    long_share : float
        The same for a text that is longer than one window.
    special : collection of int
        Ids that always stay: begin, end, separators.

    Example
    -------
    >>> dropout = TokenDropout(0.5, 0.5, {0, 1})
    >>> ids = np.array([0, 7, 8, 9, 10, 11, 12, 1])
    >>> ids[dropout.keep(ids, np.random.default_rng(0))].tolist()
    [0, 9, 10, 12, 1]
    """

    share: float
    long_share: float
    special: Collection[int]

    def count_kept(self, tokens: NDArray[np.int64], long: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many tokens of each row stay: all but the share, and never none.

        Parameters
        ----------
        tokens : array of shape (rows,)
            How many there are that are not special.
        long : array of shape (rows,)
            Whether the row's text is longer than one window.
        """
        share = np.where(long, self.long_share, self.share)
        left_out = np.floor(share * tokens + 0.5).astype(np.int64)
        return tokens - np.minimum(left_out, np.maximum(tokens - 1, 0))

    def keep(
        self, ids: NDArray[np.int64], random: np.random.Generator, *, long: bool = False
    ) -> NDArray[np.bool_]:
        """Which of a row's ids stay (T,)."""
        if not (self.long_share if long else self.share):
            return np.ones(len(ids), dtype=bool)
        stays = np.isin(ids, list(self.special))
        others = np.flatnonzero(~stays)
        kept = self.count_kept(np.array([len(others)]), np.array([long]))[0]
        stays[random.permutation(others)[:kept]] = True
        return stays
