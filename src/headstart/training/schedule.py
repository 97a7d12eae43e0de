"""The learning rate of a step: up from zero, then down to zero at the very last one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """A straight warm-up and a straight decay, which together fit any number of steps."""

    learning_rate: float
    steps: int
    warmup: float = 0.05  # share of the steps

    def at(self, step: int) -> float:
        """The learning rate of step `step`, which counts from 0."""
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * (self.steps - step) / max(1, self.steps - warm)
