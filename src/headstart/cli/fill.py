"""`headstart fill`: fill the gaps of a text with a masked base."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headstart.cli.output import Debug, Json, print_json, results, styled


def fill(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run pretrained with a masked objective.")
    ],
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a token is missing.")],
    candidates: Annotated[
        int, typer.Option(min=1, help="How many candidates to show for each gap.")
    ] = 5,
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
        shown = Text(f"gap {gap.gap + 1}: ")
        for number, (piece, share) in enumerate(gap.candidates):
            shown.append("  " if number else "")
            shown.append_text(
                styled("[bold]{piece}[/] {share:.1%}", piece=piece.strip(), share=share)
            )
        console.print(shown)
