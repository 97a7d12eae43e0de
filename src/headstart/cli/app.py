"""`headstart`: the table of commands.

The modules of the commands import nothing heavy; a command imports what it needs when it runs.
"""

import sys
from typing import Annotated

import typer

from headstart.cli import inspect, predict, serve, study, training
from headstart.cli.console import USER, run_guarded

COMMANDS = {
    "inspect": inspect.inspect,
    "pretrain": training.pretrain,
    "finetune": training.finetune,
    "evaluate": predict.evaluate,
    "predict": predict.predict,
    "serve": serve.serve,
    "generate": predict.generate,
    "fill": predict.fill,
    "perplexity": predict.perplexity,
    "export": serve.export,
    "params": inspect.params,
    "doctor": inspect.doctor,
    "compare": study.compare,
    "labels": study.labels,
    "report": study.report,
    "app": serve.app,
}
app = typer.Typer(
    name="headstart",
    help="Pretrain a small Transformer on your own text, swap its head, and measure, with "
    "confidence intervals, whether that helped.",
    epilog="Run headstart COMMAND --help for its options. Every command takes --json.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name, _function in COMMANDS.items():
    app.command(_name)(_function)  # type: ignore[type-var]


def _print_version(wanted: bool) -> None:
    if wanted:
        from headstart.files import installed_version

        typer.echo(f"headstart {installed_version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USER)


def main() -> None:
    """Run the command line; every error ends as one message and an exit code."""
    sys.exit(run_guarded(lambda: app(prog_name="headstart", standalone_mode=False)))
