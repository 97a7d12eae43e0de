"""A stack: the weighted mixture of the log-probabilities of several classifiers.

log p(class) = Σ weight · log p_member(class) + constant. The weights, one per member, are fitted to
predictions of rows that no member was trained on; their sum acts as a temperature, and an
overconfident member gets a low one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from headstart.folds import make_folds
from headstart.progress import ProgressCallback
from headstart.run import Run, TextClassifier
from headstart.tasks.classification import Classification

Floats = NDArray[np.float64]
PRIOR = 4.0  # pull towards equal weights, in rows' worth of curvature
SMALLEST = 1e-7  # a probability of 0 would be a veto against all other members
MEMBERS = "members"


class Stack(BaseEstimator):  # type: ignore[misc]
    """Mix the probabilities of two or more classifiers.

    Two things prevent overfitting a hundred rows: the weights are pulled towards equal ones, and
    where the mixture does not explain the labels clearly better than the best member alone (by one
    nat for each weight: Akaike's criterion), that member is used alone.

    `X` is a sequence of the members' probabilities, each of shape (rows, classes); `y` are class
    numbers.

    Attributes
    ----------
    weights_ : array of shape (members,)
    """

    def fit(self, X: Sequence[ArrayLike], y: ArrayLike) -> Self:
        """Fit the weights to rows that no member was trained on."""
        if len(X) < 2:
            raise ValueError("a stack needs two or more members")
        logs, labels = _logs(X), np.asarray(y)
        members, rows = len(logs), np.arange(len(labels))
        equal = np.full(members, 1 / members)

        def loss(weights: Floats) -> tuple[float, Floats]:
            """Compute the log-loss of all rows together, in nats, and its gradient."""
            mixed = np.tensordot(weights, logs, axes=1)
            residual = softmax(mixed, axis=1)
            residual[rows, labels] -= 1
            value = -log_softmax(mixed, axis=1)[rows, labels].sum()
            return float(value), np.einsum("arc,rc->a", logs, residual)

        def penalised_loss(weights: Floats) -> tuple[float, Floats]:
            value, gradient = loss(weights)
            away = weights - equal
            return value + PRIOR * float(away @ away) / 2, gradient + PRIOR * away

        # Convex, and a handful of numbers: the minimum is found to rounding.
        bounds = [(0, None)] * members
        found = minimize(penalised_loss, equal, jac=True, method="L-BFGS-B", bounds=bounds).x
        alone = [loss(member)[0] for member in np.eye(members)]
        if loss(found)[0] + members >= min(alone):
            found = np.eye(members)[np.argmin(alone)]
        self.weights_ = np.asarray(found) if found.any() else equal
        return self

    @classmethod
    def equal(cls, members: int) -> Self:
        """Return a stack with equal weights, where there are no rows to fit them to."""
        stack = cls()
        stack.weights_ = np.full(members, 1 / members)
        return stack

    def predict_proba(self, X: Sequence[ArrayLike]) -> Floats:
        """Mix the members' probabilities."""
        check_is_fitted(self)
        logs = _logs(X)
        if len(logs) != len(self.weights_):
            raise ValueError(f"fitted on {len(self.weights_)} members, not {len(logs)}")
        return np.asarray(softmax(_mix(logs, self.weights_), axis=1))

    def predict(self, X: Sequence[ArrayLike]) -> NDArray[np.int64]:
        """Return the most probable class of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


def fit_out_of_fold(probabilities: Sequence[ArrayLike], labels: ArrayLike) -> tuple[Stack, Floats]:
    """Fit a stack to all rows; return it with out-of-fold probabilities of the same rows."""
    members, y = [np.asarray(member) for member in probabilities], np.asarray(labels)
    stack = Stack().fit(members, y)
    oof_proba = stack.predict_proba(members)
    for fold in make_folds(y):
        other = Stack().fit([member[fold.train] for member in members], y[fold.train])
        oof_proba[fold.held] = other.predict_proba([member[fold.held] for member in members])
    return stack, oof_proba


def over_all_classes(
    probabilities: ArrayLike, classes: Sequence[Any], all_classes: Sequence[Any]
) -> Floats:
    """Return columns for all classes, 0 for those that a classifier was not trained on."""
    p = np.asarray(probabilities, dtype=np.float64)
    places = {name: column for column, name in enumerate(all_classes)}
    spread = np.zeros((len(p), len(places)))
    spread[:, [places[name] for name in classes]] = p
    return spread


def _logs(probabilities: Sequence[Any]) -> Floats:
    """Return the log-probabilities of the members: (members, rows, classes)."""
    members = [np.asarray(member, dtype=np.float64) for member in probabilities]
    if any(member.shape != members[0].shape or member.ndim != 2 for member in members):
        raise ValueError(f"the members' (rows, classes) differ: {[m.shape for m in members]}")
    return np.asarray(np.log(np.maximum(np.stack(members), SMALLEST)))


def _mix(logs: Floats, weights: Floats) -> Floats:
    """Sum weighted log-probabilities; dropping a member of weight 0 changes no bit."""
    mixed = np.zeros(logs.shape[1:])
    for weight, member in zip(weights, logs, strict=True):
        if weight:
            mixed += weight * member
    return mixed


class StackClassifier(TextClassifier):
    """A fitted stack with its members, each a run in its folder.

    Parameters
    ----------
    members : dict of str to Run
        By the name of the arm; all with the same labels.
    weights : sequence of float
        One per member, above 0.
    """

    kind = "stack"

    def __init__(self, members: dict[str, Run], weights: Sequence[float]) -> None:
        if len(members) != len(weights) or not all(0 < float(one) < np.inf for one in weights):
            raise ValueError(f"{len(members)} members have the weights {list(weights)}")
        if not members or len({run.labels for run in members.values()}) > 1:
            raise ValueError("the members of a stack must have the same labels")
        self.members = members
        self.weights = np.asarray(weights, dtype=np.float64)
        self.classes_ = np.arange(len(next(iter(members.values())).labels))

    def scores(
        self, texts: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> NDArray[np.float64]:
        probabilities = []
        for run in self.members.values():
            assert isinstance(run.task, Classification)
            found = run.scores(run.task.unlabelled(texts), progress).values
            # In the precision of the predictions that the weights were fitted to.
            p = run.task.probabilities(found, run.temperature).astype(np.float32)
            probabilities.append(p)
        return _mix(_logs(probabilities), self.weights)

    def write(self, folder: Path) -> tuple[dict[str, Any], list[Path]]:
        for name, run in self.members.items():
            place = folder / MEMBERS / name
            if not place.exists():
                run.save(place)
        return {"weights": self._weights()}, []

    @classmethod
    def read(cls, folder: Path, settings: dict[str, Any]) -> Self:
        weights: dict[str, float] = settings["weights"]
        for name in weights:
            if Path(name).name != name:
                raise ValueError(f"the member {name!r} is not in the folder")
        members = {name: Run.open(folder / MEMBERS / name) for name in weights}
        return cls(members, list(weights.values()))

    def facts(self) -> dict[str, Any]:
        members = {name: run.facts() for name, run in self.members.items()}
        return {"weights": self._weights(), "members": members}

    def _weights(self) -> dict[str, float]:
        return dict(zip(self.members, self.weights.tolist(), strict=True))
