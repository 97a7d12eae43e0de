"""What every command shares: `--json`, `--debug`, and where words go.

Results go to standard output. Messages, warnings and progress go to standard error, so that
`--json` leaves exactly one document on standard output.
"""

import json as json_module
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from headstart.errors import HeadstartError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]


def results() -> Console:
    """The console for what the user asked for."""
    return Console(highlight=False)


def messages() -> Console:
    """The console for everything said on the way."""
    return Console(stderr=True, highlight=False)


def print_json(document: dict[str, Any]) -> None:
    """Print `document` as the only thing on standard output; NaN is not JSON and is refused."""
    sys.stdout.write(json_module.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    sys.stdout.write("\n")


def print_error(error: HeadstartError) -> None:
    """Say what is wrong, where, and what to do about it."""
    console = messages()
    console.print("[bold red]error:[/] ", end="")
    console.print(error.what, markup=False, soft_wrap=True)
    for word, value in (("where", error.where), ("fix", error.fix)):
        if value is not None:
            console.print(f"  [bold]{word}:[/] ", end="")
            console.print(value, markup=False, soft_wrap=True)
