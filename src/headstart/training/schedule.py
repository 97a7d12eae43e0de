"""The learning rate of a step: up from zero, then down to zero at the very last one."""

from dataclasses import dataclass
from typing import Literal

Shape = Literal["linear", "constant"]


@dataclass(frozen=True)
class Schedule:
    """A straight warm-up and a straight decay, which together fit any number of steps.

    `constant` is the lab's: the same rate from the first step to the last.
    """

    learning_rate: float
    steps: int
    warmup: float = 0.05  # share of the steps
    shape: Shape = "linear"

    def at(self, step: int) -> float:
        """The learning rate of step `step`, which counts from 0."""
        if self.shape == "constant":
            return self.learning_rate
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (self.steps - step) / max(1, self.steps - warm)
