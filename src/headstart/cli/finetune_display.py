"""How a fine-tuning looks: the swap, what was cut, and a table with one row per epoch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.cli.display import Display
from headstart.cli.output import styled
from headstart.cli.progress import progress as progress_bar
from headstart.cli.training_display import duration, threads_in_words
from headstart.training.finetune import FinetunePlan
from headstart.training.listener import Listener, Progress, RunStart
from headstart.training.metrics import epoch_rows
from headstart.transfer.swap import SwapRow

HIDDEN = ("epoch", "step", "best", "train_loss", "validation_loss", "seconds")


class FinetuneDisplay(Display, Listener):
    """Shows where a fine-tuning stands. On standard error."""

    unit, scale = "texts", 1

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._training: Any = None
        self._headed = False
        self._folder = Path()

    def on_start(self, start: RunStart) -> None:
        plan = start.plan
        assert isinstance(plan, FinetunePlan)
        self._folder = start.folder
        self._stage.close()
        self.console.print(
            styled("[bold]{task}[/]: ", task=plan.task) + f"{plan.train_rows:,} training rows, "
            f"{plan.validation_rows:,} validation rows; labels: "
            + ", ".join(plan.labels[:8])
            + (", …" if len(plan.labels) > 8 else "")
            + f"; with {threads_in_words(plan.threads)}"
        )
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
            self._training = self._stage.enter_context(progress_bar("training", "steps"))
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
        self.console.print(shown, soft_wrap=True)


def swap_table(rows: Sequence[SwapRow]) -> Table:
    colours = {"kept": "green", "new": "cyan", "dropped": "dim"}
    table = Table("part", "", "parameters", "why", box=None, header_style="dim", pad_edge=False)
    table.columns[2].justify = "right"
    for row in rows:
        fate = Text(row.fate, style=colours[row.fate])
        table.add_row(row.part, fate, f"{row.parameters:,}", row.why)
    return table
