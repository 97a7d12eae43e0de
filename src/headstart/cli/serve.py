"""`headstart serve`: a run behind an address, until it is stopped."""

import importlib.util
import logging
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.output import Debug, Json, messages, print_json, styled
from headstart.errors import HeadstartError
from headstart.serve.settings import ServeSettings

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
DEFAULT = ServeSettings()
TOKEN = "HEADSTART_TOKEN"


def serve(
    run: Annotated[
        Path,
        typer.Argument(help="A fine-tuned run, a study (its best arm), or an export to ONNX."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = DEFAULT.host,
    port: Annotated[int, typer.Option(help="0 finds a free one.")] = DEFAULT.port,
    name: Annotated[
        str | None,
        typer.Option(
            help="How requests call the model. Default: the folder's name.", show_default=False
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes.")] = DEFAULT.workers,
    threads: Annotated[
        int | None,
        typer.Option(help="Batches at the same time. Default: one per core.", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help=f"A file with the token that clients must send. Default: ${TOKEN}.",
            show_default=False,
        ),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let other machines ask without a token.")
    ] = False,
    queue: Annotated[int, typer.Option(help="Texts that may wait.")] = DEFAULT.queue,
    max_bytes: Annotated[int, typer.Option(help="Of one request.")] = DEFAULT.max_bytes,
    max_texts: Annotated[int, typer.Option(help="Of one request.")] = DEFAULT.max_texts,
    max_tokens: Annotated[int, typer.Option(help="Of one request.")] = DEFAULT.max_tokens,
    deadline: Annotated[
        float, typer.Option(help="Seconds that a request may take.")
    ] = DEFAULT.deadline,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve a run over HTTP: Hugging Face's form, the v2 inference protocol, metrics.

    headstart serve runs/classifier
    """
    need_packages()
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
    listening = bind(settings)
    address = address_of(listening)
    with listening:
        if workers > 1:
            supervisor = Supervisor(open_model, settings, listening, prepare=log_messages)
            in_order = supervisor.run(partial(_say_ready, address, json))
        else:
            service = Service(open_model, settings)
            facts = service.model.facts()
            in_order = run_server(
                service, listening, ready=partial(_say_ready, address, json, facts)
            )
    if not in_order:
        messages().print("stopped at once, as it was asked twice")
        raise typer.Exit(130)
    messages().print("stopped: everything that was accepted has been answered")


def need_packages() -> None:
    """Refuse to begin without the packages of the extra `serve`."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise HeadstartError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            fix="pip install 'headstart[serve]'",
        )


def _read_token(path: Path | None) -> str | None:
    """From the file or the environment; on a command line, every user of the machine reads it."""
    if path is None:
        return os.environ.get(TOKEN)
    return path.expanduser().read_text(encoding="utf-8").strip()


def _say_ready(address: str, json: bool, facts: dict[str, Any]) -> None:
    if json:
        import sys

        print_json({"address": address, "pid": os.getpid(), "model": facts})
        sys.stdout.flush()
        return
    console = messages()
    console.print(
        styled(
            "[bold]{name}[/] ({task}) answers at [bold]{address}/predict[/]; "
            "{address}/docs shows how to ask",
            name=facts["name"],
            task=facts["task"],
            address=address,
        ),
        soft_wrap=True,
    )
    console.print("Ctrl-C stops it, SIGHUP takes a newer run", style="dim")


class _Messages(logging.Handler):
    """Shows what the server logs where the command line shows its messages."""

    def emit(self, record: logging.LogRecord) -> None:
        messages().print(self.format(record), soft_wrap=True)


def log_messages() -> None:
    """Show the server's log; of uvicorn only what is wrong."""
    handler = _Messages()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("headstart.serve", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
