"""`headstart report`: a study's page, pictures and tables, written again."""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import Debug, Json, messages, print_json, results


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `headstart compare … --out DIR` wrote.")
    ],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write report.html, figures/ and tables/ of a study again.

    The page is one file that opens offline; every picture is also an SVG and a PNG, every table
    a CSV file.
    """
    from headstart.studies.report.build import write_report  # SciPy only where it is needed

    with messages().status("computing intervals …"):
        written = write_report(folder)
    if json:
        print_json(
            {
                "report": str(written.path),
                "figures": [str(path) for path in written.figures],
                "tables": [str(path) for path in written.tables],
                "verdict": written.sentences,
                "advice": written.advice,
            }
        )
    else:
        console = results()
        console.print(" ".join(written.sentences), markup=False)
        for line in written.advice:
            console.print(line, markup=False, soft_wrap=True)
        console.print(str(written.path), markup=False, soft_wrap=True)
    if written.missing:
        messages().print(written.missing, markup=False)
