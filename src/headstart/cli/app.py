"""`headstart`: gathers the commands and turns errors into one clear message."""

import sys
import traceback
from typing import Annotated

import typer

from headstart.cli import (
    compare,
    doctor,
    evaluate,
    fill,
    finetune,
    generate,
    inspect,
    params,
    perplexity,
    predict,
    pretrain,
    report,
    tokenize,
    tokenizer,
)
from headstart.cli.output import print_error
from headstart.errors import HeadstartError

app = typer.Typer(
    name="headstart",
    help="Pretrain a small Transformer on your own text, swap its head, and know, "
    "with error bars, what that bought you.",
    epilog="headstart COMMAND --help tells more. Every command takes --json.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headstart {version('headstart')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None: ...


app.command("inspect")(inspect.inspect)
app.command("tokenizer")(tokenizer.tokenizer)
app.command("tokenize")(tokenize.tokenize)
app.command("pretrain")(pretrain.pretrain)
app.command("finetune")(finetune.finetune)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("generate")(generate.generate)
app.command("fill")(fill.fill)
app.command("perplexity")(perplexity.perplexity)
app.command("params")(params.params)
app.command("doctor")(doctor.doctor)
app.command("compare")(compare.compare)
app.command("report")(report.report)


def main() -> None:
    """Run the command line; a `HeadstartError` ends with exit code 2 and no traceback."""
    try:
        app()
    except HeadstartError as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        print_error(error)
        sys.exit(2)
    except BrokenPipeError:
        # The reader went away (`headstart … | head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
