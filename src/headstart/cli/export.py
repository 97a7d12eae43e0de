"""`headstart export`: a run in the form of another tool, compared with the run."""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.console import print_json, write
from headstart.cli.options import Debug, Json, option


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    to: Annotated[str, option(help="huggingface or onnx.")],
    out: Annotated[Path, option(help="A new folder.")],
    int8: Annotated[bool, option("--int8", help="Store the weights in 8 bits.")] = False,
    test: Annotated[
        str | None,
        option(
            help="Labelled texts to measure the export on; by default the test part of the "
            "run's dataset.",
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Export a run for another tool; check that outputs and test metric stay the same.

    headstart export runs/classifier --to huggingface --out exported
    """
    from headstart.interop.exporters import ExportOptions, export_run

    found = export_run(run, to, out, ExportOptions(int8=int8, test=test))
    if json:
        print_json(found)
        return
    write("[bold]{out}[/]: {model}", out=out, model=found["model"])
    for one in found["comparisons"]:
        write("  {inputs}: differs by {difference:.2g} at most", **one)
    for text in found["notes"]:
        write("  note: {text}", text=text)
