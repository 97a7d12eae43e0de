"""The output layer over candidates: a training step scores a few thousand pieces, not all of them.

The candidates of a step are the most frequent pieces, every target of the step, and a sample of
the rest. A sampled piece stands for others that were not drawn, so the logarithm of its chance to
be drawn is subtracted from its score: the sum over the candidates is then an unbiased estimate of
the softmax's normalizer (sampled softmax, Jean et al. 2015, arXiv 1412.2007). With 50,001 pieces
this leaves a step a twentieth of the output layer's work. Held-out losses never use it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

POWER = 0.75  # of the counts: rarer pieces are drawn more often than they occur (word2vec)


@dataclass(frozen=True)
class Candidates:
    """The pieces that a step's output layer is computed over.

    Parameters
    ----------
    pieces : Tensor of shape (C,)
        Ids, each once, in ascending order; every target of the step is among them.
    correction : Tensor of shape (C,)
        Added to the scores: 0 for pieces that are always there, −log(chance) for drawn ones.
    """

    pieces: Tensor
    correction: Tensor

    def places(self, targets: Tensor) -> Tensor:
        """Where each target stands among the candidates: (N,) → (N,)."""
        return torch.searchsorted(self.pieces, targets)

    def to(self, device: torch.device) -> "Candidates":
        return Candidates(self.pieces.to(device), self.correction.to(device))


class CandidateSampler:
    """Draws the candidates of a step: a pure function of the seed, the step and its targets.

    Parameters
    ----------
    counts : array of shape (V,)
        How often each piece occurs in the corpus.
    frequent : int
        How many of the most frequent pieces are always candidates.
    drawn : int
        How many draws (with replacement) are made from the rest.
    seed : int
        The training's seed.
    """

    def __init__(
        self, counts: NDArray[np.integer[Any]], *, frequent: int, drawn: int, seed: int
    ) -> None:
        by_count = np.argsort(-counts, kind="stable")
        self.always = np.zeros(len(counts), dtype=bool)
        self.always[by_count[:frequent]] = True
        self.rest = np.sort(by_count[frequent:])
        weights = (counts[self.rest] + 1.0) ** POWER  # + 1: no piece is impossible
        chances = weights / weights.sum() if len(self.rest) else weights
        self._cumulative = np.cumsum(chances)
        # Negatives are counted once however often they are drawn, so what counts is the chance
        # of being drawn at least once.
        chance = -np.expm1(drawn * np.log1p(-np.minimum(chances, 1 - 1e-9)))
        self._correction = np.zeros(len(counts), dtype=np.float32)
        self._correction[self.rest] = -np.log(np.maximum(chance, 1e-30))
        self.drawn, self.seed = drawn, seed

    def draw(self, targets: Tensor, step: int) -> Candidates:
        """The candidates for these targets (N,) in step `step`."""
        random = np.random.default_rng([self.seed, step, 2])
        certain = self.always.copy()
        certain[targets.numpy()] = True
        chosen = certain
        if len(self.rest) and self.drawn:
            places = np.searchsorted(self._cumulative, random.random(self.drawn))
            chosen = certain.copy()
            chosen[self.rest[np.minimum(places, len(self.rest) - 1)]] = True
        pieces = np.flatnonzero(chosen)
        # A drawn piece that is also a target is there for certain: it counts once, uncorrected.
        correction = np.where(certain[pieces], np.float32(0), self._correction[pieces])
        return Candidates(torch.from_numpy(pieces), torch.from_numpy(correction))


def gather_rows(weight: Tensor, rows: Tensor) -> Tensor:
    """`weight[rows]` with a sparse gradient: rows that were not gathered cost nothing.

    `rows` (C,) must be in ascending order without repetitions.
    """
    gathered: Tensor = _GatherRows.apply(weight, rows)
    return gathered


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, weight: Tensor, rows: Tensor) -> Tensor:
        context.save_for_backward(rows)
        context.shape = weight.shape
        return weight.index_select(0, rows)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (rows,) = context.saved_tensors
        sparse = torch.sparse_coo_tensor(
            rows.unsqueeze(0),
            gradients[0],
            context.shape,
            is_coalesced=True,
            check_invariants=False,
        )
        return sparse, None
