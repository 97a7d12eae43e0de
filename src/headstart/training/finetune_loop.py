"""The loop of a fine-tuning: its batches, its look at validation, and when it ends."""

import math
from functools import partial
from typing import Any

import numpy as np
import torch

from headstart.evaluation.calibration import calibrated_loss
from headstart.model.checkpoint import save_model
from headstart.tasks.examples import LabelledBatch
from headstart.tasks.run_network import run_network
from headstart.tasks.temperature import save_validation
from headstart.training.finetune_prepare import FinetuneSetup
from headstart.training.listener import Progress
from headstart.training.loop import Loop, LoopSettings, MicroBatch
from headstart.training.schedule import learning_rate_scales, train_down_to, trained_depth

BETAS = (0.9, 0.999)


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
        save_validation(setup.task, self.answers, setup.splits.validation, setup.folder)


def make_loop(setup: FinetuneSetup, validation: Validation) -> Loop:
    """The loop over the setup's model, evaluated once per epoch."""
    recipe, model, epoch = setup.recipe, setup.model, setup.order.steps_per_epoch
    stop = epoch * (recipe.stop_epoch or recipe.epochs)
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
        if recipe.choose_by == "last":
            return 0.0 if loop.progress.step >= stop else math.inf
        if recipe.choose_by == "loss":
            return evaluation["loss"]
        if recipe.choose_by == "calibrated":
            return calibrated_loss(validation.answers, setup.splits.validation.labels)
        # Of two epochs that are equally good, the one with the lower loss.
        return -evaluation[setup.task.metric] + 1e-6 * min(evaluation["loss"], 100.0)

    def enough(progress: Progress) -> bool:
        waited = progress.step - progress.best_step
        impatient = bool(recipe.patience) and waited >= recipe.patience * epoch
        return impatient or progress.step >= stop

    loop = Loop(
        model,
        settings,
        batches=partial(micro_batches, setup),
        evaluate=validation.evaluate,
        checkpoints=setup.checkpoints,
        choose=choose,
        enough=enough,
        scales=learning_rate_scales(model, recipe.layer_decay),
    )
    return loop


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
