"""Fit a fresh head before the base learns: logistic regression on what the base says already.

A head drawn at random sends noise down into the base until it has learned something itself, and
undoes there what pretraining did. So its output layer is first fitted with the base held still, and
then both learn together (Kumar et al. 2022, "Fine-Tuning can Distort Pretrained Features and
Underperform Out-of-Distribution"). Every text is read once, and a regression on so few numbers is
quick.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headstart.evaluation.calibration import Floats
from headstart.folds import make_folds
from headstart.linear import (
    MAXIMUM_SHARE,
    STRENGTHS,
    FoldFeatures,
    choose_strength_in_folds,
    fit_regression,
)
from headstart.model.heads import ClassificationHead
from headstart.model.model import Model
from headstart.progress import ProgressCallback
from headstart.tasks.examples import Examples
from headstart.tasks.run_network import run_network

UNSEEN = 5.0  # how far below the others a class starts that no training text has
FOLDS = 3
MOST = 10_000  # examples: more make a regression slow, and no better a place to start from


def can_be_fitted(model: Model) -> bool:
    """One answer per text, the same for scratch and pretrained; other heads learn as they are."""
    return isinstance(model.head, ClassificationHead)


def fit_head(
    model: Model,
    train: Examples,
    weights: NDArray[np.float32],
    *,
    progress: ProgressCallback | None = None,
) -> None:
    """Put the regression's weights into the head's output layer; the rest stays as it is.

    Its strength is chosen among the training rows themselves, in folds. Labels that exclude each
    other are one regression; labels that do not are one each, and one that all or no text has stays
    as it was drawn.
    """
    head = model.head
    assert isinstance(head, ClassificationHead)
    if len(train) > MOST:
        rows = _some(np.asarray(train.targets))
        train, weights = train.picked(rows), weights[rows]
    targets = np.asarray(train.targets)
    if len(np.unique(targets)) < 2:
        return  # nothing to fit
    known = read_features(model, train, progress)
    center = known.mean(axis=0)
    scale = _scale(known - center, halves=head.config.pooling == "mean+max" and head.dense is None)
    known = (known - center) * scale
    output = head.output if head.config.bias else _with_bias(head.output)
    if targets.ndim == 1:
        _put(output, _fit(known, targets, weights), center, scale)
    for label in range(targets.shape[1] if targets.ndim > 1 else 0):
        yes = targets[:, label] > 0.5
        if yes.any() and not yes.all():
            fitted = _fit(known, yes, weights, STRENGTHS[1::3])
            _put_row(output, label, fitted.coef_[0], fitted.intercept_[0])
            _unscale(output, [label], center, scale)
    if output is not head.output:
        _fold_bias(output, head.output, center)


def read_features(
    model: Model, examples: Examples, progress: ProgressCallback | None = None
) -> Floats:
    """What the head's output layer is given for each example: (examples, features)."""
    head = model.head
    assert isinstance(head, ClassificationHead)
    output, training = head.output, model.training
    head.output = nn.Identity()  # type: ignore[assignment]
    model.eval()
    try:
        return np.asarray(run_network(model, examples, progress=progress), dtype=np.float64)
    finally:
        head.output = output
        model.train(training)


def _fit(
    known: Floats,
    targets: NDArray[Any],
    weights: NDArray[np.float32],
    strengths: Sequence[float] = STRENGTHS,
) -> Any:
    folds = [
        FoldFeatures(
            known[fold.train],
            targets[fold.train],
            known[fold.held],
            targets[fold.held],
            weights[fold.train],
        )
        for fold in make_folds(targets, FOLDS)
    ]
    # Too few rows to choose by: the middle is neither blind nor sure of itself.
    middle = sorted(strengths)[len(strengths) // 2]
    strength = choose_strength_in_folds(folds, strengths)[0] if folds else middle
    return fit_regression(known, targets, strength, weights=weights)


def _some(targets: NDArray[Any]) -> NDArray[np.int64]:
    """`MOST` examples, always the same, and one at least of every class."""
    chosen = np.random.default_rng(0).choice(len(targets), MOST, replace=False)
    if targets.ndim > 1:
        return np.sort(chosen)
    return np.union1d(chosen, np.unique(targets, return_index=True)[1])


def _scale(centred: Floats, *, halves: bool) -> Floats:
    """One scale for all columns, or for means and maxima one each (baselines/cooccurrence.py)."""
    parts = np.split(centred, 2, axis=1) if halves else [centred]
    shares = (1.0, MAXIMUM_SHARE)
    scales = [
        share / part.std() if part.std() > 0 else 0.0
        for part, share in zip(parts, shares, strict=False)
    ]
    return np.repeat(scales, parts[0].shape[1])


@torch.no_grad()
def _with_bias(output: nn.Linear) -> nn.Linear:
    layer = nn.Linear(output.in_features, output.out_features).to(output.weight)
    layer.weight.copy_(output.weight)
    nn.init.zeros_(layer.bias)
    return layer


@torch.no_grad()
def _fold_bias(fitted: nn.Linear, output: nn.Linear, center: Floats) -> None:
    """Without a bias, a step along the mean text stands in for it: on average it is the same."""
    mean = torch.from_numpy(center).to(fitted.weight)
    output.weight.copy_(fitted.weight + torch.outer(fitted.bias, mean) / mean.square().sum())


def _put(output: nn.Linear, fitted: Any, center: Floats, scale: Floats) -> None:
    classes: Sequence[int] = fitted.classes_.tolist()
    rows, grounds = fitted.coef_, fitted.intercept_
    if len(classes) == 2:  # scikit-learn has one line for two classes: half of it for each
        rows = np.concatenate([-rows, rows]) / 2
        grounds = np.concatenate([-grounds, grounds]) / 2
    for label, row, ground in zip(classes, rows, grounds, strict=True):
        _put_row(output, label, row, ground)
    _unscale(output, classes, center, scale)
    for label in set(range(output.out_features)) - set(classes):  # of it there is no text
        _put_row(output, label, np.zeros_like(center), grounds.min() - UNSEEN)


@torch.no_grad()
def _put_row(output: nn.Linear, label: int, weight: Floats, bias: float) -> None:
    output.weight[label] = torch.from_numpy(weight).to(output.weight)
    output.bias[label] = bias


@torch.no_grad()
def _unscale(output: nn.Linear, labels: Sequence[int], center: Floats, scale: Floats) -> None:
    """The regression saw centred and scaled columns; the layer sees them as they are."""
    to_scale = torch.from_numpy(scale).to(output.weight)
    to_center = torch.from_numpy(center).to(output.weight)
    for label in labels:
        output.weight[label] *= to_scale
        output.bias[label] -= output.weight[label] @ to_center
