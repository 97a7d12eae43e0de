"""How trainings look: a live line for pretraining, one row per epoch for fine-tuning, on stderr."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.cli.display import Display, progress_bar
from headstart.cli.output import styled
from headstart.model.swap import SwapRow
from headstart.training.listener import Listener, Progress, RunStart
from headstart.training.metrics import epoch_rows
from headstart.training.plan import Plan
from headstart.training.recipe import PretrainRecipe

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
        plan, recipe = start.plan, start.recipe
        assert isinstance(plan, Plan)
        assert isinstance(recipe, PretrainRecipe)
        self._stage.close()
        self.console.print(
            styled("[bold]plan[/]: ")
            + f"{plan.steps:,} steps, {plan.tokens:,} tokens ({plan.epochs:.2f} "
            f"epochs of {plan.corpus_tokens:,}), {plan.parameters:,} parameters, "
            f"about {duration(plan.seconds)} with {processes_in_words(plan)} in {recipe.precision}"
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
    """The number with its noun: 1 thread, 2 threads."""
    return "1 thread" if count == 1 else f"{count} threads"


def processes_in_words(plan: Plan) -> str:
    """What the steps are computed with: 2 threads, or 2 processes of 1 thread each."""
    threads = threads_in_words(plan.threads)
    return threads if plan.processes == 1 else f"{plan.processes} processes of {threads} each"


def duration(seconds: float) -> str:
    """As people say it: 42 s, 3 min 05 s, 1 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


HIDDEN = ("epoch", "step", "best", "train_loss", "validation_loss", "seconds")


class FinetuneDisplay(Display, Listener):
    """Shows where a fine-tuning stands. On standard error."""

    unit, scale = "texts", 1

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._training: Any = None
        self._headed = False
        self._folder = Path()
        self._averaged_from = 0  # this epoch on

    def on_start(self, start: RunStart) -> None:
        from headstart.training.finetune import FinetunePlan  # scikit-learn only where needed

        plan = start.plan
        assert isinstance(plan, FinetunePlan)
        self._folder = start.folder
        # The mean of the first epoch that counts is that epoch.
        self._averaged_from = plan.epochs - plan.averaged + 2 if plan.averaged else plan.epochs + 1
        self._stage.close()
        self.console.print(
            styled("[bold]{task}[/]: ", task=plan.task) + f"{plan.train_rows:,} training rows, "
            f"{plan.validation_rows:,} validation rows; labels: "
            + ", ".join(plan.labels[:8])
            + (", …" if len(plan.labels) > 8 else "")
            + f"; with {threads_in_words(plan.threads)} in {plan.precision}"
            + (f", about {duration(plan.seconds)}" if plan.seconds is not None else "")
        )
        for note in plan.notes:
            self.console.print(styled("[yellow]note:[/] {note}", note=note), soft_wrap=True)
        if plan.swap:
            self.console.print(swap_table(plan.swap))
        else:
            self.console.print("from scratch: no weight was learned before")
        if cut := plan.cut:
            self.console.print(
                styled("[yellow]cut[/]: ")
                + f"{cut['texts']:,} of {plan.train_rows:,} training texts are "
                f"longer than {plan.length} tokens; {cut['tokens'] / cut['of']:.1%} of "
                "all tokens are not read (--length, or --long windows)"
            )

    def on_step(self, progress: Progress) -> None:
        if self._training is None:  # only now: other stages may come before the first step
            self._stage.close()
            bar = progress_bar("training", "steps", done_before=progress.step)
            self._training = self._stage.enter_context(bar)
        self._training(progress.step, progress.steps)

    def on_evaluation(self, progress: Progress) -> None:
        # From the file, which also knows the steps of earlier sessions.
        row = epoch_rows(self._folder, best_step=progress.best_step)[-1]
        self._stage.close()
        self._training = None
        names = [name for name in row if name not in HIDDEN]
        if not self._headed:
            words = ["epoch", "train loss", "valid. loss", *(n.replace("_", " ") for n in names)]
            self.console.print("".join(f"{word:>12}" for word in [*words, "time"]), style="dim")
            self._headed = True
        cells = [str(row["epoch"]), f"{row['train_loss']:.4f}", f"{row['validation_loss']:.4f}"]
        cells += [f"{row[name]:.1%}" for name in names] + [duration(row["seconds"])]
        shown = Text("".join(f"{cell:>12}" for cell in cells))
        shown.append("  best" if row["best"] else "", style="green")
        if row["epoch"] >= self._averaged_from:
            shown.append("  averaged", style="dim")
        self.console.print(shown, soft_wrap=True)


def swap_table(rows: Sequence[SwapRow]) -> Table:
    """What the swap kept, dropped and added, with the number of parameters and the reason."""
    colours = {"kept": "green", "new": "cyan", "dropped": "dim"}
    table = Table("part", "", "parameters", "why", box=None, header_style="dim", pad_edge=False)
    table.columns[2].justify = "right"
    for row in rows:
        fate = Text(row.status, style=colours[row.status])
        table.add_row(row.part, fate, f"{row.parameters:,}", row.why)
    return table
