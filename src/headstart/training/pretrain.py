"""Pretraining: train a base on a corpus, in a run folder that holds everything about it."""

import math
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from headstart.config import PretrainConfig
from headstart.data.corpus import Corpus
from headstart.data.tokenizers import load_tokenizer
from headstart.files import locked
from headstart.model.checkpoint import save_model
from headstart.run import SUMMARY, NetworkRun, write_summary
from headstart.training.batches import CorpusBatches
from headstart.training.callbacks import Callback, Callbacks, MetricsFile
from headstart.training.corpus import corpus_warnings, prepare_corpus
from headstart.training.initialization import initial_model
from headstart.training.processes import find_processes
from headstart.training.run_files import (
    base_fingerprint,
    check_identity,
    plan_pretraining,
    read_plan,
    start_config,
    write_pretraining_card,
    write_start,
)
from headstart.training.trainer import Trainer


def pretrain(
    config: PretrainConfig,
    folder: Path,
    *,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    corpus: Corpus | None = None,
    save_initial: Path | None = None,
    dry_run: bool = False,
) -> NetworkRun:
    """Train a base on a corpus.

    Parameters
    ----------
    folder : the run folder; it must not hold a run yet, unless `resume`.
    resume : continue the run in `folder`, to the same bits as if it had never stopped.
    callbacks : receive the events of the training.
    corpus : one that was opened and checked already; else the config's is read.
    save_initial : a folder for the model before the first step.
    dry_run : stop before the first step; nothing is written.

    Returns
    -------
    The run, with its `plan` and `summary`.
    """
    processes = find_processes()
    callback = Callbacks([MetricsFile(folder), *callbacks] if processes.first else [])
    with ExitStack() as stack:
        if processes.first and not dry_run:
            stack.enter_context(locked(folder))
        config = start_config(config, folder, resume=resume, sources=config.corpus)
        stack.enter_context(processes.connected(str(config.device), config.threads or 1))
        config = config.replace(precision=processes.agree(config.precision))
        tokenizer = load_tokenizer(folder) if resume else None
        data = processes.in_turn(
            lambda: prepare_corpus(config, callback=callback, corpus=corpus, tokenizer=tokenizer)
        )
        base = {} if config.base is None else {"base": base_fingerprint(config.base)}
        identity = data.identity | base
        if resume:
            check_identity(identity, folder)
        if resume and (folder / SUMMARY).is_file():
            return replace(NetworkRun.open(folder), plan=read_plan(folder))
        warn = processes.first and not resume and corpus is None
        for warning in corpus_warnings(config, callback) if warn else []:
            callback.on_warning(warning)
        batches = CorpusBatches(config, data, processes.count)
        model = processes.in_turn(lambda: initial_model(config, data, callback))
        processes.copy_weights(model)
        model.base.embedding.sparse = batches.sampler is not None or not model.tied
        run = NetworkRun(folder, model, data.tokenizer)
        if save_initial is not None:
            run.save(save_initial)
            config.save(save_initial)
        trainer = Trainer(
            model,
            lambda step: batches.micro_batches(model, step, trainer.state.steps),
            lambda: batches.evaluate(model),
            config,
            folder=folder,
            callback=callback,
            # What is read last moves the base towards its task: with task text, the last weights
            # are saved, whatever the held-out loss says.
            selection=lambda metrics, last: -1.0 if last and data.task_text else metrics["loss"],
            save_best=lambda: save_model(model, folder),
            processes=processes,
        )
        plan = read_plan(folder) if resume else plan_pretraining(config, data, trainer)
        plan = processes.agree(plan)
        if dry_run:
            return replace(run, plan=plan)
        if processes.first and not resume:
            data.tokenizer.save(folder)
            write_start(folder, config, identity, plan)
        assert trainer.checkpoints is not None
        step = trainer.checkpoints.last_step() if resume else 0
        callback.on_start(replace(run, plan=plan), step)
        state = trainer.fit(plan["steps"], evaluate_every=plan["evaluate_every"], resume=bool(step))
        if not processes.first:
            return replace(run, plan=plan)
        hidden = ("step", "train_loss", "seconds", "total_seconds")
        summary = {
            "run": str(folder),
            "objective": config.objective,
            "steps": state.step,
            "tokens": state.tokens,
            "seconds": state.seconds,
            "tokens_per_second": state.tokens / max(state.seconds, 1e-9),
            "best_step": state.best_step,
            "held_out": {k: v for k, v in state.best_row.items() if k not in hidden},
            "unigram_perplexity": math.exp(batches.unigram_loss()),
            "parameters": plan["parameters"],
        }
        write_pretraining_card(folder, config, summary, identity)
        write_summary(summary, folder)  # with it, the run is finished
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        return replace(NetworkRun.open(folder), plan=plan)
