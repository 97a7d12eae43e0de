"""Pretraining: a corpus becomes a base, in a run folder that holds all there is to know of it."""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headstart.lock import locked
from headstart.machine import choose_threads
from headstart.model.checkpoint import save_model
from headstart.model.model import Model
from headstart.model.vocabulary_loss import CandidateSampler
from headstart.objectives import find_objective
from headstart.objectives.objective import Batch, Objective
from headstart.run_folder import write_summary
from headstart.text.reading.corpus import Corpus
from headstart.text.reading.sources import check_outside
from headstart.text.tokenizers.tokenizer import load_tokenizer
from headstart.training.checkpoints import Checkpoints
from headstart.training.first_weights import first_model
from headstart.training.listener import (
    Listener,
    Listeners,
    Progress,
    RunStart,
    SaveBest,
    reporting,
)
from headstart.training.loop import Loop, LoopSettings, MicroBatch
from headstart.training.metrics import MetricsFile, evaluation_at
from headstart.training.plan import (
    Pace,
    Plan,
    choose_output,
    make_plan,
    read_plan,
    step_seconds,
    try_threads,
    write_plan,
)
from headstart.training.prepare import Prepared, check_corpus, prepare
from headstart.training.pretrain_results import (
    evaluate_held_out,
    unigram_loss,
    write_pretraining_card,
)
from headstart.training.recipe import OutputLayer, PretrainRecipe
from headstart.training.recipe_file import (
    check_identity,
    refuse_a_second_run,
    resumed,
    write_identity,
    write_recipe,
)
from headstart.training.schedule import embedding_scales


@dataclass(frozen=True)
class PretrainSetup:
    """What a pretraining works with: the result of `prepare_pretraining`."""

    recipe: PretrainRecipe
    folder: Path
    resume: bool
    data: Prepared
    objective: Objective
    sampler: CandidateSampler | None = None  # of the pieces that a step's output layer scores
    save_seconds: float = 60.0  # between two checkpoints; changes no bit, so no setting

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / "checkpoints")


@dataclass(frozen=True)
class PlannedPretraining:
    """A pretraining that could begin: the result of `plan_pretraining`."""

    setup: PretrainSetup  # its recipe now says how many threads
    model: Model
    plan: Plan


def pretrain(
    recipe: PretrainRecipe,
    folder: Path,
    *,
    resume: bool = False,
    listener: Listener | None = None,
    corpus: Corpus | None = None,
    save_seconds: float = 60.0,
) -> dict[str, Any]:
    """Train a base on a corpus.

    Parameters
    ----------
    recipe : PretrainRecipe
        Every setting of the training.
    folder : Path
        The run folder; it must not hold a run yet, unless `resume`.
    resume : bool
        Resume the run in `folder`, to the same bits as if it had never stopped.
    listener : Listener, optional
        Receives the events of the training.
    corpus : Corpus, optional
        One that was opened and checked already; else the recipe's corpus is read.
    save_seconds : float
        Time between two checkpoints.

    Returns
    -------
    The run's summary, which is also in `summary.json`.
    """
    listener = listener or Listener()
    more: Any = {"resume": resume, "corpus": corpus, "save_seconds": save_seconds}
    with locked(folder):
        setup = prepare_pretraining(recipe, folder, listener=listener, **more)
        planned = plan_pretraining(setup, listener=listener)
        progress = train_base(planned, listener=listener)
        return finish_pretraining(planned, progress, listener=listener)


def prepare_pretraining(
    recipe: PretrainRecipe,
    folder: Path,
    *,
    resume: bool = False,
    listener: Listener | None = None,
    corpus: Corpus | None = None,
    save_seconds: float = 60.0,
) -> PretrainSetup:
    """Read, check and tokenize the corpus. A resumed run must find the same corpus again."""
    listener = listener or Listener()
    check_outside(folder, recipe.corpus)
    if resume:
        recipe = resumed(recipe, folder)
    else:
        refuse_a_second_run(folder)
    torch.set_num_threads(choose_threads(recipe.threads or None))
    own = load_tokenizer(folder) if resume else None
    data = prepare(recipe, stages=listener.stage, corpus=corpus, tokenizer=own)
    objective = find_objective(recipe.objective)(mask_share=recipe.mask_share)
    setup = PretrainSetup(recipe, folder, resume, data, objective, save_seconds=save_seconds)
    if recipe.output != "auto":
        setup = with_output(setup, recipe.output)
    if resume:
        check_identity(setup.data.identity, folder)
    elif corpus is None:
        for warning in check_corpus(recipe, stages=listener.stage):
            listener.on_warning(warning)
    return setup


def plan_pretraining(
    setup: PretrainSetup, *, listener: Listener | None = None
) -> PlannedPretraining:
    """Decide on output layer, threads and steps, and make the first weights.

    Nothing is learned yet: what is tried out is tried with models that are thrown away.
    """
    listener = listener or Listener()
    if setup.recipe.output == "auto":
        trial = partial(with_output, setup)
        output = choose_output(
            setup.recipe,
            setup.data.tokenizer.vocab_size,
            lambda output: step_seconds(trial_loop(trial(output))),
        )
        setup = with_output(setup, output)
    if not setup.recipe.threads:
        # Before the weights: counted vectors round differently with other threads.
        threads = try_threads(trial_loop(setup))
        setup = replace(setup, recipe=setup.recipe.changed(threads=threads))
        torch.set_num_threads(threads)
    model = make_model(setup, listener=listener)
    if setup.resume:
        plan = read_plan(setup.folder)
    else:
        plan = make_plan(setup.recipe, setup.data, make_loop(setup, model))
    return PlannedPretraining(setup, model, plan)


def train_base(planned: PlannedPretraining, *, listener: Listener | None = None) -> Progress:
    """Take the planned steps; the best weights and the metrics are in the run folder then."""
    listener = listener or Listener()
    setup, model, plan = planned.setup, planned.model, planned.plan
    folder = setup.folder
    if not setup.resume:
        folder.mkdir(parents=True, exist_ok=True)
        setup.data.tokenizer.save(folder)
        write_plan(plan, folder)
        write_identity(setup.data.identity, folder)
        write_recipe(setup.recipe, folder)  # last: with it, this is a run
    found = setup.checkpoints.list() if setup.resume else []
    step = found[-1].step if found else 0
    everyone = Listeners(
        [
            MetricsFile(folder),
            SaveBest(lambda: save_model(model, folder)),
            Pace(plan, listener.on_warning),
            listener,
        ]
    )
    loop = make_loop(setup, model, steps=plan.steps, evaluate_every=plan.evaluate_every)
    with reporting(everyone, RunStart("pretraining", folder, setup.recipe, plan, step)):
        return loop.run(resume=bool(found), listener=everyone)


def finish_pretraining(
    planned: PlannedPretraining, progress: Progress, *, listener: Listener | None = None
) -> dict[str, Any]:
    """Write the summary and the model card. Their numbers are those of the weights kept."""
    setup = planned.setup
    summary = {
        "run": str(setup.folder),
        "objective": setup.recipe.objective,
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": progress.seconds,
        "tokens_per_second": progress.tokens / max(progress.seconds, 1e-9),
        "best_step": progress.best_step,
        "held_out": evaluation_at(setup.folder, progress.best_step),
        "unigram_perplexity": math.exp(unigram_loss(setup.data)),
        "parameters": sum(p.numel() for p in planned.model.parameters()),
    }
    write_summary(summary, setup.folder)
    write_pretraining_card(setup.recipe, summary, setup.folder)
    (listener or Listener()).on_finish(summary)
    return summary


def with_output(setup: PretrainSetup, output: OutputLayer) -> PretrainSetup:
    """The same pretraining with its output layer over candidates, or over every piece."""
    recipe = setup.recipe.changed(output=output)
    sampler = None
    if output == "candidates":
        sampler = CandidateSampler(
            setup.data.train.store.counts(setup.data.tokenizer.vocab_size),
            frequent=recipe.frequent,
            drawn=recipe.drawn,
            seed=recipe.seed,
        )
    return replace(setup, recipe=recipe, sampler=sampler)


def trial_loop(setup: PretrainSetup) -> Loop:
    """A loop over a model of the right size, for measuring."""
    random = replace(setup, recipe=setup.recipe.changed(embedding_start="random"))
    return make_loop(setup, make_model(random))


def make_model(setup: PretrainSetup, *, listener: Listener | None = None) -> Model:
    """The first weights; rows of the embedding get gradients unless a full output layer is tied."""
    model = first_model(setup.recipe, setup.data, stages=(listener or Listener()).stage)
    model.base.embedding.sparse = setup.sampler is not None or not model.tied
    return model


def make_loop(
    setup: PretrainSetup, model: Model, *, steps: int = 1, evaluate_every: int = 1
) -> Loop:
    """The loop over a model; with its defaults good for measuring only."""
    recipe = setup.recipe
    settings = LoopSettings(
        steps=steps,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        warmup=recipe.warmup,
        weight_decay=recipe.weight_decay,
        precision=recipe.precision,
        evaluate_every=evaluate_every,
        save_seconds=setup.save_seconds,
    )
    return Loop(
        model,
        settings,
        batches=partial(micro_batches, setup, model, steps),
        evaluate=partial(evaluate_held_out, model, setup.objective, setup.data, rows=recipe.rows),
        checkpoints=setup.checkpoints,
        scales=embedding_scales(model, recipe.embedding_learning_rate / recipe.learning_rate),
    )


def micro_batches(setup: PretrainSetup, model: Model, steps: int, step: int) -> list[MicroBatch]:
    """A step's batch, cut where it would not fit into memory."""
    recipe, device = setup.recipe, next(model.parameters()).device
    fitting = max(1, recipe.micro_batch_tokens // recipe.length)
    source, number = setup.data.source(step, steps)
    batch = setup.objective.batch(source, recipe.rows, (recipe.seed, number)).to(device)
    if setup.sampler is not None:
        batch = replace(batch, candidates=setup.sampler.draw(batch.targets.cpu(), step).to(device))

    def micro_batch(part: Batch) -> MicroBatch:
        loss = partial(setup.objective.loss, model, part)
        return MicroBatch(lambda: loss().total, part.targets.numel(), part.real_tokens)

    return [micro_batch(part) for part in batch.cut(fitting)]
