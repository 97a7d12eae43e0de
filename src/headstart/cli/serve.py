"""`headstart export`, `serve` and `app`: a run for other programs, over HTTP, and the web page."""

import logging
import os
import secrets
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import messages, print_json, styled, write
from headstart.cli.options import Debug, Json, from_config, option
from headstart.errors import HeadstartError, need_packages
from headstart.serve.settings import ServeConfig, bind

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
READY = (
    "[bold]{name}[/] ({task}) listens at [bold]{address}/predict[/]; {address}/openapi.json "
    "describes the requests\n[dim]Ctrl-C stops it, SIGHUP opens a newer run[/]"
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


def app(
    folder: Annotated[
        Path | None,
        option(help="Where uploads and studies are saved; by default your data folder."),
    ] = None,
    port: Annotated[
        int,
        option(min=0, max=65_535, help="The port; 0 finds a free one. Default: 8765."),
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

    Only this machine can reach it, and only with the key in its address. A study that was started
    goes on when the page is closed or this command ends. From another machine, use ssh:
    ssh -L 8765:127.0.0.1:8765 NAME
    """
    need_packages("serve", *PACKAGES)
    from headstart.lock import locked
    from headstart.webapp.workspace import default_folder

    place = (folder or default_folder()).expanduser().resolve()
    try:
        with locked(place / "server", "app"), bind("127.0.0.1", port) as listening:
            _serve_page(place, listening, upload_mb, json=json, browser=browser)
    except HeadstartError as error:
        if error.code == "locked" and (place / "address").is_file():
            error.fix = f"open {(place / 'address').read_text(encoding='utf-8').strip()}"
        raise


def _serve_page(place: Path, listening: Any, upload_mb: int, *, json: bool, browser: bool) -> None:
    import uvicorn

    from headstart.webapp.server import make_app

    host, port = listening.getsockname()
    made = make_app(place, port=port, upload_mb=upload_mb)
    services = made.state.services
    address = f"http://{host}:{port}/?key={services.workspace.key()}"
    services.workspace.keep_secret("address", address)
    if json:
        print_json({"address": address, "folder": str(place), "port": port})
    lines = f"Headstart: {address}\nUploads and studies are saved in {place}. "
    messages().print(lines + "Ctrl-C ends the page, not a study.", soft_wrap=True)
    if browser:
        # Other users of the machine can read a command line: this key works only once.
        once = secrets.token_urlsafe(24)
        services.once.add(once)
        webbrowser.open(f"http://{host}:{port}/?key={once}")
    config = uvicorn.Config(
        made, log_level="warning", access_log=False, timeout_graceful_shutdown=5
    )
    uvicorn.Server(config).run(sockets=[listening])


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
