"""Pretraining: train a base on a corpus, in a run folder that holds everything about it."""

import math
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headstart.config import PretrainConfig
from headstart.data.batches import ViewsBatch
from headstart.data.corpus import Corpus
from headstart.data.inspect import inspect_data
from headstart.data.tokenizers import load_tokenizer
from headstart.errors import HeadstartError
from headstart.files import locked
from headstart.model.checkpoint import save_model
from headstart.model.model import Model
from headstart.model.sampled_softmax import SoftmaxSampler
from headstart.model_card import CardScore, write_card
from headstart.objectives import OBJECTIVES, Batch, contrastive_loss
from headstart.run import SUMMARY, NetworkRun, write_summary
from headstart.training.callbacks import Callback, Callbacks, MetricsFile
from headstart.training.corpus import PretrainData, open_corpus, prepare_corpus
from headstart.training.initialization import initial_model
from headstart.training.processes import Processes
from headstart.training.run_files import (
    base_fingerprint,
    check_identity,
    read_plan,
    start_config,
    write_start,
)
from headstart.training.trainer import MicroBatch, Trainer

NUM_FREQUENT = NUM_SAMPLED = 512  # of the sampled softmax
LARGE_VOCABULARY = 4 * (NUM_FREQUENT + NUM_SAMPLED)
HELD_OUT_ROWS = 64  # enough for a stable loss, few enough to take a second
DEFAULT_MINUTES = 10.0
TIMED_STEPS = 4
EVALUATION_SHARE = 0.03  # of the minutes, at most
LIMITS = (
    "It can only repeat what its corpus says, including its errors.",
    "The held-out documents come from the same corpus: other texts are harder to predict.",
)


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
    processes = Processes()
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
        identity = {
            **data.identity,
            **({} if config.base is None else {"base": base_fingerprint(config.base)}),
        }
        if resume:
            check_identity(identity, folder)
            if (folder / SUMMARY).is_file():
                return replace(NetworkRun.open(folder), plan=read_plan(folder))
        elif processes.first and corpus is None:
            stage = callback.stage("inspecting the corpus")
            for warning in inspect_data(None, open_corpus(config), progress=stage).warnings:
                callback.on_warning(warning)
        batches = CorpusBatches(config, data, processes)
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
        plan = processes.agree(read_plan(folder) if resume else make_plan(config, data, trainer))
        run = replace(run, plan=plan)
        if dry_run:
            return run
        if processes.first and not resume:
            data.tokenizer.save(folder)
            write_start(folder, config, identity, plan)
        assert trainer.checkpoints is not None
        step = trainer.checkpoints.last_step() if resume else 0
        callback.on_start(run, step)
        state = trainer.fit(plan["steps"], evaluate_every=plan["evaluate_every"], resume=bool(step))
        if not processes.first:
            return run
        best = next(row for row in state.history if row["step"] == state.best_step)
        summary = {
            "run": str(folder),
            "objective": config.objective,
            "steps": state.step,
            "tokens": state.tokens,
            "seconds": state.seconds,
            "tokens_per_second": state.tokens / max(state.seconds, 1e-9),
            "best_step": state.best_step,
            "held_out": {
                k: v
                for k, v in best.items()
                if k not in ("step", "train_loss", "seconds", "total_seconds")
            },
            "parameters": plan["parameters"],
        }
        if "perplexity" in summary["held_out"]:
            summary["unigram_perplexity"] = math.exp(batches.unigram_loss())
        _write_card(folder, config, summary, identity)
        write_summary(summary, folder)  # with it, the run is finished
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        return replace(NetworkRun.open(folder), plan=plan)


class CorpusBatches:
    """The micro-batches of every step of a pretraining, and its held-out loss.

    Parameters
    ----------
    processes : how many share each step; there is a micro-batch for each of them.

    Attributes
    ----------
    sampler : SoftmaxSampler or None
        Draws the classes of a sampled softmax; a small vocabulary is scored in full.
    """

    def __init__(
        self, config: PretrainConfig, data: PretrainData, processes: Processes | None = None
    ) -> None:
        self.config, self.data, self.processes = config, data, processes or Processes({})
        count = self.processes.count
        if config.rows < count:
            raise HeadstartError(
                f"a step has {config.rows} rows, too few for {count} processes",
                fix=f"use fewer processes, or --batch-tokens {count * config.length} or more",
            )
        most = max(1, config.micro_batch_tokens // config.length)
        self.micro_rows = min(most, config.rows // count)
        self.objective = OBJECTIVES[config.objective](mask_share=config.mask_share)
        vocab_size = data.tokenizer.vocab_size
        large = config.softmax == "auto" and vocab_size > LARGE_VOCABULARY
        self.sampler = None
        if config.softmax == "sampled" or large:
            self.sampler = SoftmaxSampler(
                data.train.store.counts(vocab_size),
                num_frequent=NUM_FREQUENT,
                num_sampled=NUM_SAMPLED,
                seed=config.seed,
            )

    def micro_batches(self, model: Model, step: int, steps: int) -> list[MicroBatch]:
        """Return the batch of a step, split where it would not fit into memory."""
        config, device = self.config, next(model.parameters()).device
        source, number = self.data.source(step, steps)
        found: list[MicroBatch] = []
        for batch in self.objective.batches(source, config.rows, (config.seed, number)):
            if isinstance(batch, ViewsBatch):
                targets = sum(one.targets for one in found)
                found += self._views(model, batch.to(device), targets)
                continue
            sampled = None
            if self.sampler is not None:
                sampled = self.sampler.draw(batch.targets, step)
            parts = replace(batch, sampled=sampled).to(device).split(self.micro_rows)
            found += [self._micro_batch(model, part) for part in parts]
        return found

    def _micro_batch(self, model: Model, part: Batch) -> MicroBatch:
        return MicroBatch(
            lambda: self.objective.loss(model, part).total, part.targets.numel(), part.real_tokens
        )

    def _views(self, model: Model, views: ViewsBatch, targets: float) -> list[MicroBatch]:
        """Return a micro-batch of each process: it reads its share of the documents.

        Parameters
        ----------
        targets : tokens that the step predicts as well; both losses are added as means.
        """
        processes, documents = self.processes, len(views.documents)
        mine = views.part(processes.share(documents))
        weight = (targets or documents) / documents

        def compute() -> Any:
            vectors = processes.join(model.project(mine.tokens, mine.segments), documents)
            loss = weight * contrastive_loss(vectors, views.documents).total
            # Every process has the same loss, and the gradient of its own documents.
            return loss - (1 - 1 / processes.count) * loss.detach()

        counted = 0.0 if targets else documents / processes.count
        return [MicroBatch(compute, counted, mine.real_tokens) for _ in range(processes.count)]

    def _held_out(self) -> list[Any]:
        """Return the held-out batches: always the same rows with the same tokens hidden."""
        source, rows = self.data.held_out, self.data.rows
        count = max(1, min(HELD_OUT_ROWS, source.num_rows(extra=1)) // rows)
        batches = (self.objective.batches(source, rows, (0, number)) for number in range(count))
        return [one for some in batches for one in some]

    def evaluate(self, model: Model) -> dict[str, float]:
        """Return the objective's metrics of held-out documents, with the full softmax."""
        device = next(model.parameters()).device
        losses = [self.objective.loss(model, batch.to(device)) for batch in self._held_out()]
        found = self.objective.metrics(losses)
        if self.objective.attention == "causal" and "perplexity" in found:  # of the whole text
            store = self.data.held_out.store
            bytes_per_token = self.data.held_out_bytes / (store.tokens + len(store))  # with ends
            found["bits_per_byte"] = math.log2(found["perplexity"]) / bytes_per_token
        return found

    def unigram_loss(self) -> float:
        """Return the loss of token frequencies alone, on the tokens that `evaluate` predicts."""
        data = self.data
        counts = 1.0 + data.train.store.counts(data.tokenizer.vocab_size)  # none is impossible
        if data.tokenizer.end_id is not None:
            counts[data.tokenizer.end_id] += len(data.train.store)
        log_probabilities = np.log(counts / counts.sum())
        batches = [batch for batch in self._held_out() if isinstance(batch, Batch)]
        targets = np.concatenate([batch.targets.numpy() for batch in batches])
        return -float(log_probabilities[targets].mean())


def make_plan(config: PretrainConfig, data: PretrainData, trainer: Trainer) -> dict[str, Any]:
    """Turn minutes, epochs or tokens into steps, by timing the first ones."""
    step_seconds = trainer.time_steps(range(TIMED_STEPS)) / TIMED_STEPS
    evaluation_seconds = trainer.time_evaluation()
    # Views of short documents are shorter than a span.
    read = sum(one.tokens for step in range(TIMED_STEPS) for one in trainer.batches(step))
    step_tokens, corpus_tokens = max(1, round(read / TIMED_STEPS)), data.train.tokens
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
    saved = trainer.model.named_parameters()
    return {
        "steps": steps,
        "evaluate_every": -(-steps // evaluations),
        "tokens": steps * step_tokens,
        "epochs": steps * step_tokens / corpus_tokens,
        "corpus_tokens": corpus_tokens,
        "parameters": sum(one.numel() for name, one in saved if not name.startswith("projection.")),
        "seconds": steps * step_seconds + evaluations * evaluation_seconds,
        "threads": config.threads,
        "precision": config.precision,
    }


def _write_card(
    folder: Path, config: PretrainConfig, summary: dict[str, Any], identity: dict[str, str]
) -> None:
    """Describe what a base was trained on, how, and how good it is."""
    use = "turn texts into vectors (`HeadstartEmbedder`)"
    if "perplexity" in summary["held_out"]:
        causal = config.objective.startswith("causal")
        use = "continue a text (`headstart generate`)" if causal else "fill gaps (`headstart fill`)"
    on = f"held-out documents, at step {summary['best_step']:,}, whose weights are saved"
    measured = dict(summary["held_out"])
    if "unigram_perplexity" in summary:
        measured["perplexity of a unigram model"] = summary["unigram_perplexity"]
    write_card(
        folder,
        title="A base pretrained with Headstart",
        facts={
            "start": f"{config.preset}, embedding: {config.embedding_init}"
            if config.base is None
            else Path(config.base).name,
            "corpus": ", ".join(Path(source).name for source in config.corpus),
            "objective": config.objective,
            "parameters": f"{summary['parameters']:,}",
            "training": f"{summary['tokens']:,} tokens in {summary['steps']:,} steps",
            "learning rate": f"{config.learning_rate:g}",
            "seed": config.seed,
        },
        scores=[
            CardScore(name.replace("_", " "), f"{value:,.3f}", on)
            for name, value in measured.items()
        ],
        fingerprints=identity,
        use=f"It can {use} and be fine-tuned (`headstart finetune --base`). Every setting is in "
        "`config.toml`.",
        limits=LIMITS,
    )
