"""Pretraining: a corpus becomes a base, in a run folder that holds all there is to know of it."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.machine.facts import choose_threads
from headstart.model.candidates import CandidateSampler
from headstart.model.checkpoint import save_model
from headstart.model.model import Model
from headstart.objectives import find_objective
from headstart.objectives.objective import Batch
from headstart.run_folder import write_summary
from headstart.text.reading.corpus import Corpus
from headstart.text.store.token_source import TokenSource
from headstart.training.checkpoints import Checkpoints
from headstart.training.loop import Loop, LoopSettings, MicroBatch, Progress
from headstart.training.metrics import Metrics
from headstart.training.model_card import write_pretraining_card
from headstart.training.plan import Pace, Plan, make_plan
from headstart.training.prepare import (
    Prepared,
    Stages,
    check_corpus,
    first_model,
    prepare,
    quiet,
)
from headstart.training.recipe import PretrainRecipe
from headstart.training.recipe_file import (
    check_identity,
    refuse_a_second_run,
    resumed,
    write_identity,
    write_recipe,
)
from headstart.training.threads import try_threads

PLAN = "plan.json"
HELD_OUT_ROWS = 64  # enough for a stable loss, few enough to take a second


@dataclass(frozen=True)
class Listener:
    """What wants to know how it goes: a display, or nothing."""

    stages: Stages = quiet
    on_plan: Callable[[Plan], None] = lambda plan: None
    on_step: Callable[[Progress], None] = lambda progress: None
    on_evaluation: Callable[[Progress], None] = lambda progress: None
    on_warning: Callable[[str], None] = lambda warning: None


def pretrain(
    recipe: PretrainRecipe, folder: Path, *, resume: bool = False, listener: Listener | None = None
) -> dict[str, Any]:
    """Train a base on a corpus; returns the run's summary, which is also in `summary.json`."""
    training = Pretraining(recipe, folder, resume=resume, listener=listener or Listener())
    return training.run()


class Pretraining:
    """One pretraining, from its recipe to its run folder."""

    def __init__(
        self,
        recipe: PretrainRecipe,
        folder: Path,
        *,
        resume: bool,
        listener: Listener,
        corpus: Corpus | None = None,
        save_seconds: float = 60.0,
        tensorboard: bool = False,
    ) -> None:
        # `corpus` is one that was opened and looked at already, such as one without test texts.
        self.folder, self.resume, self.listener = folder, resume, listener
        self.tensorboard = tensorboard
        self.save_seconds = save_seconds  # changes no bit, so it is not in the recipe
        self.recipe = resumed(recipe, folder) if resume else recipe
        if not resume:
            refuse_a_second_run(folder)
        torch.set_num_threads(choose_threads(self.recipe.threads or None))
        self.prepared: Prepared = prepare(self.recipe, stages=listener.stages, corpus=corpus)
        self.identity = {
            "corpus": self.prepared.corpus_fingerprint,
            "tokenizer": self.prepared.tokenizer.fingerprint,
        }
        if resume:
            check_identity(self.identity, folder)
        elif corpus is None:
            for warning in check_corpus(self.recipe, stages=listener.stages):
                listener.on_warning(warning)
        self.objective = find_objective(self.recipe.objective)(mask_share=self.recipe.mask_share)
        if not self.recipe.threads:
            self.recipe = self.recipe.changed(threads=self._fastest_threads())
            torch.set_num_threads(self.recipe.threads)
        self.model: Model = first_model(self.recipe, self.prepared, stages=listener.stages)
        self.use_output(self.recipe.output)
        self.loop = self._loop(steps=1, evaluate_every=1)
        self.plan = (
            self._read_plan() if resume else make_plan(self.recipe, self.prepared, self.loop)
        )
        self.loop = self._loop(self.plan.steps, self.plan.evaluate_every)

    def run(self) -> dict[str, Any]:
        self.listener.on_plan(self.plan)
        if not self.resume:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.prepared.tokenizer.save(self.folder)
            write_text(self.folder / PLAN, json.dumps(vars(self.plan), indent=2) + "\n")
            write_identity(self.identity, self.folder)
            write_recipe(self.recipe, self.folder)  # last: with it, this is a run
        self.metrics = Metrics(self.folder / "metrics.jsonl", tensorboard=self.tensorboard)
        self.pace = Pace(self.plan)
        resume = self.resume and bool(Checkpoints(self.folder / "checkpoints").list())
        self.metrics.cut_after(self._saved_step() if resume else 0)
        progress = self.loop.run(resume=resume)
        return self._finish(progress)

    def batches(self, step: int) -> list[MicroBatch]:
        """A step's batch, cut where it would not fit into memory."""
        rows, key = self.recipe.rows, (self.recipe.seed, step)
        batch = self.objective.batch(self.prepared.train, rows, key)
        if self.sampler is not None:
            batch = replace(batch, candidates=self.sampler.draw(batch.targets, step))
        fitting = max(1, self.recipe.micro_batch_tokens // self.recipe.length)
        return [self._micro_batch(part.to(self.loop.device)) for part in batch.cut(fitting)]

    def _micro_batch(self, batch: Batch) -> MicroBatch:
        return MicroBatch(
            compute=lambda: self.objective.loss(self.model, batch).total,
            targets=batch.targets.numel(),
            tokens=batch.real_tokens,
        )

    def evaluate(self) -> dict[str, float]:
        """The loss on held-out rows, always the same ones with the same tokens hidden."""
        source = self.prepared.held_out
        total, targets, parts = 0.0, 0, dict[str, list[float]]()
        for step in range(self._held_out_steps(source)):
            batch: Batch = self.objective.batch(source, self.recipe.rows, (0, step))
            loss = self.objective.loss(self.model, batch.to(self.loop.device))
            total += float(loss.total)
            targets += loss.targets
            for name, (value, count) in loss.parts.items():
                sums = parts.setdefault(name, [0.0, 0])
                sums[0] += value
                sums[1] += count
        mean = total / targets
        named = {name: value / count for name, (value, count) in parts.items()}
        pieces = named.get("pieces", mean)
        found = {"loss": mean, "perplexity": math.exp(min(pieces, 50)), **named}
        if self.objective.can_generate:  # only then is it the probability of the whole text
            found["bits_per_byte"] = pieces / math.log(2) / self.bytes_per_token
        return found

    @property
    def bytes_per_token(self) -> float:
        store = self.prepared.held_out.store
        return self.prepared.held_out_bytes / (store.tokens + len(store))  # each text's end counts

    def _held_out_steps(self, source: TokenSource) -> int:
        rows = min(HELD_OUT_ROWS, len(source.packed(extra=1)))
        return max(1, rows // self.recipe.rows)

    def use_output(self, output: str) -> None:
        """Compute the steps' output layer over candidates, or over every piece."""
        self.sampler = None
        if output == "candidates":
            self.sampler = CandidateSampler(
                self.prepared.train.store.counts(self.prepared.tokenizer.vocab_size),
                frequent=self.recipe.frequent,
                drawn=self.recipe.drawn,
                seed=self.recipe.seed,
            )
        tied = len(self.model.vocabulary_rows) == 1
        self.model.base.embedding.sparse = self.sampler is not None or not tied

    def _fastest_threads(self) -> int:
        """Tried with a model that is thrown away: the first weights are made with the result."""
        random = self.recipe.changed(embedding_start="random")
        self.model = first_model(random, self.prepared)
        self.use_output(self.recipe.output)
        self.loop = self._loop(steps=1, evaluate_every=1)
        return try_threads(self.loop)

    def _loop(self, steps: int, evaluate_every: int) -> Loop:
        recipe = self.recipe
        settings = LoopSettings(
            steps=steps,
            learning_rate=recipe.learning_rate,
            seed=recipe.seed,
            warmup=recipe.warmup,
            weight_decay=recipe.weight_decay,
            precision=recipe.precision,
            evaluate_every=evaluate_every,
            save_seconds=self.save_seconds,
        )
        return Loop(
            self.model,
            settings,
            batches=self.batches,
            evaluate=self.evaluate,
            checkpoints=Checkpoints(self.folder / "checkpoints"),
            scales=self._scales(),
            on_step=self._on_step,
            on_evaluation=self._on_evaluation,
            on_best=lambda progress: save_model(self.model, self.folder),
        )

    def _scales(self) -> dict[str, float]:
        rate = self.recipe.embedding_learning_rate
        rows = {id(parameter) for parameter in self.model.vocabulary_rows}
        return {
            name: rate / self.recipe.learning_rate
            for name, parameter in self.model.named_parameters()
            if rate and id(parameter) in rows
        }

    def _on_step(self, progress: Progress) -> None:
        self.metrics.write(progress)
        if self.pace.is_off(progress):
            self.listener.on_warning(self.pace.warning(progress))
        self.listener.on_step(progress)

    def _on_evaluation(self, progress: Progress) -> None:
        self.metrics.write(progress, evaluation=True)
        self.listener.on_evaluation(progress)

    def _read_plan(self) -> Plan:
        path = self.folder / PLAN
        try:
            return Plan(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise HeadstartError("the run's plan is missing or damaged", where=path) from None

    def _saved_step(self) -> int:
        return Checkpoints(self.folder / "checkpoints").list()[-1].step

    def _finish(self, progress: Progress) -> dict[str, Any]:
        summary = {
            "run": str(self.folder),
            "objective": self.recipe.objective,
            "steps": progress.step,
            "tokens": progress.tokens,
            "seconds": progress.seconds,
            "tokens_per_second": progress.tokens / max(progress.seconds, 1e-9),
            "best_step": progress.best_step,
            "held_out": progress.evaluation,
            "unigram_perplexity": math.exp(unigram_loss(self.prepared)),
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }
        write_summary(summary, self.folder)
        write_pretraining_card(self.recipe, summary, self.folder)
        return summary


def unigram_loss(prepared: Prepared, *, most: int = 5_000_000) -> float:
    """The held-out loss of a model that knows only how frequent each token is."""
    vocab_size = prepared.tokenizer.vocab_size
    counts = np.ones(vocab_size)  # one for each, so that nothing is impossible
    seen = 0
    for document in prepared.train.store:
        np.add.at(counts, document, 1)
        seen += len(document)
        if seen >= most:
            break
    log_probabilities = np.log(counts / counts.sum())
    total = sum(float(log_probabilities[document].sum()) for document in prepared.held_out.store)
    return -total / prepared.held_out.store.tokens
