"""`headstart export` and `serve`: a run for other programs, and over HTTP."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import messages, print_json, styled, write
from headstart.cli.options import Debug, Json, from_config, option
from headstart.errors import need_packages
from headstart.serve.settings import ServeConfig

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
READY = (
    "a model of the task {task} listens at [bold]{address}/predict[/]; {address}/openapi.json "
    "describes the requests\n[dim]Ctrl-C stops it[/]"
)


@from_config(ServeConfig)
def serve(
    given: dict[str, Any],
    run: Annotated[
        Path,
        typer.Argument(help="A fine-tuned run, a study (its best arm), or an export to ONNX."),
    ],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve a run over HTTP, in Hugging Face's request form, with metrics.

    headstart serve runs/classifier
    """
    need_packages("serve", *PACKAGES)
    config = ServeConfig.create(**given)
    from headstart.serve.server import run_server

    if not run_server(run, config, ready=partial(_print_ready, json), log_config=LOG_CONFIG):
        messages().print("stopped at once, after a second signal")
        raise typer.Exit(130)
    messages().print("stopped: every accepted request has its response")


def _print_ready(json: bool, address: str, facts: dict[str, Any]) -> None:
    if json:
        print_json({"address": address, "pid": os.getpid(), "model": facts})
    else:
        messages().print(styled(READY, address=address, **facts), soft_wrap=True)


class MessageHandler(logging.Handler):
    """Prints the server's log where the command line prints its messages."""

    def emit(self, record: logging.LogRecord) -> None:
        messages().print(self.format(record), soft_wrap=True)


# For this process and for every worker; of uvicorn only errors.
LOG_CONFIG = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {
        "messages": {"class": f"{__name__}.{MessageHandler.__name__}", "formatter": "plain"}
    },
    "loggers": {
        "headstart.serve": {"level": "INFO", "handlers": ["messages"], "propagate": False},
        "uvicorn": {"level": "ERROR", "handlers": ["messages"], "propagate": False},
    },
}


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
    from headstart.interop.export import export_run

    found = export_run(run, to, out, int8=int8, test=test)
    if json:
        print_json(found)
        return
    write("[bold]{out}[/]: {model}", out=out, model=found["model"])
    for one in found["comparisons"]:
        write("  {inputs}: differs by {difference:.2g} at most", **one)
    for text in found["notes"]:
        write("  note: {text}", text=text)
