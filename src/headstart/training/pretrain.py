"""Pretraining: a corpus becomes a base, in a run folder that holds all there is to know of it."""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headstart.errors import HeadstartError
from headstart.lock import locked
from headstart.model.checkpoint import save_model
from headstart.model.model import Model
from headstart.run import write_summary
from headstart.text.reading.corpus import Corpus
from headstart.training.listener import (
    Listener,
    Listeners,
    Progress,
    RunStart,
    SaveBest,
    reporting,
)
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
from headstart.training.pretrain_loop import (
    PretrainSetup,
    make_loop,
    make_model,
    trial_loop,
    with_output,
)
from headstart.training.pretrain_prepare import follow_preparation, prepare_pretraining
from headstart.training.pretrain_results import unigram_loss, write_pretraining_card
from headstart.training.processes.launch import (
    STUCK_SECONDS,
    follow_first,
    is_follower,
    joined,
    process_count,
)
from headstart.training.processes.ranks import Ranks
from headstart.training.recipe import PretrainRecipe, read_recipe
from headstart.training.recipe_file import write_identity, write_recipe


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
    stuck_seconds: float = STUCK_SECONDS,
) -> dict[str, Any]:
    """Train a base on a corpus, with as many processes as the recipe or torchrun says.

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
    stuck_seconds : float
        Of several processes: how long they wait for one that does not answer.

    Returns
    -------
    The run's summary, which is also in `summary.json`. It is empty in the processes that torchrun
    has started beside the first, which write nothing.
    """
    if is_follower():
        follow_first(partial(follow, corpus=corpus), stuck_seconds=stuck_seconds)
        return {}
    listener = listener or Listener()
    more: Any = {"resume": resume, "corpus": corpus, "save_seconds": save_seconds}
    with locked(folder), sharing(recipe, corpus, stuck_seconds=stuck_seconds) as ranks:
        setup = prepare_pretraining(recipe, folder, listener=listener, ranks=ranks, **more)
        planned = plan_pretraining(setup, listener=listener)
        progress = train_base(planned, listener=listener)
        return finish_pretraining(planned, progress, listener=listener)


def sharing(
    recipe: PretrainRecipe, corpus: Corpus | None = None, *, stuck_seconds: float = STUCK_SECONDS
) -> AbstractContextManager[Ranks]:
    """The processes that share a pretraining; this one is the first of them."""
    count = process_count(recipe.processes)
    if recipe.shard and count == 1:
        raise HeadstartError(
            "the blocks are to be shared out among processes, and there is only one",
            fix="add --processes 2 or more, or leave --shard out",
        )
    return joined(count, follow, (corpus,), stuck_seconds=stuck_seconds)


def follow(ranks: Ranks, corpus: Corpus | None = None) -> None:
    """Take part in the pretraining of another process, which prints and writes."""
    setup = follow_preparation(ranks, corpus)
    train_base(plan_pretraining(setup))


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
        plan = setup.ranks.from_first(lambda: vars(read_plan(setup.folder)))
    else:
        plan = setup.ranks.agree(vars(make_plan(setup.recipe, setup.data, make_loop(setup, model))))
    return PlannedPretraining(setup, model, Plan(**plan))


def train_base(planned: PlannedPretraining, *, listener: Listener | None = None) -> Progress:
    """Take the planned steps; the best weights and the metrics are in the run folder then."""
    listener = listener or Listener()
    setup, model, plan = planned.setup, planned.model, planned.plan
    folder, ranks = setup.folder, setup.ranks
    loop = make_loop(setup, model, steps=plan.steps, evaluate_every=plan.evaluate_every)
    step = ranks.from_first(lambda: _begin(planned))
    if not ranks.first:
        giving = SaveBest(lambda: ranks.placement.weights(model))
        return loop.run(resume=bool(step), listener=giving)
    everyone = Listeners(
        [
            MetricsFile(folder),
            SaveBest(lambda: save_model(model, folder, ranks.placement.weights(model))),
            Pace(plan, listener.on_warning),
            listener,
        ]
    )
    with reporting(everyone, RunStart("pretraining", folder, setup.recipe, plan, step)):
        return loop.run(resume=bool(step), listener=everyone)


def _begin(planned: PlannedPretraining) -> int:
    """Make the folder a run; the steps that its newest checkpoint has done."""
    setup, folder = planned.setup, planned.setup.folder
    if setup.resume:
        if setup.recipe != read_recipe(folder):  # it goes on with another number of processes
            write_recipe(setup.recipe, folder)
        found = setup.checkpoints.list()
        return found[-1].step if found else 0
    folder.mkdir(parents=True, exist_ok=True)
    setup.data.tokenizer.save(folder)
    write_plan(planned.plan, folder)
    write_identity(setup.data.identity, folder)
    write_recipe(setup.recipe, folder)  # last: with it, this is a run
    return 0


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
