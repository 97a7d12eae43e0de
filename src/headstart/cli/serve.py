"""`headstart export` and `serve`: a run for other programs, and over HTTP."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import messages, print_json, styled, write
from headstart.cli.options import Debug, Json, option
from headstart.errors import need_packages
from headstart.serve.settings import ServeSettings

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
DEFAULT = ServeSettings()
TOKEN = "HEADSTART_TOKEN"
READY = (
    "[bold]{name}[/] ({task}) listens at [bold]{address}/predict[/]; {address}/docs describes the "
    "requests\n[dim]Ctrl-C stops it, SIGHUP opens a newer run[/]"
)


def serve(
    run: Annotated[
        Path,
        typer.Argument(help="A fine-tuned run, a study (its best arm), or an export to ONNX."),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen at.", rich_help_panel="Output")
    ] = DEFAULT.host,
    port: Annotated[
        int, typer.Option(help="The port; 0 finds a free one.", rich_help_panel="Output")
    ] = DEFAULT.port,
    name: Annotated[
        str | None, option(help="The model's name in requests; by default the folder's.")
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes.", rich_help_panel="Machine")
    ] = DEFAULT.workers,
    threads: Annotated[
        int | None,
        option(help="Batches at the same time; by default one per core.", panel="Machine"),
    ] = None,
    token_file: Annotated[
        Path | None,
        option(help=f"A file with the token that clients must send; by default ${TOKEN}."),
    ] = None,
    no_token: Annotated[
        bool, option("--no-token", help="Accept other machines without a token.")
    ] = False,
    queue: Annotated[
        int, typer.Option(help="Texts that may wait.", rich_help_panel="Advanced")
    ] = DEFAULT.queue,
    max_bytes: Annotated[
        int, typer.Option(help="Bytes of one request.", rich_help_panel="Advanced")
    ] = DEFAULT.max_bytes,
    max_texts: Annotated[
        int, typer.Option(help="Texts of one request.", rich_help_panel="Advanced")
    ] = DEFAULT.max_texts,
    max_tokens: Annotated[
        int, typer.Option(help="Tokens of one request.", rich_help_panel="Advanced")
    ] = DEFAULT.max_tokens,
    deadline: Annotated[
        float,
        typer.Option(help="Seconds that a request may take.", rich_help_panel="Advanced"),
    ] = DEFAULT.deadline,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve a run over HTTP, in Hugging Face's request form, with metrics.

    headstart serve runs/classifier
    """
    need_packages("serve", *PACKAGES)
    settings = ServeSettings(
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        token=_read_token(token_file),
        no_token=no_token,
        queue=queue,
        max_bytes=max_bytes,
        max_texts=max_texts,
        max_tokens=max_tokens,
        deadline=deadline,
    )
    settings.check()
    from headstart.serve.model import ServedModel
    from headstart.serve.server import address_of, bind, run_server
    from headstart.serve.service import Service
    from headstart.serve.workers import Supervisor

    log_messages()
    open_model = partial(ServedModel.open, run, name=name)
    with bind(settings) as listening:
        ready = partial(_print_ready, address_of(listening), json)
        if workers > 1:
            supervisor = Supervisor(open_model, settings, listening, prepare=log_messages)
            finished = supervisor.run(ready)
        else:
            service = Service(open_model, settings)
            ready = partial(ready, service.model.facts())
            finished = run_server(service, listening, ready=ready)
    if not finished:
        messages().print("stopped at once, after a second signal")
        raise typer.Exit(130)
    messages().print("stopped: every accepted request has its response")


def _read_token(path: Path | None) -> str | None:
    """Read it from the file or the environment; every user can read a command line."""
    if path is None:
        return os.environ.get(TOKEN)
    return path.expanduser().read_text(encoding="utf-8").strip()


def _print_ready(address: str, json: bool, facts: dict[str, Any]) -> None:
    if json:
        print_json({"address": address, "pid": os.getpid(), "model": facts})
    else:
        messages().print(styled(READY, address=address, **facts), soft_wrap=True)


class _Messages(logging.Handler):
    """Prints the server's log where the command line prints its messages."""

    def emit(self, record: logging.LogRecord) -> None:
        messages().print(self.format(record), soft_wrap=True)


def log_messages() -> None:
    """Print the server's log; of uvicorn only errors."""
    handler = _Messages()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("headstart.serve", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


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
    from headstart.interop.exporters import ExportOptions, export_run

    found = export_run(run, to, out, ExportOptions(int8=int8, test=test))
    if json:
        print_json(found)
        return
    write("[bold]{out}[/]: {model}", out=out, model=found["model"])
    for one in found["comparisons"]:
        write("  {inputs}: differs by {difference:.2g} at most", **one)
    for text in found["notes"]:
        write("  note: {text}", text=text)
