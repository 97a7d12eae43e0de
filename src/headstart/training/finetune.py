"""Fine-tuning: a base and labelled texts become a classifier (or another model, by the task).

`finetune` with `base="none"` trains the same network from scratch. The start is the only
difference: batches, head and everything else come from the recipe and its seed.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.checksums import save_arrays
from headstart.files import replacing
from headstart.lock import locked
from headstart.model.checkpoint import save_model
from headstart.run_folder import SUMMARY, VALIDATION, read_summary, write_summary, write_task
from headstart.tasks.examples import Examples, LabelledBatch, TextEncoding
from headstart.tasks.run_network import run_network
from headstart.tasks.task import Parts
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
from headstart.training.loop import Loop, LoopSettings, MicroBatch
from headstart.training.metrics import MetricsFile
from headstart.training.plan import try_threads
from headstart.training.recipe import FinetuneRecipe
from headstart.training.recipe_file import resumed, write_identity, write_recipe
from headstart.training.schedule import learning_rate_scales, train_down_to, trained_depth
from headstart.training.seen_rows import write_rows
from headstart.transfer.fit_head import can_be_fitted, fit_head
from headstart.transfer.swap import SwapRow

BETAS = (0.9, 0.999)


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
    swap: list[SwapRow]  # what became of the base's parts; empty from scratch
    length: int  # tokens of a row at most
    cut: dict[str, int]  # what of the training texts is longer


class Validation:
    """Evaluates the validation rows, and remembers the answers in case they are the best."""

    def __init__(self, setup: FinetuneSetup) -> None:
        self.setup = setup
        self.answers: Any = None  # the latest

    def evaluate(self) -> dict[str, float]:
        """Numbers about the model as it is, "loss" and the task's metric among them."""
        task, examples = self.setup.task, self.setup.validation
        self.answers = task.join(run_network(self.setup.model, examples), examples)
        return task.metrics(self.answers, self.setup.splits.validation)

    def save(self) -> None:
        """Write the model and its latest answers."""
        setup = self.setup
        save_model(setup.model, setup.folder)
        with replacing(setup.folder / VALIDATION) as temporary:
            save_arrays(setup.task.kept(self.answers, setup.splits.validation), temporary)


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
    row_weights: NDArray[np.float32] | None = None,
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
    row_weights : array, optional
        How much each training row counts: (rows,).
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
            return read_summary(folder)
        setup = prepare_finetuning(
            recipe,
            folder,
            splits=splits,
            validation=validation,
            row_weights=row_weights,
            resume=resume,
            listener=listener,
            save_seconds=save_seconds,
        )
        planned = plan_finetuning(setup)
        progress = train_task(planned, listener=listener)
        return finish_finetuning(planned, progress, listener=listener)


def plan_finetuning(setup: FinetuneSetup) -> PlannedFinetuning:
    """Decide on the number of threads. Nothing is learned yet."""
    # Built once: which parameters the optimizer knows depends on those that are not frozen yet.
    validation = Validation(setup)
    loop = make_loop(setup, validation)
    if not setup.recipe.threads:
        setup = replace(setup, recipe=setup.recipe.changed(threads=try_threads(loop)))
        torch.set_num_threads(setup.recipe.threads)
    plan = FinetunePlan(
        task=setup.task.name,
        labels=setup.task.labels,
        train_rows=len(setup.splits.train),
        validation_rows=len(setup.splits.validation),
        steps=setup.steps,
        evaluate_every=setup.order.steps_per_epoch,
        parameters=sum(p.numel() for p in setup.model.parameters()),
        threads=setup.recipe.threads,
        swap=setup.start.swap,
        length=setup.encoding.length,
        cut=setup.train.cut,
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
            fit_head(setup.model, setup.train, setup.weights, setup.validation, progress=fitting)
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


def make_loop(setup: FinetuneSetup, validation: Validation) -> Loop:
    """The loop over the setup's model, evaluated once per epoch."""
    recipe, model, epoch = setup.recipe, setup.model, setup.order.steps_per_epoch
    if recipe.strategy == "frozen":
        train_down_to(model, 0)  # so that the optimizer does not even know the rest
    settings = LoopSettings(
        steps=setup.steps,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        warmup=recipe.warmup,
        weight_decay=recipe.weight_decay,
        betas=BETAS,
        shape=recipe.schedule,
        exploded=float("inf"),  # one confident mistake in a batch of few is no breakdown
        precision=recipe.precision,
        evaluate_every=epoch,
        save_seconds=setup.save_seconds,
    )

    def choose(evaluation: dict[str, float]) -> float:
        if recipe.choose_by == "loss":
            return evaluation["loss"]
        # Of two epochs that are equally good, the one with the lower loss.
        return -evaluation[setup.task.metric] + 1e-6 * min(evaluation["loss"], 100.0)

    def enough(progress: Progress) -> bool:
        waited = progress.step - progress.best_step
        return bool(recipe.patience) and waited >= recipe.patience * epoch

    return Loop(
        model,
        settings,
        batches=partial(micro_batches, setup),
        evaluate=validation.evaluate,
        checkpoints=setup.checkpoints,
        choose=choose,
        enough=enough,
        scales=learning_rate_scales(model, recipe.layer_decay),
    )


def micro_batches(setup: FinetuneSetup, step: int) -> list[MicroBatch]:
    """A step's texts, cut where they would not fit into memory."""
    recipe, model = setup.recipe, setup.model
    epoch = step // setup.order.steps_per_epoch
    train_down_to(model, trained_depth(recipe.strategy, epoch, model.base.config.layers))
    rows = setup.order.batch(step)
    most = max(1, recipe.micro_batch_tokens // int(setup.lengths[rows].max()))
    return [_micro_batch(setup, part, most) for part in _fitting(rows, setup.rows[rows], most)]


def _fitting(rows: Any, counts: Any, most: int) -> list[Any]:
    """A step's texts in parts of at most `most` rows, however many windows they have."""
    parts: list[list[int]] = [[]]
    taken = 0
    for row, count in zip(rows, np.minimum(counts, most), strict=True):
        if parts[-1] and taken + count > most:
            parts.append([])
            taken = 0
        parts[-1].append(int(row))
        taken += int(count)
    return [np.array(part) for part in parts]


def _micro_batch(setup: FinetuneSetup, rows: Any, most: int) -> MicroBatch:
    model, device = setup.model, next(setup.model.parameters()).device
    batch: LabelledBatch = setup.train.batch(rows, most=most).to(device)
    weights = torch.from_numpy(setup.weights[rows]).to(device)

    def compute() -> torch.Tensor:
        outputs = model(batch.tokens, batch.segments, batch.token_types, owners=batch.owners)
        smoothing = setup.recipe.label_smoothing
        return (setup.task.losses(outputs, batch, smoothing=smoothing) * weights).sum()

    return MicroBatch(compute, float(weights.sum()), int(batch.segments.sum()))
