"""`headstart export`, `serve` and `app`: a run for other programs, over HTTP, the web page."""

import logging
import os
import secrets
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import message, print_json, print_result, write
from headstart.cli.options import Debug, Json, from_config, option
from headstart.errors import need_packages
from headstart.serve.settings import ServeConfig

HOST = "127.0.0.1"  # of the web page
READY = (
    "send requests to [bold]{address}/predict[/] (task: {task}); {address}/openapi.json describes "
    "them\n[dim]Ctrl-C stops the server[/]"
)


@from_config(ServeConfig)
def serve(
    given: dict[str, Any],
    run: Annotated[
        Path, typer.Argument(help="A fine-tuned run, a study (its best arm), or an export to ONNX.")
    ],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve a run over HTTP, with Hugging Face's request format and Prometheus metrics.

    headstart serve runs/classifier
    """
    need_packages("serve", "fastapi", "uvicorn", "prometheus_client")
    config = ServeConfig.create(**given)
    from headstart.serve.server import run_server

    if not run_server(run, config, ready=partial(_print_ready, json), log_config=LOG_CONFIG):
        message("stopped at once, after a second signal")
        raise typer.Exit(130)
    message("stopped; all accepted requests were answered")


def _print_ready(json: bool, address: str, facts: dict[str, Any]) -> None:
    if json:
        print_json({"address": address, "pid": os.getpid(), "model": facts})
    else:
        message(READY, address=address, **facts)


class MessageHandler(logging.Handler):
    """Prints the server's log where the command line prints its messages."""

    def emit(self, record: logging.LogRecord) -> None:
        message("{line}", line=self.format(record))


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
    to: Annotated[str, option(help="The format of the export: huggingface or onnx.")],
    out: Annotated[Path, option(help="A new folder for the export.")],
    int8: Annotated[bool, option("--int8", help="Store the weights in 8 bits.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Export a run for another tool; check that outputs and test metric stay the same.

    headstart export runs/classifier --to huggingface --out exported
    """
    from headstart.interop.export import export_run

    print_result(export_run(run, to, out, int8=int8), print_export, json=json)


def print_export(found: dict[str, Any]) -> None:
    """Print where an export is, and how far its outputs are from the run's."""
    write("[bold]{out}[/]: {model}", **found)
    for one in found["comparisons"]:
        write("  {inputs}: difference of at most {difference:.2g}", **one)
    for text in found["notes"]:
        write("  note: {text}", text=text)


def app(
    folder: Annotated[
        Path | None,
        option(help="Where uploads and studies are saved; by default your data folder."),
    ] = None,
    port: Annotated[
        int, option(min=0, max=65_535, help="The port; 0 finds a free one. Default: 8765.")
    ] = 8765,
    upload_mb: Annotated[
        int, option(min=1, help="The largest file, in megabytes. Default: 1000.")
    ] = 1_000,
    browser: Annotated[
        bool, option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Open a local web page: look at data, plan and watch a study, try its classifier.

    Only this machine can reach it, and only with the key in the address; each start makes a new
    key. A study continues when the page is closed or this command ends. From
    another machine, use ssh: ssh -L 8765:127.0.0.1:8765 NAME
    """
    need_packages("serve", "fastapi", "uvicorn")
    from headstart.files import locked, user_folder
    from headstart.serve.server import run_here
    from headstart.serve.settings import bind
    from headstart.webapp.server import make_app, make_config

    place = (folder or user_folder("data") / "app").expanduser().resolve()
    with locked(place / "server", "app"), bind(HOST, port) as listening:
        made = make_app(place, upload_mb=upload_mb)
        chosen = listening.getsockname()[1]
        page = f"http://{HOST}:{chosen}/"

        def announce() -> None:
            address = f"{page}#key={made.state.token}"
            if json:
                print_json({"address": address, "folder": str(place), "port": chosen})
            message(
                "Headstart: {address}\nUploads and studies are saved in {place}. Ctrl-C closes the "
                "page; a running study continues.",
                address=address,
                place=place,
            )
            if browser:
                ticket = secrets.token_urlsafe(24)
                made.state.tickets.add(ticket)
                webbrowser.open(f"{page}#ticket={ticket}")

        run_here(make_config(made), listening, announce)
