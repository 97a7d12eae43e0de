"""Start a new head as a linear probe: logistic regression on the features of the frozen base.

A random head sends noise into the base until it has learned something itself, and damages what
pretraining has learned there. So its output layer is fitted first, with the base frozen, and then
both are trained together (Kumar et al. 2022, "Fine-Tuning can Distort Pretrained Features and
Underperform Out-of-Distribution").
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

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
from headstart.tasks.examples import Examples, run_network

Floats = NDArray[np.float64]
UNSEEN = 5.0  # how far below the others the bias of a class without training texts starts
FOLDS = 3
MAX_EXAMPLES = 10_000  # more make the regression slow, and no better a start


def fit_head(
    model: Model,
    examples: Examples,
    weights: NDArray[np.float32],
    *,
    progress: ProgressCallback | None = None,
) -> None:
    """Fit the output layer of a classification head; other heads stay as they are.

    The regularisation is selected among the examples themselves, in folds. Classes that exclude
    each other are one regression; labels that do not are one each, and a label that all or no
    text has stays random.
    """
    head = model.head
    if not isinstance(head, ClassificationHead):
        return
    if len(examples) > MAX_EXAMPLES:
        rows = _sample(np.asarray(examples.targets))
        examples, weights = examples.picked(rows), weights[rows]
    targets = np.asarray(examples.targets)
    if len(np.unique(targets)) < 2:
        return
    features = probe_features(model, examples, progress)
    center = features.mean(axis=0)
    features -= center
    scale = _feature_scale(features, halves=head.config.pooling == "mean+max" and not head.dense)
    features *= scale
    if targets.ndim == 1:
        fitted = _fit(features, targets, weights)
        coefficients, intercepts = _for_every_class(fitted, head.output.out_features)
        _set_output(head.output, slice(None), coefficients * scale, intercepts, center)
        return
    for label in range(targets.shape[1]):
        positive = targets[:, label] > 0.5
        if positive.any() and not positive.all():
            fitted = _fit(features, positive, weights, STRENGTHS[1::3])
            _set_output(head.output, [label], fitted.coef_ * scale, fitted.intercept_, center)


def probe_features(
    model: Model, examples: Examples, progress: ProgressCallback | None = None
) -> Floats:
    """Return the input of the head's output layer for each example: (examples, features)."""
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
    features: Floats,
    targets: NDArray[Any],
    weights: NDArray[np.float32],
    strengths: Sequence[float] = STRENGTHS,
) -> Any:
    folds = [
        FoldFeatures(
            features[fold.train],
            targets[fold.train],
            features[fold.held],
            targets[fold.held],
            weights[fold.train],
        )
        for fold in make_folds(targets, FOLDS)
    ]
    if folds:
        strength = choose_strength_in_folds(folds, strengths)[0]
    else:  # too few rows to select on: the middle
        strength = sorted(strengths)[len(strengths) // 2]
    return fit_regression(features, targets, strength, weights=weights)


def _sample(targets: NDArray[Any]) -> NDArray[np.int64]:
    """Draw `MAX_EXAMPLES` examples, always the same, with at least one of every class."""
    drawn = np.random.default_rng(0).choice(len(targets), MAX_EXAMPLES, replace=False)
    if targets.ndim > 1:
        return np.sort(drawn)
    return np.union1d(drawn, np.unique(targets, return_index=True)[1])


def _feature_scale(centered: Floats, *, halves: bool) -> Floats:
    """One scale for all columns, or one each for means and maxima (baselines/cooccurrence.py)."""
    parts = np.split(centered, 2, axis=1) if halves else [centered]
    shares = (1.0, MAXIMUM_SHARE)
    scales = [
        share / part.std() if part.std() > 0 else 0.0
        for part, share in zip(parts, shares, strict=False)
    ]
    return np.repeat(scales, parts[0].shape[1])


def _for_every_class(fitted: Any, classes: int) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of every class, also of those without a training text."""
    rows, biases = fitted.coef_, fitted.intercept_
    if len(fitted.classes_) == 2:  # scikit-learn has one row for two classes: half of it for each
        rows = np.concatenate([-rows, rows]) / 2
        biases = np.concatenate([-biases, biases]) / 2
    coefficients = np.zeros((classes, rows.shape[1]))
    intercepts = np.full(classes, biases.min() - UNSEEN)
    coefficients[fitted.classes_], intercepts[fitted.classes_] = rows, biases
    return coefficients, intercepts


@torch.no_grad()
def _set_output(
    output: nn.Linear, rows: Any, coefficients: Floats, intercepts: Floats, center: Floats
) -> None:
    """Put a regression on centred features into rows of the output layer.

    Without a bias, a step along the mean text stands in for it: on average it is the same.
    """
    bias = intercepts - coefficients @ center
    if hasattr(output.bias, "dtype"):
        output.bias[rows] = torch.from_numpy(bias).to(output.bias)
    else:
        coefficients = coefficients + np.outer(bias, center) / np.square(center).sum()
    output.weight[rows] = torch.from_numpy(coefficients).to(output.weight)
