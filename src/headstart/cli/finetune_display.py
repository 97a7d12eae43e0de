"""How a fine-tuning looks: the swap, what was cut, and a table that grows by a row an epoch."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.cli.display import Display
from headstart.cli.output import styled
from headstart.cli.progress import progress as progress_bar
from headstart.cli.training_display import duration, threads_in_words
from headstart.training.finetune import FinetuneListener, Finetuning
from headstart.training.loop import Progress
from headstart.transfer.swap import SwapRow

HIDDEN = ("epoch", "step", "best", "train_loss", "validation_loss", "seconds")


class FinetuneDisplay(Display):
    """Shows where a fine-tuning stands. On standard error."""

    unit, scale = "texts", 1

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._training: Any = None
        self._headed = False

    def listener(self) -> FinetuneListener:
        return FinetuneListener(self.stages, self.on_start, self.on_step, self.on_epoch)

    def on_start(self, training: Finetuning) -> None:
        self._stage.close()
        splits = training.splits
        self.console.print(
            styled("[bold]{task}[/]: ", task=training.task.name)
            + f"{len(splits.train):,} rows to learn from, "
            f"{len(splits.validation):,} to choose by; labels: "
            + ", ".join(training.task.labels[:8])
            + (", …" if len(training.task.labels) > 8 else "")
            + f"; with {threads_in_words(training.recipe.threads)}"
        )
        if training.start.swap:
            self.console.print(swap_table(training.start.swap))
        else:
            self.console.print("from scratch: no weight was learned before")
        if cut := training.cut:
            self.console.print(
                styled("[yellow]cut[/]: ")
                + f"{cut['texts']:,} of {len(splits.train):,} training texts are "
                f"longer than {training.reading.length} tokens; {cut['tokens'] / cut['of']:.1%} of "
                "all tokens are not read (--length, or --long windows)"
            )

    def on_step(self, progress: Progress) -> None:
        if self._training is None:  # only now: other stages may come before the first step
            self._stage.close()
            self._training = self._stage.enter_context(progress_bar("training", "steps"))
        self._training(progress.step, progress.steps)

    def on_epoch(self, row: dict[str, Any]) -> None:
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
