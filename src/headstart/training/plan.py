"""The plan: how many threads, steps and minutes a training will take, before it takes them.

One thread or all of them, whichever makes its steps faster: where other programs use a core, all
threads wait for the slowest in every product, and one alone is up to five times faster. What was
measured goes into the recipe, because sums that are shared out among other threads round
differently, and a resumed run is to end with the same bits.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import torch

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.machine import choose_threads
from headstart.model.counts import training_memory
from headstart.training.listener import Listener, Progress
from headstart.training.loop import Loop, own_random_state
from headstart.training.recipe import OutputLayer, PretrainRecipe

if TYPE_CHECKING:
    from headstart.training.prepare import Prepared

PLAN = "plan.json"
DEFAULT_MINUTES = 10.0
MEASURING_SHARE = 0.03
SLOWER = 1.25
PATIENCE = 0.5  # of a minute, or of the plan if that is shorter
WORTHWHILE = 1.1  # how much faster a step with candidates must be
FEW_PIECES = 4  # times the usual candidates
TRIED_STEPS = 4


@dataclass(frozen=True)
class Plan:
    """What will be done. Made once and kept in the run, so that a resumed run does the same."""

    steps: int
    evaluate_every: int
    tokens: int
    epochs: float
    corpus_tokens: int
    parameters: int
    memory_bytes: int  # of weights, gradients and optimizer, in each process
    peak_memory_bytes: int  # of the whole process, seen in the steps that were tried
    seconds_per_step: float
    seconds: float
    threads: int = 0  # of each process
    processes: int = 1


def make_plan(recipe: PretrainRecipe, prepared: "Prepared", loop: Loop) -> Plan:
    """Turn minutes, epochs or tokens into steps, from the pace of a few real ones."""
    pace, evaluation_seconds = measure(loop)
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
        steps = int((budget - evaluation) / pace)
    steps = max(1, steps)
    parameters = sum(parameter.numel() for parameter in loop.model.parameters())
    held = training_memory(loop.ranks.placement.held(loop.model))
    return Plan(
        steps=steps,
        evaluate_every=-(-steps // evaluations),
        tokens=steps * step_tokens,
        epochs=steps * step_tokens / corpus_tokens,
        corpus_tokens=corpus_tokens,
        parameters=parameters,
        memory_bytes=held.total,
        peak_memory_bytes=peak_memory() + held.optimizer,
        threads=recipe.threads,
        processes=recipe.processes,
        seconds_per_step=pace,
        seconds=steps * pace + evaluation,
    )


def write_plan(plan: Plan, folder: Path) -> None:
    """Keep the plan in the run, for when it is resumed."""
    write_text(folder / PLAN, json.dumps(vars(plan), indent=2) + "\n")


def read_plan(folder: Path) -> Plan:
    """The plan that a run was started with."""
    path = folder / PLAN
    try:
        return Plan(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise HeadstartError("the run's plan is missing or damaged", where=path) from None


def measure(loop: Loop) -> tuple[float, float]:
    """Seconds of a step and of an evaluation."""
    step = step_seconds(loop)
    start = time.monotonic()
    loop.evaluation()
    return step, loop.ranks.agree(time.monotonic() - start)


def fastest_threads(seconds: Callable[[int], float]) -> int:
    """The number of threads with which the same work takes the fewest seconds."""
    return min(sorted({1, choose_threads()}), key=seconds)


def try_threads(loop: Loop) -> int:
    """Try a few real steps; nothing is learned."""
    if choose_threads() == 1 or loop.device.type != "cpu":
        return choose_threads()

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        return step_seconds(loop)

    return fastest_threads(seconds)


def step_seconds(loop: Loop) -> float:
    """Seconds of a step's gradients, which are thrown away."""

    def gradients(step: int) -> None:
        loop.model.train()
        loop.gradients(step)
        loop.model.zero_grad(set_to_none=True)

    with own_random_state():
        seconds = median_seconds(gradients)
    return loop.ranks.agree(seconds)  # all processes must decide the same


def median_seconds(work: Callable[[int], None]) -> float:
    """The median time of a few repetitions, each given its number; the first one warms up."""
    times = []
    for repetition in range(TRIED_STEPS + 1):
        start = time.monotonic()
        work(repetition)
        if repetition:
            times.append(time.monotonic() - start)
    return statistics.median(times)


def peak_memory() -> int:
    """The most memory that this process has held, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().rss)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Pace(Listener):
    """Warns, once, when a training takes so much longer than planned that the promise breaks."""

    def __init__(self, plan: Plan, warn: Callable[[str], None] = lambda message: None) -> None:
        self._plan, self._warn = plan, warn
        self._said = False
        self._first: tuple[int, float] | None = None

    def on_step(self, progress: Progress) -> None:
        if self.is_off(progress):
            self._warn(self.warning(progress))

    def is_off(self, progress: Progress) -> bool:
        if self._first is None:
            self._first = (progress.step, progress.seconds)
        seen = progress.seconds - self._first[1]
        if self._said or seen < PATIENCE * min(60.0, self._plan.seconds):
            return False
        # Seconds are not worth a warning.
        self._said = self._total(progress) > max(30.0, SLOWER * self._plan.seconds)
        return self._said

    def warning(self, progress: Progress) -> str:
        return (
            f"this goes slower than measured at the start: about {self._total(progress) / 60:.1f} "
            f"minutes in all instead of {self._plan.seconds / 60:.1f}; is another program busy? "
            "Ctrl-C saves and stops"
        )

    def _total(self, progress: Progress) -> float:
        assert self._first is not None
        steps, seconds = progress.step - self._first[0], progress.seconds - self._first[1]
        left = (progress.steps - progress.step) * seconds / max(1, steps)
        return progress.seconds + left


def choose_output(
    recipe: PretrainRecipe, vocab_size: int, seconds: Callable[[OutputLayer], float]
) -> OutputLayer:
    """What a step's output layer should score, by the time that a step takes with each.

    A vocabulary of which a large part would be candidates is scored in full, unmeasured: there is
    little to save, and the same command shall give the same numbers.
    """
    if vocab_size <= FEW_PIECES * (recipe.frequent + recipe.drawn):
        return "full"
    # Candidates make the gradient noisier: a small gain in time is not worth it.
    return "candidates" if seconds("full") > WORTHWHILE * seconds("candidates") else "full"
