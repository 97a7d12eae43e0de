"""`headstart`: the table of commands, and errors turned into one clear message.

A command's module is imported only when the command is called, so that `headstart --help` does
not wait for the imports of all of them.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from headstart.cli.boundary import run_guarded

# Name: its line on the help page, which is the first paragraph of the function's docstring. The
# function has the name of the command and stands in the module of that name, or of `MODULES`.
COMMANDS = {
    "inspect": "Look at data before training: sizes, labels, lengths, duplicates, overlap, "
    "odd characters.",
    "tokenizer": "Train a tokenizer on a CORPUS, in any language; every text can be decoded "
    "unchanged.",
    "tokenize": "Show the tokens and ids of TEXTS.",
    "pretrain": "Pretrain a base on your own text.",
    "finetune": "Swap a base's head and fine-tune it on your labels.",
    "evaluate": "Evaluate a run: accuracy with its interval, F1, calibration, confusion, the worst "
    "mistakes.",
    "predict": "Predict labels with their probabilities, tags of words, or answers in a text.",
    "serve": "Serve a run over HTTP: Hugging Face's form, the v2 inference protocol, metrics.",
    "generate": "Continue a prompt, with a base pretrained by the causal objective.",
    "fill": "Fill each [MASK] of a text, with a base pretrained by a masked objective.",
    "perplexity": "Measure how well a base predicts texts that it has not seen.",
    "export": "Export a run for another tool; check that outputs and test metric stay the same.",
    "params": "Count a network's parameters, part by part, with the formula of each.",
    "doctor": "Look at this machine, measure it, and say what Headstart will do with it.",
    "compare": "Compare ways to get a classifier, with error bars, and write a report.",
    "labels": "Say how many labels each arm of a study needs for an accuracy.",
    "report": "Write report.html, figures/ and tables/ of a study again.",
    "app": "Open a local web page: look at data, plan and watch a study, try its classifier.",
}

MODULES = {
    "tokenize": "tokenizer",
    "generate": "language_model",
    "fill": "language_model",
    "perplexity": "language_model",
    "app": "webapp",
}


def command_function(name: str) -> Callable[..., None]:
    """The function of a command; its module is imported now."""
    return getattr(import_module(f"headstart.cli.{MODULES.get(name, name)}"), name)


class LazyCommand(TyperCommand):
    """A command that is known by name and help; its module is imported when it is called."""

    def load(self) -> Any:
        """Import the command's module and build the real command."""
        assert self.name is not None
        single = typer.Typer(add_completion=False)
        single.command(self.name)(command_function(self.name))
        return typer.main.get_command(single)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        # The context belongs to the real command, so parsing, help and the call are its own.
        return self.load().make_context(info_name, args, *more, **extra)


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, help_line in COMMANDS.items():
            self.add_command(LazyCommand(name, help=help_line))


app = typer.Typer(
    name="headstart",
    cls=LazyGroup,
    help="Pretrain a small Transformer on your own text, swap its head, and know, "
    "with error bars, what that bought you.",
    epilog="Run headstart COMMAND --help for its options. Every command takes --json.",
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


def main() -> None:
    """Run the command line; every error ends as one message and an exit code."""
    sys.exit(run_guarded(lambda: app(standalone_mode=False)))
