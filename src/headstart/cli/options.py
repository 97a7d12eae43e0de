"""Options that several commands share, worded once, and what was given of them."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

Word = Annotated[str | None, typer.Option(show_default=False)]
Whole = Annotated[int | None, typer.Option(show_default=False)]
Number = Annotated[float | None, typer.Option(show_default=False)]
Size = Annotated[int | None, typer.Option(help="Instead of the preset's.", show_default=False)]
RunFolder = Annotated[Path, typer.Option(help="The run's folder.")]
TokenizerKind = Annotated[str | None, typer.Option(help="bpe or unigram.")]
Precision = Annotated[str | None, typer.Option(help="fp32 or bf16.")]
DropOverlap = Annotated[
    bool | None, typer.Option("--drop-overlap", help="Take out what other parts hold too.")
]
SaveSeconds = Annotated[float, typer.Option(help="Time between two checkpoints.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")]
Track = Annotated[
    list[str] | None,
    typer.Option(help="Also send the numbers to tensorboard or another installed tracker."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")]


def given_settings(values: dict[str, Any], *, but: Collection[str]) -> dict[str, Any]:
    """A command's parameters as settings of its recipe: those that were given."""
    given = {
        name: value
        for name, value in values.items()
        if value is not None and value != [] and name not in but
    }
    if "feed_forward" in given:  # short on the command line; a recipe has a kind of it, too
        given["feed_forward_width"] = given.pop("feed_forward")
    return given
