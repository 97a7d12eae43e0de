"""How many steps a training takes, and how long: decided by timing complete steps."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.errors import HeadstartError
from headstart.machine import peak_memory
from headstart.training.batches import EpochBatches
from headstart.training.corpus import PretrainData
from headstart.training.initialization import StartModel
from headstart.training.trainer import Trainer

DEFAULT_MINUTES = 10.0
TIMED_STEPS = 4
EVALUATION_SHARE = 0.03  # of the minutes, at most


def plan_pretraining(
    config: PretrainConfig, data: PretrainData, trainer: Trainer
) -> dict[str, Any]:
    """Turn minutes, epochs or tokens into steps."""
    step_seconds = trainer.time_steps(range(TIMED_STEPS)) / TIMED_STEPS
    evaluation_seconds = trainer.time_evaluation()
    step_tokens = config.rows * config.length
    corpus_tokens = data.train.tokens
    evaluations = config.evaluations
    if config.steps:
        steps = config.steps
    elif config.tokens:
        steps = -(-config.tokens // step_tokens)
    elif config.epochs:
        steps = round(config.epochs * corpus_tokens / step_tokens)
    else:
        budget = 60 * (config.minutes or DEFAULT_MINUTES)
        evaluations = min(evaluations, int(EVALUATION_SHARE * budget / evaluation_seconds))
        steps = int((budget - max(1, evaluations) * evaluation_seconds) / step_seconds)
    steps, evaluations = max(1, steps), max(1, evaluations)
    parameters = sum(one.numel() for one in trainer.model.parameters())
    return {
        "steps": steps,
        "evaluate_every": -(-steps // evaluations),
        "tokens": steps * step_tokens,
        "epochs": steps * step_tokens / corpus_tokens,
        "corpus_tokens": corpus_tokens,
        "parameters": parameters,
        "memory_bytes": 16 * parameters,  # weights, gradients and two moments in fp32
        "peak_memory_bytes": peak_memory(),
        "seconds_per_step": step_seconds,
        "seconds": steps * step_seconds + evaluations * evaluation_seconds,
        "threads": config.threads,
        "precision": config.precision,
    }


def plan_finetuning(
    config: FinetuneConfig,
    start: StartModel,
    batches: EpochBatches,
    trainer: Trainer,
    *,
    notes: Sequence[str | None],
    timed: bool,
) -> dict[str, Any]:
    """Decide on the epochs; without minutes, nothing is timed unless `timed`."""
    epochs, seconds = config.epochs, None
    if config.minutes is not None or timed:
        epochs, seconds = _fitting_epochs(config, batches, trainer)
    steps = epochs * batches.steps_per_epoch
    averaged = trainer.average.count(steps)
    notes = [*notes, batches.dropout_note()]
    if epochs < config.epochs:
        notes.append(f"{epochs} of {config.epochs} epochs fit into {config.minutes:g} minutes")
    if config.average:
        words = (
            f"the weights of the last {averaged} epochs" if averaged else "nothing: too few epochs"
        )
        notes.append(f"averaged: {words}")
    task = batches.task
    return {
        "task": task.name,
        "labels": list(task.labels),
        "train_rows": batches.train_rows,
        "steps": steps,
        "steps_per_epoch": batches.steps_per_epoch,
        "epochs": epochs,
        "averaged_epochs": averaged,
        "parameters": sum(one.numel() for one in start.model.parameters()),
        "swap": [asdict(row) for row in start.swap],
        "length": batches.length,
        "truncated": batches.examples.cut,
        "notes": [note for note in notes if note],
        "seconds": seconds,
        "threads": config.threads,
        "precision": config.precision,
    }


def _fitting_epochs(
    config: FinetuneConfig, batches: EpochBatches, trainer: Trainer
) -> tuple[int, float]:
    """Return the epochs that fit into the minutes, and the seconds that they take.

    Steps with long texts take longer: time is measured per token of padded rows, on steps from
    all over the epoch.
    """
    steps = batches.steps_per_epoch
    timed_steps = sorted({number * steps // TIMED_STEPS for number in range(TIMED_STEPS)})
    seconds = trainer.time_steps(timed_steps)
    per_token = seconds / sum(batches.padded_tokens(step) for step in timed_steps)
    training = per_token * sum(batches.padded_tokens(step) for step in range(steps))
    epoch = training + trainer.time_evaluation()
    # The linear probe reads every training text once, without a gradient.
    before = training / 3 if config.head_init == "probe" else 0.0
    epochs = config.epochs
    if config.minutes is not None:
        epochs = min(epochs, int((60 * config.minutes - before) / epoch))
    if epochs < 1:
        needed = (before + epoch) / 60
        raise HeadstartError(
            f"one epoch takes about {needed:.2g} minutes, and --minutes is {config.minutes:g}",
            fix=f"give --minutes {1.1 * needed:.2g} or more, fewer rows, or a smaller network",
            code="does-not-fit",
        )
    return epochs, before + epochs * epoch
