"""`headstart fill`: let a masked base fill the gaps."""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import Debug, Json, print_json, results


def fill(
    run: Annotated[Path, typer.Argument(help="The folder of a masked run.")],
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a piece is missing.")],
    candidates: Annotated[int, typer.Option(min=1, help="How many to show for each gap.")] = 5,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fill each [MASK] of a text, with a base pretrained by a masked objective."""
    from headstart.inference.fill import fill as fill_gaps
    from headstart.run_folder import open_language_model

    opened = open_language_model(run, causal=False, to="fill a gap")
    filled = fill_gaps(opened, text, candidates=candidates)
    if json:
        gaps = [
            [{"piece": piece, "probability": share} for piece, share in gap.candidates]
            for gap in filled
        ]
        print_json({"text": text, "gaps": gaps})
        return
    console = results()
    for gap in filled:
        shown = "  ".join(
            f"[bold]{piece.strip()}[/] {share:.1%}" for piece, share in gap.candidates
        )
        console.print(f"gap {gap.gap + 1}: {shown}")
