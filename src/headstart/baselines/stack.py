"""A stack: the weighted mixture of the log-probabilities of several classifiers.

log p(class) = Σ weight · log p_member(class) + constant. There is one weight per member, fitted to
out-of-fold predictions. The sum of the weights acts as a temperature, and an overconfident member
gets a low weight.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from headstart.folds import make_folds
from headstart.run import Run

Floats = NDArray[np.float64]
PRIOR = 4.0  # pull towards equal weights, in rows' worth of curvature
MEMBERS = "members"


class Stack:
    """Mix the probabilities of two or more classifiers, with a weight for each.

    Two rules prevent overfitting to few rows. A prior pulls the weights towards equal ones. And if
    the log-likelihood of the mixture is not better than that of the best member by one nat per
    weight (Akaike's criterion), that member is used alone.

    With `members`, runs with the same labels by the name of their arm, a stack predicts texts and
    can be saved.
    """

    kind = "stack"

    def __init__(self, weights: ArrayLike, members: dict[str, Run] | None = None) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        self.members: Any = members

    @classmethod
    def fit(cls, X: Sequence[ArrayLike], y: ArrayLike) -> Self:
        """Fit the weights to the members' out-of-fold probabilities (rows, classes) and labels."""
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
        found = minimize(
            penalised_loss, equal, jac=True, method="L-BFGS-B", bounds=[(0, None)] * members
        ).x
        alone = [loss(member)[0] for member in np.eye(members)]
        if loss(found)[0] + members >= min(alone):
            found = np.eye(members)[np.argmin(alone)]
        return cls(found if found.any() else equal)

    def predict_proba(self, X: Sequence[ArrayLike]) -> Floats:
        """Mix the members' probabilities: (rows, classes)."""
        return np.asarray(softmax(self._mix(X), axis=1))

    def _mix(self, X: Sequence[ArrayLike]) -> Floats:
        """Sum weighted log-probabilities; dropping a member of weight 0 changes no bit."""
        weighted = zip(self.weights, _logs(X), strict=True)
        return np.asarray(sum(weight * member for weight, member in weighted if weight))

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The numbers of the members' labels."""
        return np.arange(len(next(iter(self.members.values())).labels))

    def scores(self, texts: Sequence[Any]) -> Floats:
        """Compute logits (texts, classes) from the members' predictions."""
        found = []
        for run in self.members.values():
            scores = run.scores(run.task.unlabelled(texts))
            proba = run.task.probabilities(scores, run.temperature)
            found.append(np.asarray(proba, np.float32))  # as the weights were fitted
        return self._mix(found)

    def write(self, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write the members that are not in the folder yet; return arrays and settings."""
        for name, run in self.members.items():
            if not (folder / MEMBERS / name).exists():
                run.save(folder / MEMBERS / name)
        return {"weights": self.weights}, {"members": list(self.members)}

    @classmethod
    def read(cls, folder: Path, arrays: dict[str, Any], settings: dict[str, Any]) -> Self:
        """Read what `write` wrote; LookupError, TypeError and ValueError mean damage."""
        weights, names = arrays["weights"], settings["members"]
        if any(Path(name).name != name for name in names):
            raise ValueError(f"the members {names} are not in the folder")
        if weights.shape != (len(names),) or not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError("its weights are not a positive number per member")
        members = {name: Run.open(folder / MEMBERS / name) for name in names}
        if len({run.labels for run in members.values()}) != 1:
            raise ValueError("the members of a stack must have the same labels")
        return cls(weights, members)


def fit_out_of_fold(probabilities: Sequence[ArrayLike], labels: ArrayLike) -> tuple[Stack, Floats]:
    """Fit a stack to all rows; return it with out-of-fold probabilities of the same rows."""
    members, y = [np.asarray(member) for member in probabilities], np.asarray(labels)
    stack = Stack.fit(members, y)
    oof_proba = stack.predict_proba(members)
    for fold in make_folds(y):
        other = Stack.fit([member[fold.train] for member in members], y[fold.train])
        oof_proba[fold.held] = other.predict_proba([member[fold.held] for member in members])
    return stack, oof_proba


def _logs(probabilities: Sequence[Any]) -> Floats:
    """Return the log-probabilities of the members: (members, rows, classes)."""
    members = [np.asarray(member, dtype=np.float64) for member in probabilities]
    if any(member.shape != members[0].shape or member.ndim != 2 for member in members):
        raise ValueError(f"the members' (rows, classes) differ: {[m.shape for m in members]}")
    # A probability of 0 would be a veto against all other members.
    return np.asarray(np.log(np.maximum(np.stack(members), 1e-7)))
