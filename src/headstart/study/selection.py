"""Select the settings of a model with the rows of its label budget.

A network tries two settings, the same two for every arm: the usual one, and one that learns longer
and faster, which is what a network without pretraining needs. Each is trained without the rows of
the first fold, and the lower loss on those rows selects. Then the network is trained on all rows
of the budget. Every training ends its schedule: one that is stopped half-way, at a high rate, is
worse than a shorter one (research/recipes.md).

The folds are the same for every arm: three of fewer than 2,000 rows, one held-out tenth of more.
The out-of-fold predictions of the selection trainings are what temperature, stack and `best/` rest
on; the validation and test parts have no influence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart import folds
from headstart.config import FinetuneConfig
from headstart.data.dataset import Splits
from headstart.evaluation.calibration import at_temperature, calibrated_loss, fit_temperature
from headstart.folds import Fold
from headstart.study.data import has_classes
from headstart.tasks.task import Task
from headstart.training.finetune import finetune

TRIES = 2  # settings
LONGER = 1.5  # times the usual epochs; twice as many were no better
FASTER = 3.0  # times the usual rate
Floats = NDArray[np.float64]
Setting = dict[str, Any]  # learning_rate and epochs


@dataclass(frozen=True)
class Selection:
    """What the selection trainings found.

    Parameters
    ----------
    setting : learning rate and epochs.
    tries : how many settings were tried; 0 where the rows were too few.
    temperature : fitted to the out-of-fold logits.
    oof : out-of-fold predictions of rows of the budget: probabilities (rows, classes), or what
        each row adds to the metric (rows,) for a task without classes.
    oof_rows : the numbers of these rows in the budget.
    """

    setting: Setting
    tries: int = 0
    temperature: float = 1.0
    oof: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    oof_rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def budget_folds(task: Task[Any], train: Any) -> list[Fold]:
    """Return the folds of a budget's rows; none where they are too few to select anything."""
    if has_classes(task):
        return folds.make_folds(train.labels)
    rows = np.arange(len(train))  # in a drawn order
    many = len(rows) >= folds.MANY
    every = folds.HELD_BACK if many else min(folds.FOLDS, len(rows))
    held = [rows[first::every] for first in range(1 if many else every)]
    return [Fold(np.setdiff1d(rows, one), one) for one in held] if len(rows) > 1 else []


def settings_to_try(config: FinetuneConfig, tries: int, *, fixed: bool) -> list[Setting]:
    """Return the config's setting and the longer, faster one; `fixed` epochs stay."""
    usual = {"learning_rate": config.learning_rate, "epochs": config.epochs}
    epochs = config.epochs if fixed else long_epochs(config.epochs)
    return [usual, {"learning_rate": FASTER * config.learning_rate, "epochs": epochs}][:tries]


def long_epochs(usual: int) -> int:
    """Return the epochs of the longer setting."""
    return math.ceil(LONGER * usual)


def select_setting(
    config: FinetuneConfig,
    train: Any,
    *,
    task: Task[Any],
    settings: Sequence[Setting],
    every_fold: bool,
) -> Selection:
    """Train every setting without the first fold; the lowest loss on its rows selects.

    What decides is the log-loss at the best temperature, which moves in smaller steps than the
    accuracy of a few rows; for a task without classes its metric, then its loss.

    Parameters
    ----------
    every_fold : also predict the rows of the other folds, with the selected setting.
    """
    parts = budget_folds(task, train)
    if not parts:
        return Selection(settings[0])
    tried = [_held_out_scores(config, train, parts[0], one, task) for one in settings]
    held = train.pick(parts[0].held.tolist())
    losses = [_loss(task, scores, held) for scores in tried]
    best = min(range(len(settings)), key=losses.__getitem__)
    used = parts if every_fold else parts[:1]
    scores = [tried[best]]
    scores += [_held_out_scores(config, train, fold, settings[best], task) for fold in used[1:]]
    return out_of_fold(task, train, used, scores, setting=settings[best], tries=len(settings))


def out_of_fold(
    task: Task[Any],
    train: Any,
    parts: Sequence[Fold],
    scores: Sequence[Any],
    *,
    setting: Setting | None = None,
    tries: int = 0,
    calibrate: bool = True,
) -> Selection:
    """Join the scores of each fold's held-out rows, and `calibrate`: fit a temperature to them."""
    found, classes = list(scores), has_classes(task)
    if not classes:
        held = [train.pick(fold.held.tolist()) for fold in parts]
        found = [
            task.row_scores(one, part)[task.metric].per_row()
            for one, part in zip(scores, held, strict=True)
        ]
    rows = np.concatenate([fold.held for fold in parts])
    order = np.argsort(rows)
    oof, rows = np.concatenate(found).astype(np.float64)[order], rows[order]
    temperature = 1.0
    if classes and calibrate:
        temperature = fit_temperature(oof, np.asarray(train.labels)[rows])
    if classes:
        oof = at_temperature(oof, temperature)
    return Selection(setting or {}, tries, temperature, oof, rows)


def _held_out_scores(
    config: FinetuneConfig, train: Any, fold: Fold, setting: Setting, task: Task[Any]
) -> Any:
    """Train in memory without a fold's held-out rows, and score them."""
    parts = Splits(train.pick(fold.train.tolist()), train.pick(fold.held.tolist()), None)
    found = finetune(config.replace(**setting, selection_metric="last"), None, splits=parts)
    return found.validation_scores


def _loss(task: Task[Any], scores: Any, held: Any) -> tuple[float, float]:
    if has_classes(task):
        return calibrated_loss(scores, held.labels), 0.0
    found = task.metrics(scores, held)
    return -found[task.metric], found["loss"]
