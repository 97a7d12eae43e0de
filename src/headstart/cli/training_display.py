"""How a pretraining looks: a live line on a terminal, plain lines elsewhere, on stderr."""

import time

import psutil
from rich.console import Console
from rich.text import Text

from headstart.cli.display import Display
from headstart.cli.output import styled
from headstart.training.listener import Listener, Progress, RunStart
from headstart.training.plan import Plan

BLOCKS = "▁▂▃▄▅▆▇█"
SECONDS_BETWEEN_LINES = 10.0


class TrainingDisplay(Display, Listener):
    """Shows stages, the plan, and where the training stands."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self.losses: list[float] = []
        self._last_line = time.monotonic()
        self._began: tuple[float, int] | None = None

    def on_start(self, start: RunStart) -> None:
        plan = start.plan
        assert isinstance(plan, Plan)
        self._stage.close()
        self.console.print(
            styled("[bold]plan[/]: ")
            + f"{plan.steps:,} steps, {plan.tokens:,} tokens ({plan.epochs:.2f} "
            f"epochs of {plan.corpus_tokens:,}), {plan.parameters:,} parameters, "
            f"about {duration(plan.seconds)} with {threads_in_words(plan.threads)}"
        )
        if self.console.is_terminal:
            self._begin_live(transient=True)

    def on_warning(self, message: str) -> None:
        self._stage.close()
        self.console.print(styled("[yellow]note:[/] {text}", text=message))

    def on_step(self, progress: Progress) -> None:
        self.losses.append(progress.loss)
        if self._began is None:
            self._began = (time.monotonic(), progress.step)
        if self._live is not None:
            self._live.update(self._status(progress))
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self.console.print(self._status(progress), soft_wrap=True)

    def on_evaluation(self, progress: Progress) -> None:
        found = progress.evaluation
        words = [f"step {progress.step:,}", f"held-out loss {found['loss']:.3f}"]
        words.append(f"perplexity {found['perplexity']:,.1f}")
        if "bits_per_byte" in found:
            words.append(f"{found['bits_per_byte']:.3f} bits/byte")
        if "next_sentence_accuracy" in found:
            words.append(f"next sentence {found['next_sentence_accuracy']:.1%}")
        words.append(duration(progress.seconds))
        if progress.best_step == progress.step:
            words.append("best")
        shown = Text("  ".join(words))
        shown.highlight_words(["best"], "green")
        self.console.print(shown, soft_wrap=True)

    def _status(self, progress: Progress) -> Text:
        share = progress.step / progress.steps
        filled = round(24 * share)
        return Text.assemble(
            ("█" * filled, "cyan"),
            ("░" * (24 - filled), "dim"),
            f" {progress.step:,}/{progress.steps:,}",
            f"  {self._left(progress)}",
            f"  {progress.tokens / max(progress.seconds, 1e-9):,.0f} tokens/s",
            f"  loss {progress.loss:.3f} ",
            (sparkline(self.losses), "cyan"),
            f"  {psutil.Process().memory_info().rss / 1e9:.1f} GB",
        )

    def _left(self, progress: Progress) -> str:
        assert self._began is not None
        since, first = self._began
        if progress.step == first:
            return "…"  # one step has no pace yet
        pace = (time.monotonic() - since) / (progress.step - first)
        return f"{duration(pace * (progress.steps - progress.step))} left"


def sparkline(values: list[float], *, width: int = 20) -> str:
    """A small curve: the means of `width` stretches, from low to high."""
    if len(values) < 2:
        return ""
    size = max(1, len(values) // width)
    means = [sum(values[i : i + size]) / size for i in range(0, len(values) - size + 1, size)]
    means = means[-width:]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(BLOCKS[round((mean - low) / span * (len(BLOCKS) - 1))] for mean in means)


def threads_in_words(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def duration(seconds: float) -> str:
    """As people say it: 42 s, 3 min 05 s, 1 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
