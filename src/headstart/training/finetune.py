"""Fine-tuning: a base and labelled texts become a classifier (or another model, by the task).

Without a base the same network is trained from scratch. The start is the only difference: batches,
head and everything else come from the config and its seed.
"""

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.config import FinetuneConfig
from headstart.data.dataset import Splits
from headstart.files import locked
from headstart.machine import autocast
from headstart.run import SUMMARY, NetworkRun, write_rows, write_summary, write_task
from headstart.tasks import find_task
from headstart.training.batches import EpochBatches, Validation
from headstart.training.callbacks import Callback, Callbacks, MetricsFile
from headstart.training.initialization import fit_head, read_splits, start_model, text_encoding
from headstart.training.run_files import (
    check_identity,
    dataset_identity,
    finetune_summary,
    overlap_note,
    plan_finetuning,
    read_plan,
    start_config,
    write_finetuning_card,
    write_start,
)
from headstart.training.trainer import Trainer


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
        identity = dataset_identity(config, splits, start.tokenizer)
        if resume and folder is not None:
            check_identity(identity, folder)
        callback.stage("encoding")
        train = task.encode(splits.train, encoding)
        weights = task.class_weights(splits.train, train) if config.class_weight else train.weights
        batches = EpochBatches(config, task, train, weights, encoding)
        run = NetworkRun(folder, start.model, start.tokenizer, task, encoding.length, encoding.long)
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
            notes = [*getattr(splits, "notes", ()), note]
            plan = plan_finetuning(config, start, batches, trainer, notes=notes, timed=dry_run)
            plan["validation_rows"] = len(splits.validation)
        run = replace(run, plan=plan, splits=splits)
        if dry_run:
            return run
        if folder is not None and not resume:
            start.tokenizer.save(folder)
            write_task(task, encoding, folder)
            write_rows(task, splits, folder)
            write_start(folder, config, identity, plan)
        step = trainer.checkpoints.last_step() if resume and trainer.checkpoints else 0
        callback.on_start(run, step)
        if not step and config.head_init == "probe":
            with autocast(config.precision or "fp32", trainer.device):
                fit_head(start.model, train, weights, progress=callback.stage("fitting the head"))
        only_last = folder is None and config.selection_metric == "last"
        every = plan["steps"] if only_last else batches.steps_per_epoch
        state = trainer.fit(plan["steps"], evaluate_every=every, resume=bool(step))
        if folder is None:
            return replace(held_out.best_run(), plan=plan, splits=splits)
        summary = finetune_summary(config, plan, state, splits)
        summary["run"] = str(folder)
        best = replace(held_out.best_run(), plan=plan, splits=splits, summary=summary)
        doubts = task.notes(best.validation_scores, splits.validation, best.temperature)
        for doubt in doubts:
            callback.on_warning(doubt)
        write_finetuning_card(folder, config, task, summary, identity, doubts)
        write_summary(summary, folder)
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        return best
