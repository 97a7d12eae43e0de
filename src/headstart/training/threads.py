"""How many threads a training takes: one or all of them, whichever makes its steps faster.

Where other programs use a core, all threads wait for the slowest in every product, and one alone
is faster: up to five times. What was measured goes into the recipe, because sums that are shared
out among other threads round differently, and a resumed run is to end with the same bits.
"""

import statistics
import time
from collections.abc import Callable

import torch

from headstart.machine.facts import choose_threads
from headstart.training.loop import Loop

TRIED_STEPS = 4


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

    return median_seconds(gradients)


def median_seconds(work: Callable[[int], None]) -> float:
    """The median time of a few repetitions, each given its number; the first one warms up."""
    times = []
    for repetition in range(TRIED_STEPS + 1):
        start = time.monotonic()
        work(repetition)
        if repetition:
            times.append(time.monotonic() - start)
    return statistics.median(times)
