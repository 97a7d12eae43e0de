"""A network's learning rate and epochs, chosen with nothing but the rows of its own budget.

Few rows: every rate is tried on the first fold, the best one on the others, and the number of
epochs is the one after which all folds together know best what they did not see. Then the network
is trained on all rows with these settings. Many rows: every rate is tried for one epoch, and one
training with a part held back ends when that part no longer gains. Every arm has the same grid and
the same number of tries. What decides is the log-loss at the best temperature, which moves in
smaller steps than the accuracy of a few rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load_file, save_file

from headstart.evaluation.calibration import calibrated_loss, fit_temperature
from headstart.files import replacing, write_text
from headstart.folds import Fold, held_rows
from headstart.lock import locked
from headstart.run_folder import SUMMARY, read_summary
from headstart.tasks.run_network import run_network
from headstart.tasks.temperature import VALIDATION
from headstart.text.reading.dataset import Splits
from headstart.training.finetune import (
    PlannedFinetuning,
    finetune,
    finish_finetuning,
    plan_finetuning,
    train_task,
)
from headstart.training.finetune_prepare import prepare_finetuning
from headstart.training.listener import Listener, Listeners, Progress
from headstart.transfer.fit_head import can_be_fitted, fit_head

if TYPE_CHECKING:
    from headstart.evaluation.calibration import Floats
    from headstart.folds import Rows
    from headstart.studies.context import ArmContext
    from headstart.training.recipe import FinetuneRecipe

RATES = (1.0, 3.0)  # times the recipe's
FOLDS = 3
PATIENCE = 3  # epochs without a better one, with folds
PATIENCE_HELD_BACK = 1  # with many rows, whose epochs are long and whose losses are smooth
WATCHED = "watched.json"  # what the validation part said after each epoch, for the curves alone


@dataclass(frozen=True)
class Chosen:
    """A training that has ended in the run folder, and how it came to its settings."""

    learning_rate: float
    epochs: int
    tries: int  # settings that were tried
    temperature: float
    rows: list[dict[str, Any]]  # one per epoch, as the run's summary has them
    own: Floats | None = None  # logits of budget rows by networks that were not trained on them
    own_rows: Rows | None = None


def train_within_budget(
    recipe: FinetuneRecipe, context: ArmContext, listener: Listener, *, fixed: bool
) -> Chosen:
    """Choose, and leave the chosen network in the context's folder.

    Parameters
    ----------
    recipe : FinetuneRecipe
        Its epochs are the most that are tried; all of them are taken where they are `fixed`.
    context : ArmContext
        Whose rows train and choose. Its validation part is only watched.
    listener : Listener
        Receives the epochs of the training that is kept.
    fixed : bool
        Whether the number of epochs was given.
    """
    rates = [recipe.learning_rate * factor for factor in RATES[: context.study.rates]]
    folds = context.own_folds(FOLDS)
    if not folds:
        last = recipe.changed(choose_by="last")
        rows = train_all(last, context, listener)
        return Chosen(recipe.learning_rate, recipe.epochs, 1, 1.0, rows)
    tried = _Tries(recipe, context)
    if len(folds) == 1:
        return _hold_back(tried, folds[0], rates, listener, fixed=fixed)
    return _by_folds(tried, folds, rates, listener, fixed=fixed)


def _by_folds(
    tried: _Tries, folds: Sequence[Fold], rates: Sequence[float], listener: Listener, *, fixed: bool
) -> Chosen:
    context, labels = tried.context, np.asarray(tried.context.splits.train.labels)
    patience = 0 if fixed else PATIENCE
    first = {rate: tried.answers(folds[0], 0, rate, patience=patience) for rate in rates}
    held = labels[folds[0].held]
    rate = min(rates, key=lambda one: min(_losses(first[one], held, fixed=fixed)))
    answers = [first[rate]]
    answers += [
        tried.answers(fold, number, rate, patience=patience)
        for number, fold in enumerate(folds[1:], start=1)
    ]
    rows = held_rows(folds)
    joined = _joined(folds, answers, rows)
    losses = _losses(joined, labels[rows], fixed=fixed)
    epoch = tried.recipe.epochs if fixed else int(np.argmin(losses)) + 1
    own = joined[-1] if fixed else joined[epoch - 1]
    recipe = tried.recipe.changed(learning_rate=rate, stop_epoch=epoch, choose_by="last")
    epochs = train_all(recipe, context, listener)
    return _kept(tried, Chosen(rate, epoch, len(rates), 1.0, epochs, own, rows), labels)


def _hold_back(
    tried: _Tries, fold: Fold, rates: Sequence[float], listener: Listener, *, fixed: bool
) -> Chosen:
    labels = np.asarray(tried.context.splits.train.labels)
    held = labels[fold.held]
    rate = rates[0]
    if len(rates) > 1:
        first = {one: tried.answers(fold, 0, one, stop=1) for one in rates}
        rate = min(rates, key=lambda one: calibrated_loss(first[one][0], held))
    recipe = tried.recipe.changed(
        learning_rate=rate,
        choose_by="last" if fixed else "calibrated",
        patience=0 if fixed else PATIENCE_HELD_BACK,
    )
    summary, watched = train_and_watch(recipe, tried.context, fold, listener)
    # The run's own table is about the rows held back; the curves are of the validation part.
    rows = [{**row, **seen} for row, seen in zip(summary["epochs"], watched, strict=True)]
    own = load_file(tried.context.folder / VALIDATION)["logits"]
    found = Chosen(rate, summary["best_epoch"], len(rates), 1.0, rows, own, fold.held)
    return _kept(tried, found, labels)


def _kept(tried: _Tries, found: Chosen, labels: Any) -> Chosen:
    """Leave in the run folder what its temperature is fitted on: rows of the budget alone."""
    assert found.own is not None
    logits, wanted = np.asarray(found.own, dtype=np.float32), labels[found.own_rows]
    with replacing(tried.context.folder / VALIDATION) as temporary:
        save_file({"logits": logits, "labels": wanted.astype(np.int64)}, temporary)
    tried.forget()
    temperature = fit_temperature(logits, wanted)
    return Chosen(**{**vars(found), "own": logits, "temperature": temperature})


class _Tries:
    """Trainings that are there to choose by; their answers are kept until the choice is made."""

    def __init__(self, recipe: FinetuneRecipe, context: ArmContext) -> None:
        self.recipe, self.context = recipe, context
        self.folder = context.folder.with_name(f"{context.folder.name}-choosing")

    def answers(
        self, fold: Fold, number: int, rate: float, *, patience: int = 0, stop: int = 0
    ) -> list[Floats]:
        """What a network says of the rows held back, after each epoch (rows × classes)."""
        path = self.folder / f"fold-{number}-rate-{rate:g}.safetensors"
        if not path.is_file():
            recipe = self.recipe.changed(
                learning_rate=rate, choose_by="calibrated", patience=patience, stop_epoch=stop
            )
            found = _train_aside(recipe, self.context, fold, self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                save_file({f"{epoch:03d}": one for epoch, one in enumerate(found)}, temporary)
        kept = load_file(path)
        return [kept[name] for name in sorted(kept)]

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _train_aside(
    recipe: FinetuneRecipe, context: ArmContext, fold: Fold, folder: Path
) -> list[Floats]:
    """Train in memory, and answer for the rows held back after each epoch."""
    setup = prepare_finetuning(recipe, folder / "none", splits=_parts(context, fold))
    planned = plan_finetuning(setup)
    planned.loop.checkpoints = None
    if recipe.new_head == "fitted" and can_be_fitted(setup.model):
        fit_head(setup.model, setup.train, setup.weights)
    kept = _Answers(planned)
    planned.loop.run(listener=kept)
    return kept.answers


class _Answers(Listener):
    """Keeps what is said of the rows held back after each epoch."""

    def __init__(self, planned: PlannedFinetuning) -> None:
        self.planned = planned
        self.answers: list[Floats] = []

    def on_evaluation(self, progress: Progress) -> None:
        self.answers.append(np.array(self.planned.validation.answers, dtype=np.float32))


def train_all(
    recipe: FinetuneRecipe, context: ArmContext, listener: Listener
) -> list[dict[str, Any]]:
    """Train on all rows of the budget; the validation part is evaluated for the curves alone."""
    resume = begun(context.folder)
    summary = finetune(
        recipe,
        context.folder,
        splits=context.splits,
        validation=lambda encoding: context.study.examples(encoding, "validation"),
        resume=resume,
        listener=listener,
    )
    rows: list[dict[str, Any]] = summary["epochs"]
    return rows


def begun(folder: Path) -> bool:
    """Whether there is a run to resume; what is there without being one is removed."""
    from headstart.training.recipe_file import FILE

    if (folder / FILE).is_file():
        return True
    shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
    return False


def train_and_watch(
    recipe: FinetuneRecipe, context: ArmContext, fold: Fold, listener: Listener
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train with a part held back, and evaluate the validation part beside it for the curves."""
    folder, resume = context.folder, begun(context.folder)
    if resume and (folder / SUMMARY).is_file():
        return read_summary(folder), _read_watched(folder)
    with locked(folder):
        parts = _parts(context, fold)
        setup = prepare_finetuning(recipe, folder, splits=parts, resume=resume)
        planned = plan_finetuning(setup)
        watch = _Watch(planned, context)
        progress = train_task(planned, listener=Listeners([watch, listener]))
        return finish_finetuning(planned, progress), _read_watched(folder)


class _Watch(Listener):
    """Writes what the validation part says after each epoch; a resumed run writes it again."""

    def __init__(self, planned: PlannedFinetuning, context: ArmContext) -> None:
        self.setup, self.context = planned.setup, context

    def on_evaluation(self, progress: Progress) -> None:
        setup, folder = self.setup, self.setup.folder
        examples = self.context.study.examples(setup.encoding, "validation")
        answers = setup.task.join(run_network(setup.model, examples), examples)
        found = setup.task.metrics(answers, self.context.splits.validation)
        row = {("validation_loss" if name == "loss" else name): found[name] for name in found}
        rows = _read_watched(folder)[: progress.evaluations - 1]
        write_text(folder / WATCHED, json.dumps([*rows, row]))


def _read_watched(folder: Path) -> list[dict[str, Any]]:
    path = folder / WATCHED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def _parts(context: ArmContext, fold: Fold) -> Splits:
    train = context.splits.train
    return Splits(train.pick(fold.train.tolist()), train.pick(fold.held.tolist()), None)


def _losses(answers: Sequence[Floats], labels: Any, *, fixed: bool) -> list[float]:
    """The loss after each epoch; of the last one alone where the epochs are fixed."""
    return [calibrated_loss(one, labels) for one in (answers[-1:] if fixed else answers)]


def _joined(folds: Sequence[Fold], answers: Sequence[Sequence[Floats]], rows: Rows) -> list[Floats]:
    """The folds' answers after each epoch; of a fold that ended early, its last ones."""
    joined = []
    for epoch in range(max(map(len, answers))):
        table = np.zeros((len(rows), answers[0][0].shape[1]), dtype=np.float32)
        for fold, said in zip(folds, answers, strict=True):
            table[np.searchsorted(rows, fold.held)] = said[min(epoch, len(said) - 1)]
        joined.append(table)
    return joined
