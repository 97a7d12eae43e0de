"""The loop of a fine-tuning: its batches, its look at validation, and when it ends."""

import math
import time
from functools import partial
from typing import Any

import numpy as np
import torch

from headstart.errors import HeadstartError
from headstart.model.checkpoint import save_model
from headstart.tasks.examples import LabelledBatch
from headstart.tasks.run_network import run_network
from headstart.tasks.temperature import save_validation
from headstart.training.finetune_prepare import FinetuneSetup
from headstart.training.listener import Progress
from headstart.training.loop import Loop, LoopSettings, MicroBatch, own_random_state
from headstart.training.recipe import FinetuneRecipe
from headstart.training.schedule import learning_rate_scales, train_down_to, trained_depth

BETAS = (0.9, 0.999)
TRIED_STEPS = 4
# Products in bf16 are prepared anew for each length (oneDNN keeps the last thousand): a few lengths
# that come again save more time than their padding costs.
BF16_MULTIPLE = 16
OPTIMIZER = 1.15  # a step with its update, in steps without
READING = 0.4  # the time to read a token, in times to learn from it


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


def make_loop(
    setup: FinetuneSetup,
    validation: Validation,
    *,
    checkpoints: bool = True,
    every: int | None = None,
) -> Loop:
    """The loop over the setup's model, evaluated once per epoch or `every` so many steps."""
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
        evaluate_every=every or epoch,
        save_seconds=setup.save_seconds,
        average=recipe.average,
        epoch_steps=epoch,
    )

    def choose(evaluation: dict[str, float]) -> float:
        if recipe.choose_by == "last":
            return 0.0 if loop.progress.step >= loop.settings.steps else math.inf
        if recipe.choose_by == "loss":
            return evaluation["loss"]
        # Of two epochs that are equally good, the one with the lower loss.
        return -evaluation[setup.task.metric] + 1e-6 * min(evaluation["loss"], 100.0)

    def enough(progress: Progress) -> bool:
        waited = progress.step - progress.best_step
        return bool(recipe.patience) and waited >= recipe.patience * epoch

    loop = Loop(
        model,
        settings,
        batches=partial(micro_batches, setup),
        evaluate=validation.evaluate,
        checkpoints=setup.checkpoints if checkpoints else None,
        choose=choose,
        enough=enough,
        scales=learning_rate_scales(model, recipe.layer_decay),
    )
    return loop


def measure_epochs(setup: FinetuneSetup, loop: Loop) -> tuple[float, float]:
    """Seconds of an epoch with its look at validation, and of what comes before the first one.

    A few real steps are tried; nothing is learned. Time is counted for each token of padded rows,
    because steps with long texts take longer.
    """
    order = setup.order
    every = max(1, order.steps_per_epoch // TRIED_STEPS)
    tried = [min(n * every, order.steps_per_epoch - 1) for n in range(TRIED_STEPS)]
    sizes = [_padded(setup, order.batch(step)) for step in range(order.steps_per_epoch)]
    with own_random_state():
        for number, step in enumerate([tried[0], *tried]):
            if number == 1:  # the first one warms up
                started = time.monotonic()
            loop.model.train()
            loop.gradients(step)
            loop.model.zero_grad(set_to_none=True)
        seconds = time.monotonic() - started
    pace = OPTIMIZER * seconds / sum(sizes[step] for step in tried)
    validation = int((setup.validation.lengths * setup.validation.rows).sum())
    fitted = setup.recipe.new_head == "fitted"
    fitting = int((setup.train.lengths * setup.rows).sum()) if fitted else 0  # no token left out
    reading = READING * pace
    return pace * sum(sizes) + reading * validation, reading * (fitting + validation)


def _padded(setup: FinetuneSetup, rows: Any) -> int:
    return _padded_length(setup, rows) * int(setup.rows[rows].sum())


def _padded_length(setup: FinetuneSetup, rows: Any) -> int:
    return setup.train.padded_length(int(setup.lengths[rows].max()), _multiple(setup))


def _multiple(setup: FinetuneSetup) -> int:
    on_cpu = next(setup.model.parameters()).device.type == "cpu"
    return BF16_MULTIPLE if on_cpu and setup.recipe.precision == "bf16" else 1


def fitting_epochs(recipe: FinetuneRecipe, epoch: float, before: float) -> int:
    """How many epochs fit into the recipe's minutes, by the seconds that `measure_epochs` found."""
    fitting = int((60 * recipe.minutes - before) / epoch)
    if fitting < 1:
        needed = (before + epoch) / 60
        raise HeadstartError(
            f"one epoch takes about {needed:.1f} minutes, and --minutes is {recipe.minutes:g}",
            fix=f"give --minutes {1.1 * needed:.1f} or more, fewer rows, or a smaller network",
            code="does-not-fit",
        )
    return min(fitting, recipe.epochs)


def micro_batches(setup: FinetuneSetup, step: int) -> list[MicroBatch]:
    """A step's texts, cut where they would not fit into memory."""
    recipe, model = setup.recipe, setup.model
    epoch = step // setup.order.steps_per_epoch
    train_down_to(model, trained_depth(recipe.strategy, epoch, model.base.config.layers))
    rows = setup.order.batch(step)
    most = max(1, recipe.micro_batch_tokens // _padded_length(setup, rows))
    random = np.random.default_rng([recipe.seed, step])
    return [
        _micro_batch(setup, part, most, random) for part in _fitting(rows, setup.rows[rows], most)
    ]


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


def _micro_batch(
    setup: FinetuneSetup, rows: Any, most: int, random: np.random.Generator
) -> MicroBatch:
    model, device = setup.model, next(setup.model.parameters()).device
    padded = setup.train.batch(
        rows, most=most, dropout=setup.dropout, random=random, multiple=_multiple(setup)
    )
    batch: LabelledBatch = padded.to(device)
    weights = torch.from_numpy(setup.weights[rows]).to(device)

    def compute() -> torch.Tensor:
        outputs = model(batch.tokens, batch.segments, batch.token_types, owners=batch.owners)
        smoothing = setup.recipe.label_smoothing
        return (setup.task.losses(outputs, batch, smoothing=smoothing) * weights).sum()

    return MicroBatch(compute, float(weights.sum()), int(batch.segments.sum()))
