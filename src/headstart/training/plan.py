"""The plan: how many steps, tokens and minutes a training will take, before it takes them."""

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headstart.model.costs import training_memory
from headstart.training.loop import Loop
from headstart.training.recipe import PretrainRecipe

if TYPE_CHECKING:
    from headstart.training.prepare import Prepared

TRIED_STEPS = 4
DEFAULT_MINUTES = 10.0
MEASURING_SHARE = 0.1


@dataclass(frozen=True)
class Plan:
    """What will be done. Made once and kept in the run, so that a resumed run does the same."""

    steps: int
    evaluate_every: int
    tokens: int
    epochs: float
    corpus_tokens: int
    parameters: int
    memory_bytes: int
    seconds_per_step: float
    seconds: float


def make_plan(recipe: PretrainRecipe, prepared: "Prepared", loop: Loop) -> Plan:
    """Turn minutes, epochs or tokens into steps, from the pace of a few real ones."""
    step_seconds, evaluation_seconds = measure(loop)
    budget = 60 * (recipe.minutes or DEFAULT_MINUTES)
    evaluations = recipe.evaluations
    if not any((recipe.steps, recipe.tokens, recipe.epochs)):
        # Measuring must not eat the minutes that were given for learning.
        evaluations = min(evaluations, int(MEASURING_SHARE * budget / evaluation_seconds))
    evaluations = max(1, evaluations)
    evaluation = evaluation_seconds * evaluations
    step_tokens = recipe.rows * recipe.length
    corpus_tokens = prepared.train.packed().tokens
    if recipe.steps:
        steps = recipe.steps
    elif recipe.tokens:
        steps = -(-recipe.tokens // step_tokens)
    elif recipe.epochs:
        steps = round(recipe.epochs * corpus_tokens / step_tokens)
    else:
        steps = int((budget - evaluation) / step_seconds)
    steps = max(1, steps)
    parameters = sum(parameter.numel() for parameter in loop.model.parameters())
    return Plan(
        steps=steps,
        evaluate_every=-(-steps // evaluations),
        tokens=steps * step_tokens,
        epochs=steps * step_tokens / corpus_tokens,
        corpus_tokens=corpus_tokens,
        parameters=parameters,
        memory_bytes=training_memory(parameters).total,
        seconds_per_step=step_seconds,
        seconds=steps * step_seconds + evaluation,
    )


def measure(loop: Loop) -> tuple[float, float]:
    """Seconds of a step and of an evaluation. Gradients are thrown away; nothing is learned."""
    times = []
    for step in range(TRIED_STEPS + 1):
        start = time.monotonic()
        loop.model.train()
        loop.gradients(step)
        loop.model.zero_grad(set_to_none=True)
        if step:  # the first one also warms up
            times.append(time.monotonic() - start)
    start = time.monotonic()
    loop.evaluation()
    return statistics.median(times), time.monotonic() - start
