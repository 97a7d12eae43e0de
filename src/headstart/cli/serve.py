"""`headstart serve` and `headstart app`: a run behind an HTTP address, and the local web page."""

import importlib.util
import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import messages, print_json, styled
from headstart.cli.options import Debug, Json, option
from headstart.errors import HeadstartError
from headstart.serve.settings import ServeSettings

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
DEFAULT = ServeSettings()
TOKEN = "HEADSTART_TOKEN"
HOST = "127.0.0.1"  # of the web page: no other machine can reach it


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


def need_packages() -> None:
    """Reject to begin without the packages of the extra `serve`."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise HeadstartError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            fix="pip install 'headstart[serve]'",
            code="missing-package",
        )


def _read_token(path: Path | None) -> str | None:
    """Read it from the file or the environment; every user can read a command line."""
    if path is None:
        return os.environ.get(TOKEN)
    return path.expanduser().read_text(encoding="utf-8").strip()


def _print_ready(address: str, json: bool, facts: dict[str, Any]) -> None:
    if json:
        print_json({"address": address, "pid": os.getpid(), "model": facts})
        sys.stdout.flush()
        return
    line = styled(
        "[bold]{name}[/] ({task}) listens at [bold]{address}/predict[/]; {address}/docs describes "
        "the requests",
        name=facts["name"],
        task=facts["task"],
        address=address,
    )
    messages().print(line, soft_wrap=True)
    messages().print("Ctrl-C stops it, SIGHUP opens a newer run", style="dim")


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
    need_packages()
    import uvicorn

    from headstart.webapp.server import make_app
    from headstart.webapp.workspace import default_folder

    place = (folder or default_folder()).expanduser().resolve()
    with _only_server(place), _bound(port) as listening:
        chosen = listening.getsockname()[1]
        made = make_app(place, port=chosen, upload_mb=upload_mb)
        services = made.state.services
        address = f"http://{HOST}:{chosen}/?key={services.workspace.key()}"
        services.workspace.keep_secret("address", address)
        if json:
            print_json({"address": address, "folder": str(place), "port": chosen})
            sys.stdout.flush()
        console = messages()
        console.print(styled("[bold]Headstart[/]: {address}", address=address), soft_wrap=True)
        line = f"Uploads and studies are saved in {place}. Ctrl-C ends the page, not a study."
        console.print(line, soft_wrap=True)
        if browser:
            import webbrowser

            # Other users of the machine can read a command line: this key works only once.
            once = secrets.token_urlsafe(24)
            services.once.add(once)
            webbrowser.open(f"http://{HOST}:{chosen}/?key={once}")
        config = uvicorn.Config(
            made, log_level="warning", access_log=False, timeout_graceful_shutdown=5
        )
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _only_server(place: Path) -> Iterator[None]:
    """Hold the lock of the app's folder; where it is held, name the address of the other app."""
    from headstart.lock import locked

    known = place / "address"
    try:
        with locked(place / "server", "app"):
            yield
    except HeadstartError as error:
        if error.code != "locked" or not known.is_file():
            raise
        address = known.read_text(encoding="utf-8").strip()
        fix = f"open {address}"
        raise HeadstartError(error.what, where=place, fix=fix, code=error.code) from None


def _bound(port: int) -> socket.socket:
    """Bind a socket that only this machine can reach."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OSError:
        made.close()
        raise HeadstartError(
            f"port {port} is in use",
            fix=f"the app may be running already: look at http://{HOST}:{port}; or give --port 0",
        ) from None
    return made
