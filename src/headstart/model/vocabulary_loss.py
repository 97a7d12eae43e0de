"""The cross-entropy of a large vocabulary without ever holding tokens × vocabulary.

The output layer and its loss are computed together, a few hundred tokens at a time, in one
buffer that is used again and again; the gradients are taken in the same go, while the chunk is
still in the cache. Equal to `cross_entropy(hidden @ weightᵀ + bias, targets)` to rounding. In a
training step it can be restricted to candidates.

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
import torch.nn.functional as F
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


CHUNK = 256  # tokens; see docs/speed.md
MULTIPLE = 64  # rows of the vocabulary; products of odd sizes run at half the speed


@dataclass(frozen=True)
class VocabularyTargets:
    """Which positions of a batch must be predicted, and over which pieces.

    Parameters
    ----------
    positions : Tensor of shape (N,)
        Places of the targets in the flattened batch (B·T).
    targets : Tensor of shape (N,)
        The right piece at each of them.
    candidates : Candidates or None
        The pieces to score; None scores the whole vocabulary.
    """

    positions: Tensor
    targets: Tensor
    candidates: Candidates | None = None

    def pick(self, hidden: Tensor) -> Tensor:
        """The hidden states at the positions: (B, T, d) → (N, d)."""
        flat = hidden.flatten(0, 1)
        if self.positions.numel() == flat.size(0):
            everywhere = torch.arange(flat.size(0), device=flat.device)
            if torch.equal(self.positions, everywhere):
                return flat  # a target at every place, in order: no copy is needed
        return flat[self.positions]


def vocabulary_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, to: VocabularyTargets
) -> Tensor:
    """The summed cross-entropy of an output layer at its targets.

    hidden (N, d), weight (V, d), bias (V,) → a scalar in fp32.
    """
    if to.candidates is None:
        return chunked_cross_entropy(hidden, weight, bias, to.targets)
    rows = gather_rows(weight, to.candidates.pieces)  # (C, d)
    shift = to.candidates.correction
    if bias is not None:
        shift = shift + gather_rows(bias, to.candidates.pieces)
    return chunked_cross_entropy(hidden, rows, shift, to.candidates.places(to.targets))


def chunked_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, chunk: int = CHUNK
) -> Tensor:
    """The sum of the losses (a scalar, fp32). hidden (N, d), weight (V, d), targets (N)."""
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        hidden = hidden.to(torch.get_autocast_dtype(kind))
    if not torch.is_grad_enabled():  # then no gradient is to be computed on the way
        hidden, weight = hidden.detach(), weight.detach()
        bias = None if bias is None else bias.detach()
    with torch.autocast(kind, enabled=False):  # the precision is chosen; nothing else may change it
        loss: Tensor = _ChunkedCrossEntropy.apply(hidden, weight, bias, targets, chunk)
    return loss


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        chunk: int,
    ) -> Tensor:
        wanted = any(context.needs_input_grad[:3])
        padded, padded_bias = _pad(weight, bias, hidden.dtype)
        size = min(chunk, max(1, hidden.size(0)))
        scores = torch.empty(size, padded.size(0), dtype=hidden.dtype, device=hidden.device)
        hidden_gradient = torch.empty_like(hidden) if wanted else None
        weight_gradient = torch.zeros(padded.shape, device=hidden.device) if wanted else None
        bias_gradient = torch.zeros(padded.size(0), device=hidden.device) if wanted else None
        total = torch.zeros((), device=hidden.device)
        for start in range(0, hidden.size(0), chunk):
            part, answers = hidden[start : start + chunk], targets[start : start + chunk, None]
            probabilities, loss = _one_chunk(
                part, padded, padded_bias, answers, scores[: part.size(0)]
            )
            total += loss
            if hidden_gradient is None or weight_gradient is None or bias_gradient is None:
                continue
            # softmax minus one at the answer is the gradient of the scores
            probabilities.scatter_add_(1, answers, probabilities.new_full(answers.shape, -1.0))
            torch.mm(probabilities, padded, out=hidden_gradient[start : start + chunk])
            if weight_gradient.dtype == probabilities.dtype:
                weight_gradient.addmm_(probabilities.t(), part)
            else:
                weight_gradient += probabilities.t() @ part
            if bias is not None:
                bias_gradient += probabilities.sum(0)
        rows = weight.size(0)
        if hidden_gradient is not None and weight_gradient is not None:
            kept_bias = None if bias is None or bias_gradient is None else bias_gradient[:rows]
            context.save_for_backward(hidden_gradient, weight_gradient[:rows], kept_bias)
        context.dtypes = (hidden.dtype, weight.dtype)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias = context.saved_tensors
        scale = gradients[0]
        hidden_dtype, weight_dtype = context.dtypes
        # In place: nobody else holds these, and a copy of the weight's is as large as the weight.
        return (
            hidden.mul_(scale).to(hidden_dtype),
            weight.mul_(scale).to(weight_dtype),
            None if bias is None else bias.mul_(scale).to(weight_dtype),
            None,
            None,
        )


def _one_chunk(
    part: Tensor, weight: Tensor, bias: Tensor | None, answers: Tensor, scores: Tensor
) -> tuple[Tensor, Tensor]:
    """The chunk's probabilities (in the place of its scores) and the sum of its losses."""
    if bias is None:
        torch.mm(part, weight.t(), out=scores)
    else:
        torch.addmm(bias, part, weight.t(), out=scores)
    picked = scores.gather(1, answers).float()
    if scores.dtype != torch.float32:
        losses = scores.logsumexp(1, keepdim=True).float() - picked
        return torch.softmax(scores, 1, out=scores), losses.sum()
    # The softmax of the highest score tells the logarithm of the sum, without a pass of its own.
    highest, place = scores.max(1, keepdim=True)
    probabilities = torch.softmax(scores, 1, out=scores)
    log_sum = highest - probabilities.gather(1, place).log()
    return probabilities, (log_sum - picked).sum()


def _pad(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Rows up to the next multiple, which no target names and no probability reaches."""
    missing = -weight.size(0) % MULTIPLE
    weight = weight.detach().to(dtype)
    if bias is not None:
        bias = bias.detach().to(dtype)
    if not missing:
        return weight, bias
    if bias is None:
        bias = weight.new_zeros(weight.size(0))
    return F.pad(weight, (0, 0, 0, missing)), F.pad(bias, (0, missing), value=float("-inf"))
