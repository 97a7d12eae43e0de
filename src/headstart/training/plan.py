"""The plan: how many steps, tokens and minutes a training will take, before it takes them."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from headstart.model.accounts import training_memory
from headstart.training.loop import Loop, Progress
from headstart.training.recipe import PretrainRecipe
from headstart.training.threads import step_seconds

if TYPE_CHECKING:
    from headstart.training.prepare import Prepared

DEFAULT_MINUTES = 10.0
MEASURING_SHARE = 0.1
SLOWER = 1.25
PATIENCE = 0.5  # of a minute, or of the plan if that is shorter


@dataclass(frozen=True)
class Plan:
    """What will be done. Made once and kept in the run, so that a resumed run does the same."""

    steps: int
    evaluate_every: int
    tokens: int
    epochs: float
    corpus_tokens: int
    parameters: int
    memory_bytes: int  # of weights, gradients and optimizer
    peak_memory_bytes: int  # of the whole process, seen in the steps that were tried
    seconds_per_step: float
    seconds: float
    threads: int = 0


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
    return Plan(
        steps=steps,
        evaluate_every=-(-steps // evaluations),
        tokens=steps * step_tokens,
        epochs=steps * step_tokens / corpus_tokens,
        corpus_tokens=corpus_tokens,
        parameters=parameters,
        memory_bytes=training_memory(parameters).total,
        peak_memory_bytes=peak_memory() + training_memory(parameters).optimizer,
        threads=recipe.threads,
        seconds_per_step=pace,
        seconds=steps * pace + evaluation,
    )


def measure(loop: Loop) -> tuple[float, float]:
    """Seconds of a step and of an evaluation."""
    step = step_seconds(loop)
    start = time.monotonic()
    loop.evaluation()
    return step, time.monotonic() - start


def peak_memory() -> int:
    """The most memory that this process has held, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().rss)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Pace:
    """Notices, once, when a training takes so much longer than planned that the promise breaks."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._said = False
        self._first: tuple[int, float] | None = None

    def is_off(self, progress: Progress) -> bool:
        if self._first is None:
            self._first = (progress.step, progress.seconds)
        seen = progress.seconds - self._first[1]
        if self._said or seen < PATIENCE * min(60.0, self._plan.seconds):
            return False
        # Of seconds nobody wants to hear.
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
