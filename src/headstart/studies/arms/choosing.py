"""A network's learning rate and epochs, chosen with nothing but the rows of its own budget.

Two settings are tried, the same two for every arm: the usual one, and one that learns longer and
faster, which is what a network without pretraining needs. A third of few rows, a tenth of many,
judges networks trained on the others. Fewer rows must not choose for many: they want more epochs.
Then the network is trained on all rows with the better setting. With all labels every seed has the
same rows, and so one choice. Networks that are stacked answer for every row of the budget unseen:
few rows in folds, of many rows those held back. Every training ends its schedule: one that is
stopped half-way, at a high rate, is worse than a shorter one (research/recipes.md).

What decides is the log-loss at the best temperature, which moves in smaller steps than the accuracy
of a few rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load_file, save_file

from headstart.config import is_run
from headstart.data.dataset import Splits
from headstart.evaluation.calibration import calibrated_loss, fit_temperature
from headstart.files import replacing, write_text
from headstart.folds import Fold, held_rows
from headstart.model_card import VALIDATION
from headstart.training.callbacks import Callback
from headstart.training.finetune import finetune
from headstart.training.trainer import TrainState

if TYPE_CHECKING:
    from headstart.config import FinetuneConfig
    from headstart.evaluation.calibration import Floats
    from headstart.folds import RowNumbers
    from headstart.studies.context import ArmContext

SETTINGS = 2  # that are tried
LONGER, LEAST_LONG = 2, 4  # times the usual epochs, and at least so many
FASTER = 3.0  # times the usual rate
WATCHED = "watched.json"  # what the validation part said after each epoch, for the curves alone


@dataclass(frozen=True)
class Setting:
    """One try: how fast, and how long."""

    learning_rate: float
    epochs: int


@dataclass(frozen=True)
class Chosen:
    """A training that has ended in the run folder, and how it came to its setting."""

    setting: Setting
    tries: int
    rows: list[dict[str, Any]]  # one per epoch, as the run's summary has them
    temperature: float = 1.0
    own: Floats | None = None  # logits of budget rows by networks that were not trained on them
    own_rows: RowNumbers | None = None


def settings_of(recipe: FinetuneConfig, tries: int, *, fixed: bool) -> list[Setting]:
    """What is tried: the recipe's own setting and the longer one; `fixed` epochs stay."""
    usual = Setting(recipe.learning_rate, recipe.epochs)
    epochs = recipe.epochs if fixed else long_epochs(recipe.epochs)
    return [usual, Setting(FASTER * recipe.learning_rate, epochs)][:tries]


def long_epochs(usual: int) -> int:
    """The epochs of the longer setting."""
    return max(LONGER * usual, LEAST_LONG)


def train_within_budget(
    recipe: FinetuneConfig, context: ArmContext, listener: Callback, *, fixed: bool, stacked: bool
) -> Chosen:
    """Choose, and leave the chosen network in the context's folder.

    Parameters
    ----------
    recipe : FinetuneConfig
        The usual setting.
    context : ArmContext
        Whose rows train and choose. Its validation part is only watched.
    listener : Callback
        Receives the epochs of the training that is kept.
    fixed : bool
        Whether the number of epochs was given.
    stacked : bool
        Whether a stack needs to know what networks say of every row that they have not seen.
    """
    settings = settings_of(recipe, context.study.tries, fixed=fixed)
    folds = context.own_folds()
    tried = _Tries(recipe, context)
    if not folds:  # too few rows to choose by
        return Chosen(settings[0], 1, tried.train_all(settings[0], listener))
    chooser = _chooser(recipe, context)
    setting = chooser.best(settings)
    if len(folds) == 1:
        epochs, own = tried.train_with_held_back(folds[0], setting)
        return tried.kept(Chosen(setting, len(settings), epochs, own=own, own_rows=folds[0].held))
    joined = folds if stacked else folds[:1]
    rows = held_rows(joined)
    own = np.zeros((len(rows), len(context.label_names)))
    for number, fold in enumerate(joined):
        known = chooser if number == 0 and chooser.recipe == tried.recipe else tried
        own[np.searchsorted(rows, fold.held)] = known.answers(fold, number, setting)
    epochs = tried.train_all(setting, listener)
    return tried.kept(Chosen(setting, len(settings), epochs, own=own, own_rows=rows))


def _chooser(recipe: FinetuneConfig, context: ArmContext) -> _Tries:
    """Who chooses: the run itself, or, where every seed has the same rows, one for all of them."""
    if not context.has_all_rows:
        return _Tries(recipe, context)
    seed = context.run.seed % context.study.recipe.bases  # the first one with this base
    first = replace(context, run=replace(context.run, seed=seed))
    return _Tries(recipe.replace(seed=seed), first, "every-seed")


class _Tries:
    """The trainings of one choice; what was learned by those set aside is kept until it is made."""

    def __init__(self, recipe: FinetuneConfig, context: ArmContext, name: str = "choosing") -> None:
        self.recipe, self.context = recipe.replace(selection_metric="last"), context
        self.folder = context.folder.with_name(f"{context.folder.name}-{name}")
        self.labels = np.asarray(context.splits.train.labels)

    def best(self, settings: Sequence[Setting]) -> Setting:
        """The setting with the lowest loss on rows that the first fold holds back."""
        fold = self.context.own_folds()[0]

        def loss(setting: Setting) -> float:
            return calibrated_loss(self.answers(fold, 0, setting), self.labels[fold.held])

        return settings[0] if len(settings) == 1 else min(settings, key=loss)

    def answers(self, fold: Fold, number: int, setting: Setting) -> Floats:
        """What a network says of the rows that the fold holds back (rows × classes)."""
        name = f"fold-{number}-{setting.epochs}-epochs-{setting.learning_rate:g}.safetensors"
        path = self.folder / name
        if not path.is_file():
            found = self._train_aside(fold, setting)
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                save_file({"logits": found}, temporary)
        return load_file(path)["logits"]

    def train_all(self, setting: Setting, listener: Callback) -> list[dict[str, Any]]:
        """Train on all rows of the budget."""
        return train_all(self._recipe(setting), self.context, listener)

    def train_with_held_back(
        self, fold: Fold, setting: Setting
    ) -> tuple[list[dict[str, Any]], Floats]:
        """Train without the rows held back, and answer for them; the curves are of validation."""
        recipe, context = self._recipe(setting), self.context
        summary, watched = train_and_watch(recipe, context, fold)
        rows = [{**row, **seen} for row, seen in zip(summary["epochs"], watched, strict=True)]
        return rows, load_file(context.folder / VALIDATION)["logits"]

    def kept(self, found: Chosen) -> Chosen:
        """Leave in the run folder what its temperature is fitted on: rows of the budget alone."""
        assert found.own is not None
        logits, wanted = np.asarray(found.own, dtype=np.float32), self.labels[found.own_rows]
        with replacing(self.context.folder / VALIDATION) as temporary:
            save_file({"logits": logits, "labels": wanted.astype(np.int64)}, temporary)
        shutil.rmtree(self.folder, ignore_errors=True)
        own = logits.astype(np.float64)
        return replace(found, own=own, temperature=fit_temperature(own, wanted))

    def _recipe(self, setting: Setting) -> FinetuneConfig:
        return self.recipe.replace(learning_rate=setting.learning_rate, epochs=setting.epochs)

    def _train_aside(self, fold: Fold, setting: Setting) -> Floats:
        """Train in memory."""
        run = finetune(self._recipe(setting), None, splits=_parts(self.context, fold))
        return np.asarray(run.validation_scores)


def train_all(
    recipe: FinetuneConfig, context: ArmContext, listener: Callback
) -> list[dict[str, Any]]:
    """Train on all rows of the budget; the validation part is evaluated for the curves alone."""
    run = finetune(
        recipe,
        context.folder,
        splits=context.splits,
        validation=lambda encoding: context.study.examples(encoding, "validation"),
        resume=begun(context.folder),
        callbacks=[listener],
    )
    rows: list[dict[str, Any]] = run.summary["epochs"]
    return rows


def train_and_watch(
    recipe: FinetuneConfig, context: ArmContext, fold: Fold
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train with a part held back, and evaluate the validation part beside it for the curves."""
    run = finetune(
        recipe,
        context.folder,
        splits=_parts(context, fold),
        resume=begun(context.folder),
        callbacks=[_Watch(context)],
    )
    return run.summary, _read_watched(context.folder)


def begun(folder: Path) -> bool:
    """Whether there is a run to resume; what is there without being one is removed."""
    if is_run(folder):
        return True
    shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
    return False


class _Watch(Callback):
    """Writes and reports what the validation part says after each epoch."""

    def __init__(self, context: ArmContext) -> None:
        self.context = context
        self.run: Any = None

    def on_start(self, run: Any, step: int) -> None:
        self.run = run

    def on_evaluation(self, state: TrainState) -> None:
        run, folder = self.run, self.context.folder
        examples = self.context.study.examples(run.encoding, "validation")
        answers = run.task.decode(run.outputs(examples), examples)
        found = run.task.metrics(answers, self.context.splits.validation)
        row = {("validation_loss" if name == "loss" else name): found[name] for name in found}
        rows = _read_watched(folder)[: state.evaluations - 1]
        write_text(folder / WATCHED, json.dumps([*rows, row]))
        self.context.report_epoch(state.evaluations, found[run.task.metric])


def _read_watched(folder: Path) -> list[dict[str, Any]]:
    path = folder / WATCHED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _parts(context: ArmContext, fold: Fold) -> Splits[Any]:
    train = context.splits.train
    return Splits(train.pick(fold.train.tolist()), train.pick(fold.held.tolist()), None)
