"""The labels that each arm of a study needs for an accuracy, as words and as plain data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import Interval
from headstart.studies.analysis import Score, pooled_variance
from headstart.studies.comparison import Series
from headstart.studies.results import Predictions, Study, read_predictions, read_study
from headstart.study.labels_needed import FARTHEST, LabelsNeeded, labels_needed

STEP = 0.05  # a round accuracy is a multiple of it


@dataclass(frozen=True)
class ArmLabels:
    """What one arm needs for one accuracy."""

    series: Series
    goal: float
    needed: LabelsNeeded

    def document(self) -> dict[str, Any]:
        """Plain data; an end that is unbounded is None."""
        found = self.needed.labels
        ends = (found.value, found.low, found.high) if found else (None, None, None)
        shown = [None if end is None or math.isinf(end) else round(end) for end in ends]
        return {
            "arm": self.series[0],
            "objective": self.series[1],
            "target": self.goal,
            **dict(zip(("labels", "low", "high"), shown, strict=True)),
            "reason": self.needed.reason,
        }


def arm_labels(
    study: Study, predictions: Sequence[Predictions], goals: Sequence[float]
) -> list[ArmLabels]:
    """Every arm's answer for every goal, arms in the order of the study.

    Parameters
    ----------
    study : Study
        Its budgets are the curve.
    predictions : sequence of Predictions
        Of every training; seeds that lack a budget are left out.
    goals : sequence of float
        Accuracies between 0 and 1.
    """
    right = {said.run: said.right for said in predictions}
    variance = pooled_variance(right)
    order = {name: place for place, name in enumerate(study.arms)}
    every = {(run.arm, run.objective) for run in right}
    found = []
    for series in sorted(every, key=lambda one: (order.get(one[0], len(order)), one)):
        runs = {
            (r.labels, r.seed): row for r, row in right.items() if series == (r.arm, r.objective)
        }
        budgets = sorted({labels for labels, _ in runs})
        seeds = sorted({seed for _, seed in runs})
        whole = [s for s in seeds if all((labels, s) in runs for labels in budgets)]
        if not whole:
            continue
        table = np.array([[runs[labels, seed] for seed in whole] for labels in budgets])
        for goal in goals:
            needed = labels_needed(budgets, table, goal, variance)
            found.append(ArmLabels(series, goal, needed))
    return found


def study_labels(folder: Path, goals: Sequence[float]) -> tuple[Study, list[ArmLabels]]:
    """Read a study and answer; a goal that is no share is an error."""
    for goal in goals:
        if not 0 < goal < 1:
            raise HeadstartError(
                f"an accuracy of {goal:g} cannot be a goal", fix="write 85 % as --target 0.85"
            )
    study = read_study(folder)
    return study, arm_labels(study, read_predictions(folder), goals)


def usual_goal(score: Score) -> float:
    """The last round accuracy that an arm reaches with the most labels."""
    return max(STEP, round(math.floor(score.accuracy.value / STEP + 1e-9) * STEP, 2))


def labels_words(needed: LabelsNeeded, most: int) -> str:
    """The answer in words: two digits that count, since a fit knows no more."""
    if needed.labels is None:
        return needed.reason
    return f"about {rounded(needed.labels.value)} ({reach_words(needed.labels, most)})"


def reach_words(labels: Interval, most: int) -> str:
    """The interval; beyond the farthest goal that is answered, no number is told."""
    end = FARTHEST * most
    high = f"more than {rounded(end)}" if labels.high > end else rounded(labels.high)
    return f"{rounded(labels.low)} to {high}"


def rounded(labels: float) -> str:
    """A number of labels with two digits that count."""
    return f"{float(f'{labels:.2g}'):,.0f}"
