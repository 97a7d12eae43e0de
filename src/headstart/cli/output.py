"""What every command shares: `--json`, `--debug`, and where output goes.

Results go to standard output. Messages, warnings and progress go to standard error, so that
`--json` leaves exactly one document on standard output.

Strings are printed as they are: a label `[neg]` is no markup. Styles come from `styled`, whose
template may hold markup while its values may not. Control characters of the user's strings are
shown as escapes: none of them reaches the terminal.
"""

import json as json_module
import re
import sys
from collections.abc import Iterable
from string import Formatter
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from headstart.errors import HeadstartError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def visible(text: str) -> str:
    """The text with its control characters as escapes.

    Example
    -------
    >>> print(visible("\\x1b[31mred"))
    \\x1b[31mred
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _SafeConsole(Console):
    """Sends no control characters but Rich's own."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            harmless = segment.control or not _CONTROL.search(segment.text)
            yield segment if harmless else Segment(visible(segment.text), segment.style)


def results() -> Console:
    """The console for results; it takes no markup."""
    return _SafeConsole(highlight=False, markup=False, emoji=False)


def messages() -> Console:
    """The console for messages, warnings and progress; it takes no markup."""
    return _SafeConsole(stderr=True, highlight=False, markup=False, emoji=False)


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
        value = visible(format(values[name], spec or ""))
        shown.append_text(before)
        spans = [Span(0, len(value), span.style) for span in whole.spans]
        shown.append_text(Text(value, spans=spans))
    return shown.append_text(rest)


def print_json(document: dict[str, Any]) -> None:
    """Print `document` as the only thing on standard output; NaN is not JSON and is refused."""
    # Where the encoding is another, JSON's own escapes are read back as what they stand for.
    plain = not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    sys.stdout.write(
        json_module.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False) + "\n"
    )


def error_document(error: HeadstartError) -> dict[str, Any]:
    """An error as `--json` prints it."""
    return {"error": error.document()}


def print_error(error: HeadstartError) -> None:
    """Say what is wrong, where, and how to fix it."""
    console = messages()
    console.print(styled("[bold red]error:[/] {what}", what=error.what), soft_wrap=True)
    for word, value in (("where", error.where), ("fix", error.fix)):
        if value is not None:
            line = styled("  [bold]{word}:[/] {value}", word=word, value=value)
            console.print(line, soft_wrap=True)
