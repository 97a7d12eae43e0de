"""What every command shares: `--json`, `--debug`, and where output goes.

Results go to standard output. Messages, warnings and progress go to standard error, so that
`--json` leaves exactly one document on standard output.

Strings are printed as they are: a label `[neg]` is no markup. Styles come from `styled`, whose
template may hold markup while its values may not.
"""

import json as json_module
import sys
from string import Formatter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Span, Text

from headstart.errors import HeadstartError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]


def results() -> Console:
    """The console for results; it takes no markup."""
    return Console(highlight=False, markup=False, emoji=False)


def messages() -> Console:
    """The console for messages, warnings and progress; it takes no markup."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def styled(template: str, **values: Any) -> Text:
    """Fill a template that has Rich markup with values that are taken literally.

    Parameters
    ----------
    template : text with markup and with fields as in `str.format`: `"[bold]{run}[/]: {rows:,}"`.
    values : what is put into the fields; square brackets in them have no meaning.

    Example
    -------
    >>> styled("label [bold]{label}[/], {share:.0%}", label="[/]", share=0.5).plain
    'label [/], 50%'
    """
    shown = Text()
    rest = Text.from_markup(template, emoji=False)
    for _, name, spec, _ in Formatter().parse(rest.plain):
        if name is None:
            continue
        field = "{" + name + (f":{spec}" if spec else "") + "}"
        place = rest.plain.index(field)
        before, whole, rest = rest.divide([place, place + len(field)])
        value = format(values[name], spec or "")
        shown.append_text(before)
        spans = [Span(0, len(value), span.style) for span in whole.spans]
        shown.append_text(Text(value, spans=spans))
    return shown.append_text(rest)


def print_json(document: dict[str, Any]) -> None:
    """Print `document` as the only thing on standard output; NaN is not JSON and is refused."""
    sys.stdout.write(json_module.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    sys.stdout.write("\n")


def print_error(error: HeadstartError) -> None:
    """Say what is wrong, where, and how to fix it."""
    console = messages()
    console.print(styled("[bold red]error:[/] {what}", what=error.what), soft_wrap=True)
    for word, value in (("where", error.where), ("fix", error.fix)):
        if value is not None:
            line = styled("  [bold]{word}:[/] {value}", word=word, value=value)
            console.print(line, soft_wrap=True)
