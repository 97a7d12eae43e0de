"""Accuracy by tokens of pretraining: is it worth pretraining longer?

`headstart compare … --tokens 0.5M,1M,2M` makes the study with the most tokens, and for each smaller
amount a study of the headline arm alone, in `tokens/AMOUNT/`, with the same rows, budgets and
seeds. Every amount is a pretraining of its own: a checkpoint on the way to a larger one would still
have the learning rate of a training that goes on. No tokens at all is the arm `counted`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import Interval
from headstart.studies.arms import headline_arm
from headstart.studies.comparison import Series, find_comparison, series_of
from headstart.studies.results import Predictions, Study, read_predictions, read_study
from headstart.study.statistics import mean_interval, paired_difference, seed_variance

if TYPE_CHECKING:
    from headstart.studies.run import StudyListener, StudyRun

FOLDER = "tokens"


def smaller_study(study: "StudyRun", tokens: int, listener: "StudyListener") -> "StudyRun":
    """The study of the headline arm with fewer tokens, inside the folder of the whole one."""
    from headstart.studies.run import StudyRun  # a report does not wait for what trains

    headline = headline_arm(study.recipe.arms)
    if headline is None or study.recipe.base:
        raise HeadstartError(
            "several amounts of tokens need an arm that is pretrained here",
            fix="leave --base out and let --arms have pretrained, or give one amount",
        )
    recipe = study.recipe.replace(
        tokens=tokens,
        arms=[headline.name],
        seeds=len(study.plan.seeds),
        labels=[str(labels) for labels in study.plan.budgets],
        minutes=None,
    )
    smaller = StudyRun(recipe, study.folder / FOLDER / str(tokens), listener=listener)
    if not smaller.is_resumed:  # nothing but the tokens may differ
        kept = ("epochs", "jobs", "threads", "pretrain_threads", "tries")
        smaller.plan = replace(smaller.plan, **{name: getattr(study.plan, name) for name in kept})
    return smaller


@dataclass(frozen=True)
class TokenPoint:
    """The test accuracy after so many tokens, at one budget."""

    tokens: int
    labels: int
    accuracy: Interval


@dataclass(frozen=True)
class TokenSeries:
    """One objective's accuracies by tokens, and what each larger amount added to the one before."""

    objective: str
    points: list[TokenPoint]
    gains: list[tuple[int, int, Interval]]  # from, to, mean over all budgets


def read_token_series(
    folder: Path, study: Study, predictions: Sequence[Predictions]
) -> list[TokenSeries]:
    """What the studies in `tokens/` came to, beside the whole one; empty if there are none."""
    places = sorted(
        (place for place in (folder / FOLDER).glob("*") if (place / "study.json").is_file()),
        key=lambda place: int(place.name),
    )
    comparison = find_comparison({said.run.arm for said in predictions})
    if not places or comparison is None:
        return []
    others = [(read_study(place), read_predictions(place)) for place in places]
    found = []
    for part in study.pretraining:
        headline = series_of(comparison.headline, part.objective)
        tables = {
            _tokens(one, part.objective): _table(said, headline, study)
            for one, said in [*others, (study, predictions)]
        }
        if len(comparison.chain) > 2:
            tables[0] = _table(predictions, series_of(comparison.nearest, part.objective), study)
        whole = {tokens: table for tokens, table in sorted(tables.items()) if table is not None}
        cells = {
            (tokens, place): one
            for tokens, table in whole.items()
            for place, one in enumerate(table)
        }
        pairs = [(one, other) for one, other in combinations(cells, 2) if one[1] == other[1]]
        variance = seed_variance(cells, pairs)
        points = [
            TokenPoint(tokens, labels, mean_interval(table[place], variance))
            for tokens, table in whole.items()
            for place, labels in enumerate(study.budgets)
        ]
        gains = [
            (before, after, paired_difference(table.mean(0), smaller.mean(0), variance))
            for (before, smaller), (after, table) in pairwise(whole.items())
            if table.shape == smaller.shape
        ]
        found.append(TokenSeries(part.objective, points, gains))
    return found


def _tokens(study: Study, objective: str) -> int:
    """The tokens that the base was really pretrained on: whole steps."""
    points = [part.points for part in study.pretraining if part.objective == objective]
    return round(points[0][-1]["tokens"] or 0) if points and points[0] else 0


def _table(predictions: Sequence[Predictions], series: Series, study: Study) -> np.ndarray | None:
    """(budgets, seeds, rows), 1 where right; None unless every training is there."""
    right = {
        (said.run.labels, said.run.seed): said.right
        for said in predictions
        if (said.run.arm, said.run.objective) == series
    }
    if any((labels, seed) not in right for labels in study.budgets for seed in study.seeds):
        return None
    return np.array([[right[labels, seed] for seed in study.seeds] for labels in study.budgets])
