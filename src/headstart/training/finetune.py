"""Fine-tuning: a base and labelled texts become a classifier (or another model, by the task).

Without a base the same network is trained from scratch. The start is the only difference: batches,
head and everything else come from the config and its seed.
"""

import json
import math
import shlex
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.config import FinetuneConfig, is_run, read_settings
from headstart.data.batches import LengthBatches
from headstart.data.dataset import Splits
from headstart.data.tokenizers import Tokenizer, hash_of
from headstart.files import locked
from headstart.machine import autocast
from headstart.model.checkpoint import save_model
from headstart.model.model import Model
from headstart.model_card import CardScore, usage, write_card
from headstart.run import SUMMARY, NetworkRun, write_rows, write_summary, write_task
from headstart.tasks import find_task
from headstart.tasks.task import Examples, Task, TextEncoding, TokenDropout
from headstart.training.callbacks import Callback, Callbacks, MetricsFile
from headstart.training.initialization import fit_head, read_splits, start_model, text_encoding
from headstart.training.run_files import (
    base_fingerprint,
    check_identity,
    read_plan,
    start_config,
    write_start,
)
from headstart.training.trainer import MicroBatch, Trainer, TrainState
from headstart.unlike import TrainingTokens

# Products in bf16 are prepared for each length (oneDNN caches the last thousand): a few lengths
# that come again save more time than their padding costs.
BF16_MULTIPLE = 8
TIMED_STEPS = 4
# What a summary takes over from the plan.
PLANNED = ("task", "labels", "train_rows", "validation_rows", "truncated", "parameters", "swap",
           "averaged_epochs")  # fmt: skip
TASK_LIMITS = (
    "Every prediction is one of the labels above.",
    "It reproduces errors and bias of its labelled texts and of its base's corpus.",
    "If validation rows selected the epoch or the settings, the metrics on these rows are slightly "
    "too high. `headstart evaluate` on labelled texts that it has not seen gives unbiased ones.",
)


def finetune(
    config: FinetuneConfig,
    folder: Path | None,
    *,
    splits: Splits[Any] | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    dry_run: bool = False,
) -> NetworkRun:
    """Fine-tune a base on labelled texts.

    Parameters
    ----------
    folder : the run folder; it must not hold a run yet, unless `resume`. With None the run is
        trained in memory and nothing is written.
    splits : rows that were read already; else the config's dataset is read. Only the training and
        validation parts are used: the test part is for `Run.evaluate`.
    resume : continue the run in `folder`, to the same bits as if it had never stopped.
    callbacks : receive the events of the training.
    dry_run : stop before the first step; nothing is written.

    Returns
    -------
    The run, with its `plan`, `summary`, `validation_scores` and `splits`.
    """
    callback = Callbacks([*([] if folder is None else [MetricsFile(folder)]), *callbacks])
    with nullcontext() if folder is None or dry_run else locked(folder):
        sources = config.dataset if splits is None else []
        config = start_config(config, folder, resume=resume, sources=sources)
        if resume and folder is not None and (folder / SUMMARY).is_file():
            return replace(NetworkRun.open(folder), plan=read_plan(folder))
        note = overlap_note(config) if splits is None else None
        splits = read_splits(config, callback) if splits is None else splits
        task: Any = find_task(config.task).from_rows(splits.train)
        start = start_model(config, task, task.texts(splits.train))
        encoding = text_encoding(config, task, start)
        identity = {
            "dataset": _fingerprint(splits),
            "tokenizer": start.tokenizer.fingerprint,
            **({} if config.base is None else {"base": base_fingerprint(config.base)}),
        }
        if resume and folder is not None:
            check_identity(identity, folder)
        callback.stage("encoding")
        train = task.encode(splits.train, encoding)
        weights = task.class_weights(splits.train, train) if config.class_weight else train.weights
        batches = EpochBatches(config, task, train, weights, encoding)
        run = NetworkRun(
            folder,
            start.model,
            start.tokenizer,
            encoding.length,
            encoding.long,
            task=task,
            training_tokens=None if folder is None else count_tokens(task, start.tokenizer, splits),
        )
        validation = task.encode(splits.validation, encoding)
        held_out = Validation(config, run, splits.validation, validation)
        trainer = Trainer(
            start.model,
            lambda step: batches.micro_batches(start.model, step),
            held_out.evaluate,
            config,
            epoch_steps=batches.steps_per_epoch,
            folder=folder,
            callback=callback,
            selection=held_out.selection_score,
            save_best=held_out.save,
        )
        if resume and folder is not None:
            plan = read_plan(folder)
        else:
            plan = make_plan(config, batches, trainer, timed=dry_run)
            plan["validation_rows"] = len(splits.validation)
            plan["swap"] = [asdict(row) for row in start.swap]
            plan["notes"] = [*getattr(splits, "notes", ()), *([] if note is None else [note])]
        run = replace(run, plan=plan, splits=splits)
        if dry_run:
            return run
        if folder is not None and not resume:
            start.tokenizer.save(folder)
            write_task(task, encoding, folder)
            write_rows(splits, folder)
            if run.training_tokens is not None:
                run.training_tokens.save(folder)
            write_start(folder, config, identity, plan)
        step = trainer.checkpoints.last_step() if resume and trainer.checkpoints else 0
        callback.on_start(run, step)
        if not step and config.head_init == "probe":
            with autocast(config.precision or "fp32", trainer.device):
                fit_head(start.model, train, weights, progress=callback.stage("fitting the head"))
        only_last = folder is None and config.selection_metric == "last"
        every = plan["steps"] if only_last else batches.steps_per_epoch
        state = trainer.fit(plan["steps"], evaluate_every=every, resume=bool(step))
        best = replace(held_out.best_run(), plan=plan, splits=splits)
        if folder is None:
            return best
        summary = make_summary(config, folder, plan, state, splits)
        doubts = task.notes(best.validation_scores, splits.validation, best.temperature)
        for doubt in doubts:
            callback.on_warning(doubt)
        _write_card(config, best, summary, identity, doubts)
        write_summary(summary, folder)
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        return replace(best, summary=summary)


def count_tokens(
    task: Task[Any], tokenizer: Tokenizer, splits: Splits[Any]
) -> TrainingTokens | None:
    """Count the tokens of the training rows; `None` for tasks other than classes of one text."""
    if not task.whole_texts or len(task.input_names) > 1:
        return None
    return TrainingTokens.count(tokenizer, splits.train.texts, splits.validation.texts)


class EpochBatches:
    """The micro-batches of every step of a fine-tuning.

    `weights` say how much each example counts; `lengths` are the longest row of each, after token
    dropout.
    """

    def __init__(
        self,
        config: FinetuneConfig,
        task: Task[Any],
        examples: Examples,
        weights: NDArray[np.float32],
        encoding: TextEncoding,
    ) -> None:
        self.config, self.task, self.examples, self.weights = config, task, examples, weights
        self.length = encoding.length
        self.lengths, self.dropout = examples.lengths, None
        long_share = config.long_token_dropout if examples.is_pooled else 0.0
        if task.whole_texts and (config.token_dropout or long_share):
            special = frozenset(encoding.tokenizer.specials.values())
            self.dropout = TokenDropout(config.token_dropout or 0.0, long_share, special)
            kept = examples.kept_after(self.dropout)
            self.lengths = np.array([rows.max() for rows in kept], dtype=np.int64)
        self.order = LengthBatches(self.lengths, batch_size=config.batch_size, seed=config.seed)
        self.steps_per_epoch = self.order.steps_per_epoch
        on_cpu = (config.device or "cpu") == "cpu"
        self.multiple = BF16_MULTIPLE if on_cpu and config.precision == "bf16" else 1
        # For whole texts, the loss is divided by rows × the mean weight of all rows. Dividing by
        # the sum of the batch's own weights would cancel the weights of a batch of rare classes.
        self.mean_weight = float(weights.mean()) if task.whole_texts else None

    def padded_tokens(self, step: int) -> int:
        """Return the tokens that a step computes, padding included."""
        rows = self.order.batch(step)
        return self._padded_length(rows) * int(self.examples.rows[rows].sum())

    def _padded_length(self, rows: Any) -> int:
        return self.examples.padded_length(int(self.lengths[rows].max()), self.multiple)

    def micro_batches(self, model: Model, step: int) -> list[MicroBatch]:
        """Return the rows of a step, split where they would not fit into memory."""
        rows = self.order.batch(step)
        most = max(1, self.config.micro_batch_tokens // self._padded_length(rows))
        random = np.random.default_rng([self.config.seed, step])
        parts: list[list[int]] = [[]]
        taken = 0
        for row, count in zip(rows, np.minimum(self.examples.rows[rows], most), strict=True):
            if parts[-1] and taken + count > most:
                parts.append([])
                taken = 0
            parts[-1].append(int(row))
            taken += int(count)
        return [self._micro_batch(model, np.array(part), most, random) for part in parts]

    def _micro_batch(
        self, model: Model, rows: NDArray[np.int64], most: int, random: np.random.Generator
    ) -> MicroBatch:
        device = next(model.parameters()).device
        padded = self.examples.batch(
            rows, most=most, dropout=self.dropout, random=random, multiple=self.multiple
        )
        batch = padded.to(device)
        weights = torch.from_numpy(self.weights[rows]).to(device)

        def compute() -> torch.Tensor:
            outputs = model(batch.tokens, batch.segments, batch.token_types, owners=batch.owners)
            return (self.task.loss(outputs, batch) * weights).sum()

        total = float(weights.sum())
        if self.mean_weight is not None:
            total = len(rows) * self.mean_weight
        return MicroBatch(compute, total, int(batch.segments.sum()))


class Validation:
    """Evaluates the validation rows, and saves the model with its scores when they are the best.

    `examples` are the rows, encoded. The best weights of a run without a folder stay in memory.
    """

    def __init__(
        self, config: FinetuneConfig, run: NetworkRun, rows: Any, examples: Examples
    ) -> None:
        self.config, self.run, self.rows, self.examples = config, run, rows, examples
        self.scores: Any = None  # of the best epoch
        self._latest: Any = None
        self._weights: dict[str, torch.Tensor] = {}

    def evaluate(self) -> dict[str, float]:
        """Return the metrics of the model as it is."""
        task: Any = self.run.task
        self._latest = task.decode(self.run.outputs(self.examples), self.examples)
        return task.metrics(self._latest, self.rows)

    def selection_score(self, metrics: dict[str, float], last: bool) -> float:
        """Return what selects the best epoch: the lower, the better."""
        if self.config.selection_metric == "last":
            return 0.0 if last else math.inf
        if self.config.selection_metric == "loss":
            return metrics["loss"]
        # Of two epochs that are equally good, the one with the lower loss.
        return -metrics[self.run.require_task().metric] + 1e-6 * min(metrics["loss"], 100.0)

    def save(self) -> None:
        """Save the model and the scores of the last evaluation."""
        self.scores = self._latest
        if self.run.folder is None:
            self._weights = deepcopy(self.run.model.state_dict())
            return
        save_model(self.run.model, self.run.folder)
        write_task(self.run.require_task(), self.run.encoding, self.run.folder, self._temperature())

    def best_run(self) -> NetworkRun:
        """Return the run with its best weights, calibrated."""
        if self.run.folder is not None:
            found = NetworkRun.open(self.run.folder)
            if self.scores is None:  # the best epoch was before the training was resumed
                self.scores = found.scores(self.rows)
            return replace(found, validation_scores=self.scores)
        self.run.model.load_state_dict(self._weights)
        return replace(self.run, temperature=self._temperature(), validation_scores=self.scores)

    def _temperature(self) -> float:
        return self.run.require_task().fit_temperature(self.scores, self.rows)


def make_plan(
    config: FinetuneConfig, batches: EpochBatches, trainer: Trainer, *, timed: bool
) -> dict[str, Any]:
    """Describe what will be trained; with `timed`, estimate the seconds by timing some steps.

    Steps with long texts take longer: time is measured per token of padded rows, on steps from
    all over the epoch.
    """
    every, seconds = batches.steps_per_epoch, None
    if timed:
        timed_steps = sorted({number * every // TIMED_STEPS for number in range(TIMED_STEPS)})
        per_token = trainer.time_steps(timed_steps) / sum(map(batches.padded_tokens, timed_steps))
        training = per_token * sum(map(batches.padded_tokens, range(every)))
        seconds = config.epochs * (training + trainer.time_evaluation())
        if config.head_init == "probe":  # it reads every text once, without a gradient
            seconds += training / 3
    steps = config.epochs * every
    return {
        "task": batches.task.name,
        "labels": list(batches.task.labels),
        "train_rows": int(batches.examples.owners[-1]) + 1,
        "steps": steps,
        "steps_per_epoch": every,
        "epochs": config.epochs,
        "averaged_epochs": trainer.average.count(steps),
        "parameters": sum(one.numel() for one in trainer.model.parameters()),
        "length": batches.length,
        "truncated": batches.examples.cut,
        "seconds": seconds,
        "threads": config.threads,
        "precision": config.precision,
    }


def overlap_note(config: FinetuneConfig) -> str | None:
    """Return a warning, if the base may have read texts that it will be evaluated on.

    A base whose pretraining was given the dataset (`task_text`) has not read its held-out texts,
    unless they are split in another way here. A base that continued another one has read that
    one's corpus, too.
    """
    default_split = not (config.validation or config.test or config.split_seed)
    datasets = {Path(one).resolve() for one in config.dataset}
    corpora: list[str] = []
    bases = [] if config.fresh else [config.base]
    for base in bases:
        if base is not None and is_run(Path(base)):
            settings = read_settings(Path(base))
            task_text = settings.get("task_text")
            removed = task_text and default_split and Path(task_text).resolve() in datasets
            corpora += [] if removed else settings.get("corpus", [])
            bases += {settings.get("base")} - set(bases)
    if not corpora:
        return None
    return (
        f"the base was pretrained on {', '.join(dict.fromkeys(corpora))}, which may contain "
        f"validation or test texts: check with headstart inspect {shlex.join(config.dataset)} "
        f"--corpus {shlex.quote(corpora[0])}; headstart pretrain --task-text "
        f"{shlex.quote(config.dataset[0])} removes them"
    )


def _fingerprint(splits: Splits[Any]) -> str:
    """Return a hash of the rows that train and select."""
    parts = [
        {name: value for name, value in vars(part).items() if value is not None}
        for part in (splits.train, splits.validation)
    ]
    return hash_of(json.dumps(parts, default=list).encode())


def make_summary(
    config: FinetuneConfig,
    folder: Path,
    plan: dict[str, Any],
    state: TrainState,
    splits: Splits[Any],
) -> dict[str, Any]:
    """Return the content of `summary.json`: the epochs, and the numbers of the saved weights."""
    epochs: list[dict[str, Any]] = []
    for number, row in enumerate(state.history, start=1):
        found = {"epoch": number, "best": row["step"] == state.best_step, **row}
        found["validation_loss"] = found.pop("loss")
        del found["total_seconds"]
        epochs.append(found)
    best = next(row for row in epochs if row["best"])
    return {
        "run": str(folder),
        "base": config.base,
        "seed": config.seed,
        "test_rows": 0 if splits.test is None else len(splits.test),
        **{name: plan[name] for name in PLANNED},
        "steps": state.step,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "epochs": epochs,
        "best_epoch": best["epoch"],
        "validation": {
            name: value for name, value in best.items() if name not in ("epoch", "step", "best")
        },
    }


def _write_card(
    config: FinetuneConfig,
    run: NetworkRun,
    summary: dict[str, Any],
    identity: dict[str, str],
    doubts: list[str],
) -> None:
    """Describe what a model was trained on, how, how good it is, and what is suspicious."""
    task, splits = run.require_task(), run.splits
    rows, labels = summary["validation_rows"], summary["labels"]
    role = "for the curves alone" if config.selection_metric == "last" else "selected the epoch"
    facts = {
        "task": task.name,
        "labels": ", ".join(labels[:30]) + (", …" if len(labels) > 30 else ""),
        "dataset": ", ".join(Path(source).name for source in config.dataset),
        "rows": f"{summary['train_rows']:,} for training, {rows:,} {role}",
        "base": "none: trained from scratch" if config.base is None else Path(config.base).name,
        "parameters": f"{summary['parameters']:,}",
        "epochs": f"{len(summary['epochs'])}, epoch {summary['best_epoch']} is saved",
        "epochs whose weights are averaged": summary["averaged_epochs"] or "none",
        "learning rate": f"{config.learning_rate:g}",
        "seed": config.seed,
    }
    on = f"validation, {rows:,} {task.row_name}"
    write_card(
        run.folder,
        title=f"A model for {task.name}, fine-tuned with Headstart",
        facts=facts,
        scores=[
            CardScore(name.replace("_", " "), one["value"], on, one["low"], one["high"])
            for name, one in task.intervals(run.validation_scores, splits.validation).items()
        ],
        fingerprints=identity,
        use=usage(len(task.input_names)),
        limits=[*TASK_LIMITS, *doubts],
    )
