"""One server process: uvicorn, the signals that it obeys, and an orderly end."""

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn

from headstart.errors import HeadstartError
from headstart.serve.app import create_app
from headstart.serve.connections import BoundedProtocol, Sweeper, connection_limit
from headstart.serve.service import Service
from headstart.serve.settings import ServeSettings

log = logging.getLogger("headstart.serve")

BACKLOG = 2_048
IDLE_SECONDS = 30  # of a connection between two requests
SWITCH_SECONDS = 0.0005  # the event loop and the model's thread take turns more often than usual


class _Server(uvicorn.Server):
    """uvicorn's server, which reloads on SIGHUP and whose end is no signal but an exit code."""

    def __init__(
        self, config: uvicorn.Config, service: Service, ready: Callable[[], Any] | None
    ) -> None:
        super().__init__(config)
        self.service = service
        self.ready = ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.service.stopping = True
        # Who asks twice does not want to wait.
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self.service.reload)
        if self.ready is not None:
            self.ready()

    async def main_loop(self) -> None:
        settings = self.service.settings
        sweeper = Sweeper(
            self.server_state,
            first_seconds=settings.read_seconds,
            next_seconds=IDLE_SECONDS + settings.read_seconds,
            answer_seconds=2 * settings.read_seconds + settings.deadline,
        )
        task = asyncio.get_running_loop().create_task(sweeper.run())
        try:
            await super().main_loop()
        finally:
            task.cancel()


def bind(settings: ServeSettings) -> socket.socket:
    """A listening socket; an address that cannot be had is one clear message."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With the protocol's number, or asyncio leaves Nagle's algorithm on: 40 ms a request.
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise HeadstartError(
            f"there is no address {settings.host}: {error.strerror}", fix="use --host 127.0.0.1"
        ) from None
    try:
        if sys.platform != "win32":  # there it would let two servers share an address
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise HeadstartError(
            f"{settings.host}:{settings.port} cannot be used: {error.strerror}",
            fix="choose another --port (0 finds a free one), or stop what listens there",
        ) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """Where a browser finds the server."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(service: Service, *, ready: Callable[[], Any] | None = None) -> uvicorn.Server:
    """A server that is not running yet; its `run` takes the socket of `bind`."""
    settings = service.settings
    config = uvicorn.Config(
        create_app(service),
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nobody looks at a client's address
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(settings.deadline + settings.read_seconds) + 1,
    )
    return _Server(config, service, ready)


def run_server(
    service: Service, listening: socket.socket, *, ready: Callable[[], Any] | None = None
) -> bool:
    """Serve until SIGTERM or SIGINT; every request that was accepted is answered first.

    Parameters
    ----------
    service : with its model opened.
    listening : from `bind`.
    ready : called when requests are answered.

    Returns
    -------
    Whether everything was answered; a second Ctrl-C does not wait for that.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    BoundedProtocol.limit = connection_limit()
    server = make_server(service, ready=ready)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    return not server.force_exit
