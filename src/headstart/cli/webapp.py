"""`headstart app`: the web page."""

import secrets
import socket
import webbrowser
from pathlib import Path
from typing import Annotated

from headstart.cli.console import messages, print_json
from headstart.cli.options import Debug, Json, option
from headstart.errors import HeadstartError, need_packages

HOST = "127.0.0.1"


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

    Only this machine can reach it, and only with the key in the address, which each start makes
    anew. A study that was started goes on when the page is closed or this command ends. From
    another machine, use ssh: ssh -L 8765:127.0.0.1:8765 NAME
    """
    need_packages("serve", "fastapi", "uvicorn")
    from headstart.files import user_folder
    from headstart.lock import locked
    from headstart.serve.settings import bind

    place = (folder or user_folder("data") / "app").expanduser().resolve()
    address = place / "address"
    try:
        with locked(place / "server", "app"), bind(HOST, port) as listening:
            try:
                _serve(place, listening, upload_mb, json=json, browser=browser)
            finally:
                address.unlink(missing_ok=True)
    except HeadstartError as error:
        if error.code == "locked" and address.is_file():
            error.fix = f"open {address.read_text(encoding='utf-8').strip()}"
        raise


def _serve(
    place: Path, listening: socket.socket, upload_mb: int, *, json: bool, browser: bool
) -> None:
    from headstart.serve.server import run_here
    from headstart.webapp.server import make_app, make_config

    made = make_app(place, upload_mb=upload_mb)
    port = listening.getsockname()[1]
    page = f"http://{HOST}:{port}/"
    with_key = f"{page}#key={made.state.token}"
    address = place / "address"
    address.unlink(missing_ok=True)
    address.touch(mode=0o600)  # only its owner can read it
    address.write_text(f"{with_key}\n", encoding="utf-8")
    lines = f"Headstart: {with_key}\nUploads and studies are saved in {place}. "

    def announce() -> None:
        if json:
            print_json({"address": with_key, "folder": str(place), "port": port})
        messages().print(lines + "Ctrl-C ends the page, not a study.", soft_wrap=True)
        if browser:
            ticket = secrets.token_urlsafe(24)
            made.state.tickets.add(ticket)
            webbrowser.open(f"{page}#ticket={ticket}")

    run_here(make_config(made), listening, announce)
