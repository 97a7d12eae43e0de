"""The `stack` arm: the probabilities of several classifiers, combined.

The combination is a weighted product: log p(class) = Σ weight · log p_arm(class) + constant. The
weights, one per arm, are fitted to rows that no arm was trained on; their sum acts as a
temperature, and an overconfident arm gets a low one. Two things keep a hundred rows from being
overfitted: the weights are pulled towards the equal mixture, and where the mixture does not explain
the labels clearly better than the best arm alone (by one nat for each weight: Akaike's criterion),
that arm is taken as it is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator

from headstart.evaluation.calibration import Floats
from headstart.folds import make_folds

PULL = 4.0  # of the prior: so many rows' worth of curvature in each weight
FOLDS = 5
SMALLEST = 1e-7  # a probability of 0 would be a veto against all other arms


class Stack(BaseEstimator):  # type: ignore[misc]
    """Combine two or more classifiers' probabilities (each rows × classes, the same classes).

    `fit` takes probabilities and class numbers of rows that the members were not trained on,
    `combine` the probabilities of any rows.
    """

    def fit(self, probabilities: Sequence[ArrayLike], labels: ArrayLike) -> "Stack":
        if len(probabilities) < 2:
            raise ValueError("a stack needs two or more arms")
        scores, y = arm_logs(probabilities), np.asarray(labels)
        arms, rows = len(scores), np.arange(len(y))
        equal = np.full(arms, 1 / arms)

        def loss(weights: Floats) -> tuple[float, Floats]:
            """Of all rows together, in nats, and its gradient."""
            mixed = np.tensordot(weights, scores, axes=1)
            residual = softmax(mixed, axis=1)
            residual[rows, y] -= 1
            value = -log_softmax(mixed, axis=1)[rows, y].sum()
            return float(value), np.einsum("arc,rc->a", scores, residual)

        def loss_and_pull(weights: Floats) -> tuple[float, Floats]:
            value, gradient = loss(weights)
            away = weights - equal
            return value + PULL * float(away @ away) / 2, gradient + PULL * away

        # Convex, and a handful of numbers: the minimum is found to rounding.
        found = minimize(
            loss_and_pull, equal, jac=True, method="L-BFGS-B", bounds=[(0, None)] * arms
        )
        alone = [loss(arm)[0] for arm in np.eye(arms)]
        better = loss(found.x)[0] + arms < min(alone)
        self.weights_ = np.asarray(found.x) if better else np.eye(arms)[np.argmin(alone)]
        if not self.weights_.any():  # no arm knows anything about these rows
            self.weights_ = equal
        return self

    @classmethod
    def equal(cls, arms: int) -> "Stack":
        """A stack of so many classifiers with the same weight for each, fitted to nothing."""
        stack = cls()
        stack.weights_ = np.full(arms, 1 / arms)
        return stack

    def combine(self, probabilities: Sequence[ArrayLike]) -> Floats:
        """The stack's own probabilities of these rows."""
        scores = arm_logs(probabilities)
        if len(scores) != len(self.weights_):
            raise ValueError(f"fitted on {len(self.weights_)} arms, not {len(scores)}")
        return np.asarray(softmax(mixed_logs(scores, self.weights_), axis=1))


def mixed_logs(logs: Floats, weights: Floats) -> Floats:
    """The weighted sum of log-probabilities (arms × rows × classes): rows × classes.

    Arm by arm: one whose weight is 0 may then be left out without a change in any bit.
    """
    mixed = np.zeros(logs.shape[1:])
    for weight, arm in zip(weights, logs, strict=True):
        if weight:
            mixed += weight * arm
    return mixed


def fit_out_of_fold(probabilities: Sequence[ArrayLike], labels: ArrayLike) -> tuple[Stack, Floats]:
    """A stack fitted to all rows, and what stacks say of the rows that they were not fitted to."""
    members = [np.asarray(member) for member in probabilities]
    stack, y = Stack().fit(members, labels), np.asarray(labels)
    own = stack.combine(members)
    for fold in make_folds(y, FOLDS):
        other = Stack().fit([member[fold.train] for member in members], y[fold.train])
        own[fold.held] = other.combine([member[fold.held] for member in members])
    return stack, own


def over_all_classes(probabilities: ArrayLike, own: Sequence[Any], every: Sequence[Any]) -> Floats:
    """Columns for `every` class, 0 for those that an arm has not seen in training."""
    p = np.asarray(probabilities, dtype=np.float64)
    places = {name: column for column, name in enumerate(every)}
    spread = np.zeros((len(p), len(every)))
    spread[:, [places[name] for name in own]] = p
    return spread


def arm_logs(probabilities: Sequence[Any]) -> Floats:
    """Logarithms of the probabilities of several arms: arms × rows × classes."""
    arms = [np.asarray(arm, dtype=np.float64) for arm in probabilities]
    if not arms or any(arm.shape != arms[0].shape or arm.ndim != 2 for arm in arms):
        raise ValueError(f"the arms' (rows, classes) differ: {[arm.shape for arm in arms]}")
    return np.asarray(np.log(np.maximum(np.stack(arms), SMALLEST)))
