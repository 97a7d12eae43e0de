"""A network's epochs for a task without classes, chosen by a part of its own budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headstart.folds import Fold
from headstart.run import read_summary
from headstart.studies.arms.choosing import long_epochs, train_all, train_and_watch
from headstart.studies.study_task import hold_back

if TYPE_CHECKING:
    from headstart.config import FinetuneConfig
    from headstart.studies.context import ArmContext
    from headstart.training.callbacks import Callback


def train_held_back(
    recipe: FinetuneConfig, context: ArmContext, listener: Callback, *, fixed: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train for a task without classes, whose metric on rows held back chooses the epoch.

    Parameters
    ----------
    recipe, context, listener, fixed
        As for `train_within_budget`.

    Returns
    -------
    tuple
        The run's summary, and one row per epoch with what the validation part says.
    """
    selection = context.study.recipe.selection
    if selection == "none":
        recipe = recipe.replace(selection_metric="last")
    elif not fixed:
        recipe = recipe.replace(epochs=long_epochs(recipe.epochs))
    if selection != "budget":
        rows = train_all(recipe, context, listener)
        return read_summary(context.folder), rows
    kept, back = hold_back(context.task, context.splits.train)
    fold = Fold(np.array(kept, dtype=np.int64), np.array(back, dtype=np.int64))
    summary, watched = train_and_watch(recipe, context, fold)
    return summary, [{**row, **seen} for row, seen in zip(summary["epochs"], watched, strict=True)]
