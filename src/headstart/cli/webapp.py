"""`headstart app`: the local web page, from a file with labels to a classifier in use."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import Debug, Json, messages, print_json, styled
from headstart.errors import HeadstartError

HOST = "127.0.0.1"  # nobody else's machine can reach it
PORT = 8765


def app(
    folder: Annotated[
        Path | None,
        typer.Option(help="Where uploads and studies are kept.", show_default=False),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of this machine; 0 takes a free one.")
    ] = PORT,
    upload_mb: Annotated[int, typer.Option(min=1, help="The largest file, in megabytes.")] = 1_000,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Open a local web page: look at data, plan and watch a study, try its classifier.

    Only this machine can reach it, and only with the key in its address. A study that was started
    goes on when the page is closed or this command ends. From another machine, go through ssh:
    ssh -L 8765:127.0.0.1:8765 NAME
    """
    try:
        import uvicorn

        from headstart.webapp.server import make_app
    except ImportError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise HeadstartError(
            "the app needs a web server, which is an extra", fix="pip install 'headstart[serve]'"
        ) from None
    from headstart.webapp.workspace import default_folder

    place = (folder or default_folder()).expanduser().resolve()
    with _only_server(place), _bound(port) as listening:
        chosen = listening.getsockname()[1]
        made = make_app(place, port=chosen, upload_mb=upload_mb)
        address = f"http://{HOST}:{chosen}/?key={made.state.services.workspace.key()}"
        made.state.services.workspace.keep_secret("address", address)
        if json:
            print_json({"address": address, "folder": str(place), "port": chosen})
            sys.stdout.flush()
        messages().print(
            styled("[bold]Headstart[/]: {address}", address=address),
            soft_wrap=True,
            highlight=False,
        )
        messages().print(
            f"Uploads and studies are kept in {place}. Ctrl-C ends the page, not a study.",
            markup=False,
            soft_wrap=True,
        )
        if browser:
            import secrets
            import webbrowser

            # Other users of the machine can read a command line: this key is used up by then.
            once = secrets.token_urlsafe(24)
            made.state.services.once.add(once)
            webbrowser.open(f"http://{HOST}:{chosen}/?key={once}")
        config = uvicorn.Config(
            made, log_level="warning", access_log=False, timeout_graceful_shutdown=5
        )
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _only_server(place: Path) -> Iterator[None]:
    """Let one server use a folder; a second one gets an error with the first one's address."""
    from headstart.lock import locked

    with ExitStack() as stack:
        try:
            stack.enter_context(locked(place / "server", "app"))
        except HeadstartError as error:
            known = place / "address"
            if error.code != "locked" or not known.is_file():
                raise
            address = known.read_text(encoding="utf-8").strip()
            raise HeadstartError(
                error.what, where=place, fix=f"open {address}", code=error.code
            ) from None
        yield


def _bound(port: int) -> socket.socket:
    """A socket of this machine alone."""
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
