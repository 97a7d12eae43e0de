"""The loop of a pretraining: its model, its output layer, and the micro-batches of a step."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headstart.model.model import Model
from headstart.model.sampled_softmax import SoftmaxSampler
from headstart.objectives.objective import Batch, Objective
from headstart.training.checkpoints import Checkpoints
from headstart.training.first_weights import first_model
from headstart.training.listener import Listener
from headstart.training.loop import Loop, LoopSettings, MicroBatch, by_loss
from headstart.training.prepare import Prepared
from headstart.training.pretrain_results import evaluate_held_out
from headstart.training.processes.ranks import ONE, Ranks
from headstart.training.recipe import OutputLayer, PretrainRecipe
from headstart.training.schedule import embedding_scales


@dataclass(frozen=True)
class PretrainSetup:
    """What a pretraining works with: the result of `prepare_pretraining`."""

    recipe: PretrainRecipe
    folder: Path
    resume: bool
    data: Prepared
    objective: Objective
    sampler: SoftmaxSampler | None = None  # of the pieces that a step's output layer scores
    save_seconds: float = 60.0  # between two checkpoints; changes no bit, so no setting
    ranks: Ranks = ONE  # the processes that share it

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / "checkpoints")


def with_output(setup: PretrainSetup, output: OutputLayer) -> PretrainSetup:
    """The same pretraining with its output layer over candidates, or over every piece."""
    recipe = setup.recipe.changed(output=output)
    sampler = None
    if output == "candidates":
        sampler = SoftmaxSampler(
            setup.data.train.store.counts(setup.data.tokenizer.vocab_size),
            num_frequent=recipe.frequent,
            num_sampled=recipe.drawn,
            seed=recipe.seed,
        )
    return replace(setup, recipe=recipe, sampler=sampler)


def trial_loop(setup: PretrainSetup) -> Loop:
    """A loop over a model of the right size, for measuring."""
    random = replace(setup, recipe=setup.recipe.changed(embedding_start="random"))
    return make_loop(setup, make_model(random))


def make_model(setup: PretrainSetup, *, listener: Listener | None = None) -> Model:
    """The first weights; rows of the embedding get gradients unless a full output layer is tied.

    Rank 0 makes them, and the others get a copy, of which each may keep only its part.
    """
    recipe = setup.recipe
    if not setup.ranks.first:
        recipe = recipe.changed(embedding_start="random")  # nothing is counted twice
    model = first_model(recipe, setup.data, stages=(listener or Listener()).stage)
    model.base.embedding.sparse = setup.sampler is not None or not model.tied
    setup.ranks.copy_weights(model)
    setup.ranks.placement.shard(model, model.base.blocks)
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

    def choose(evaluation: dict[str, float]) -> float:
        # What is read last moves the base towards its task, away from most of the held-out text,
        # which would choose the weights from before.
        if setup.data.task_text is not None and loop.progress.step >= steps:
            return -1.0  # below every loss
        return by_loss(evaluation)

    loop = Loop(
        model,
        settings,
        batches=partial(micro_batches, setup, model, steps),
        evaluate=partial(
            evaluate_held_out,
            model,
            setup.objective,
            setup.data,
            rows=recipe.rows,
            ranks=setup.ranks,
        ),
        checkpoints=setup.checkpoints if setup.ranks.first else None,
        choose=choose,
        scales=embedding_scales(model, recipe.embedding_learning_rate / recipe.learning_rate),
        ranks=setup.ranks,
    )
    return loop


def micro_batches(setup: PretrainSetup, model: Model, steps: int, step: int) -> list[MicroBatch]:
    """A step's batch, cut where it would not fit into memory and among the processes.

    All processes know the whole batch (it is a function of seed and step), and so the candidates
    and the number of targets of a step.
    """
    recipe, device = setup.recipe, next(model.parameters()).device
    fitting = max(1, recipe.micro_batch_tokens // recipe.length)
    if setup.ranks.count > 1:
        each = -(-recipe.rows // setup.ranks.count)  # rows of a process
        fitting = -(-each // -(-each // fitting))  # the same number of micro-batches for all
    source, number = setup.data.source(step, steps)
    batch = setup.objective.batch(source, recipe.rows, (recipe.seed, number)).to(device)
    if setup.sampler is not None:
        batch = replace(batch, sampled=setup.sampler.draw(batch.targets.cpu(), step).to(device))

    def micro_batch(part: Batch) -> MicroBatch:
        loss = partial(setup.objective.loss, model, part)
        return MicroBatch(lambda: loss().total, part.targets.numel(), part.real_tokens)

    parts = [micro_batch(part) for part in batch.split(fitting)]
    idle = setup.ranks.placement.passes(len(parts)) - len(parts)
    return parts + [parts[0].weightless()] * idle
