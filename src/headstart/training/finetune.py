"""Fine-tuning: a base and labelled texts become a classifier (or another model, by the task).

`finetune` with `base="none"` trains the same network from scratch. The start is the only
difference: batches, head and everything else come from the recipe and its seed.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from headstart.lock import locked
from headstart.machine import Precision
from headstart.model.swap import SwapRow
from headstart.run_folder import SUMMARY, read_summary, write_summary, write_task
from headstart.tasks.examples import Examples, TextEncoding
from headstart.tasks.task import Parts
from headstart.training.finetune_loop import (
    Validation,
    fitting_epochs,
    make_loop,
    measure_epochs,
)
from headstart.training.finetune_prepare import FinetuneSetup, identity_of, prepare_finetuning
from headstart.training.finetune_results import finetune_summary, write_finetuning_card
from headstart.training.listener import (
    Listener,
    Listeners,
    Progress,
    RunStart,
    SaveBest,
    reporting,
)
from headstart.training.loop import Loop
from headstart.training.metrics import MetricsFile
from headstart.training.plan import try_threads
from headstart.training.recipe import FinetuneRecipe
from headstart.training.recipe_file import resumed, write_identity, write_recipe
from headstart.training.seen_rows import write_rows
from headstart.transfer.fit_head import can_be_fitted, fit_head

# What resuming a run that has ended needs of its summary.
NEEDED = ("validation", "epochs", "best_epoch", "steps", "cut")


@dataclass(frozen=True)
class FinetunePlan:
    """What will be done, in numbers and words for a display or a tracker."""

    task: str
    labels: tuple[str, ...]
    train_rows: int
    validation_rows: int
    steps: int
    evaluate_every: int  # steps; once per epoch
    parameters: int
    threads: int
    precision: Precision
    swap: list[SwapRow]  # what became of the base's parts; empty from scratch
    length: int  # tokens of a row at most
    cut: dict[str, int]  # what of the training texts is longer
    notes: tuple[str, ...] = ()  # for a person to read
    epochs: int = 0
    averaged: int = 0  # so many of them, the last ones, whose weights are averaged
    seconds: float | None = None  # measured only where it matters


@dataclass(frozen=True)
class PlannedFinetuning:
    """A fine-tuning that could begin: the result of `plan_finetuning`."""

    setup: FinetuneSetup  # its recipe now says how many threads
    plan: FinetunePlan
    loop: Loop
    validation: Validation


def finetune(
    recipe: FinetuneRecipe,
    folder: Path,
    *,
    splits: Parts[Any] | None = None,
    validation: Callable[[TextEncoding], Examples] | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    save_seconds: float = 60.0,
) -> dict[str, Any]:
    """Fine-tune a base on labelled texts.

    Parameters
    ----------
    recipe : FinetuneRecipe
        Every setting of the training.
    folder : Path
        The run folder; it must not hold a run yet, unless `resume`.
    splits : optional
        Rows that were read already; else the recipe's dataset is read. Only the training and
        validation parts are used here: the test part is for `evaluate`.
    validation : callable, optional
        Encodes the validation part, for callers that have tokenized it already.
    resume : bool
        Resume the run in `folder`, to the same bits as if it had never stopped. A run that
        has ended is not trained again.
    listener : Listener, optional
        Receives the events of the training.
    save_seconds : float
        Time between two checkpoints.

    Returns
    -------
    dict
        The run's summary, which is also in `summary.json`.
    """
    listener = listener or Listener()
    with locked(folder):
        if resume and (folder / SUMMARY).is_file():
            resumed(recipe, folder)
            return read_summary(folder, needs=NEEDED)
        setup = prepare_finetuning(
            recipe,
            folder,
            splits=splits,
            validation=validation,
            resume=resume,
            listener=listener,
            save_seconds=save_seconds,
        )
        planned = plan_finetuning(setup)
        progress = train_task(planned, listener=listener)
        return finish_finetuning(planned, progress, listener=listener)


def dropout_notes(setup: FinetuneSetup) -> tuple[str, ...]:
    """What is left out of the training texts, in words."""
    given = setup.recipe.token_dropout
    if setup.dropout is None:
        few = f"--token-dropout {given:g} leaves nothing out: the texts have too few tokens for it"
        return (few,) if given and setup.task.whole_texts else ()
    words = f"each epoch leaves out {setup.dropout_share:.1%} of the tokens"
    if not given:
        long, share = int((setup.rows > 1).sum()), setup.recipe.long_token_dropout
        words = (
            f"{long:,} texts are longer than a window of {setup.encoding.length} tokens, and each "
            f"epoch leaves out {share:.0%} of their tokens"
        )
    return (f"{words}, others each time (--token-dropout 0 keeps all)",)


def plan_finetuning(
    setup: FinetuneSetup,
    *,
    timed: bool = False,
    checkpoints: bool = True,
    evaluate_last: bool = False,
) -> PlannedFinetuning:
    """Decide on the number of threads, and on that of epochs that fit into the minutes.

    Nothing is learned yet. With `timed` the seconds are measured in any case. Without `checkpoints`
    nothing is written; with `evaluate_last` validation is evaluated after the last epoch only.
    """
    # Built once: which parameters the optimizer knows depends on those that are not frozen yet.
    validation = Validation(setup)
    loop = make_loop(
        setup, validation, checkpoints=checkpoints, every=setup.steps if evaluate_last else None
    )
    if not setup.recipe.threads:
        setup = replace(setup, recipe=setup.recipe.changed(threads=try_threads(loop)))
        torch.set_num_threads(setup.recipe.threads)
    seconds = None
    notes = setup.notes
    undecided = bool(setup.recipe.minutes) and not setup.recipe.epochs_that_fit
    if undecided or timed:
        epoch, before = measure_epochs(setup, loop)
        if undecided:
            fitting = fitting_epochs(setup.recipe, epoch, before)
            setup = replace(setup, recipe=setup.recipe.changed(epochs_that_fit=fitting))
            loop.set_steps(setup.steps)
        seconds = before + epoch * setup.epochs
    if setup.epochs < setup.recipe.epochs:
        of = f"{setup.epochs} of {setup.recipe.epochs} epochs"
        notes += (f"{of} fit into {setup.recipe.minutes:g} minutes",)
    notes += dropout_notes(setup)
    averaged = loop.average.counted(setup.steps)
    if setup.recipe.average:
        words = f"the weights of the last {averaged} epochs"
        if averaged < 2:
            part = f"{setup.recipe.average:g} of {setup.epochs} epochs"
            words = f"{part} is less than two, so nothing is averaged"
        notes += (f"--average: {words}",)
    plan = FinetunePlan(
        task=setup.task.name,
        labels=setup.task.labels,
        train_rows=len(setup.splits.train),
        validation_rows=len(setup.splits.validation),
        steps=setup.steps,
        evaluate_every=setup.order.steps_per_epoch,
        parameters=sum(p.numel() for p in setup.model.parameters()),
        threads=setup.recipe.threads,
        precision=setup.recipe.precision,
        swap=setup.start.swap,
        length=setup.encoding.length,
        cut=setup.train.cut,
        notes=notes,
        epochs=setup.epochs,
        averaged=averaged if averaged > 1 else 0,
        seconds=seconds,
    )
    return PlannedFinetuning(setup, plan, loop, validation)


def train_task(planned: PlannedFinetuning, *, listener: Listener | None = None) -> Progress:
    """Fit the new head, then train; the best epoch's weights are in the run folder then."""
    listener = listener or Listener()
    setup, folder = planned.setup, planned.setup.folder
    if not setup.resume:
        folder.mkdir(parents=True, exist_ok=True)
        setup.start.tokenizer.save(folder)
        write_task(setup.task, setup.encoding, folder)
        write_rows(setup.task, setup.splits, folder)
        write_identity(identity_of(setup.recipe, setup.splits, setup.start.tokenizer), folder)
        write_recipe(setup.recipe, folder)  # last: with it, this is a run
    found = setup.checkpoints.list() if setup.resume else []
    step = found[-1].step if found else 0
    everyone = Listeners([MetricsFile(folder), SaveBest(planned.validation.save), listener])
    with reporting(everyone, RunStart("finetuning", folder, setup.recipe, planned.plan, step)):
        if not found and setup.recipe.new_head == "fitted" and can_be_fitted(setup.model):
            fitting = listener.stage("fitting the head")
            fit_head(setup.model, setup.train, setup.weights, progress=fitting)
        return planned.loop.run(resume=bool(found), listener=everyone)


def finish_finetuning(
    planned: PlannedFinetuning, progress: Progress, *, listener: Listener | None = None
) -> dict[str, Any]:
    """Write the model card and the summary, and remove the checkpoints: the run has ended."""
    setup = planned.setup
    summary = finetune_summary(planned, progress)
    write_finetuning_card(setup.recipe, setup.task, summary, setup.folder)
    write_summary(summary, setup.folder)
    shutil.rmtree(setup.checkpoints.folder, ignore_errors=True)
    (listener or Listener()).on_finish(summary)
    return summary
