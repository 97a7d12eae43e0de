"""uvicorn: one server in this process, or several workers behind one address.

The model and the application are imported late: a worker must answer uvicorn's first health check
soon after its start.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors.multiprocess import Multiprocess

from headstart.errors import HeadstartError, explain
from headstart.serve.settings import READ_SECONDS, ServeConfig, address_of, bind

log = logging.getLogger("headstart.serve")

Ready = Callable[[str, dict[str, Any]], None]
IDLE_SECONDS = 30  # of a connection between two requests
START_SECONDS = 60  # for a worker to open the run, or to answer a health check
MOST_FILES = 65_536
SPARE_FILES = 128  # for the model, logs and libraries


class Protocol(H11Protocol):
    """uvicorn's protocol on h11, which limits heads; it also closes silent connections."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(READ_SECONDS, self._close_without_request)

    def _close_without_request(self) -> None:
        if self.cycle is None:  # uvicorn declares it without None
            self.transport.close()  # type: ignore[unreachable]


class Workers(Multiprocess):
    """uvicorn's manager of processes, which notices at once that a worker has died."""

    def keep_subprocess_alive(self) -> None:
        for one in self.processes:
            one.child_conn.close()  # the worker's end; while it is open, its death is not noticed
        super().keep_subprocess_alive()


def run_server(
    folder: Path, config: ServeConfig, *, ready: Ready, log_config: dict[str, Any] | None = None
) -> bool:
    """Serve a run until a signal, calling `ready` first; whether all requests were answered."""
    from headstart.serve.model import describe, open_model

    with bind(config.host, config.port) as listening:
        run = open_model(folder)
        announce = partial(ready, address_of(listening), describe(run))
        if config.workers == 1:
            from headstart.serve.app import create_app

            return run_here(
                make_config(create_app(run, config), config, log_config), listening, announce
            )
        del run
        _run_workers(
            make_config(partial(_worker_app, folder, config), config, log_config),
            listening,
            announce,
        )
        return True


def make_config(
    app: Callable[..., Any], config: ServeConfig, log_config: dict[str, Any] | None = None
) -> uvicorn.Config:
    """Return uvicorn's settings for an application; for workers, of a function that makes it."""
    return uvicorn.Config(
        app,
        factory=config.workers > 1,
        workers=config.workers,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=log_config,
        access_log=False,
        proxy_headers=False,  # the client's address is not used
        server_header=False,
        date_header=False,
        headers=[("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")],
        backlog=2_048,
        limit_concurrency=_connection_limit(),
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(config.deadline + READ_SECONDS) + 1,
        timeout_worker_healthcheck=START_SECONDS,
    )


def run_here(
    config: uvicorn.Config, listening: socket.socket, announce: Callable[[], None]
) -> bool:
    """Run a server in this process until SIGTERM or SIGINT; return whether it stopped cleanly."""
    server = uvicorn.Server(config)

    def stop(*_: Any) -> None:
        """Stop a server that is starting; uvicorn also raises its signal again after the end."""
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    announce()  # the socket listens already
    server.run(sockets=[listening])
    for number, handler in before.items():
        signal.signal(number, handler)
    return not server.force_exit


def _run_workers(
    config: uvicorn.Config, listening: socket.socket, announce: Callable[[], None]
) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # of this process: about workers
    with tempfile.TemporaryDirectory(prefix="headstart-metrics-") as shared:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        workers = Workers(config, [listening])
        announce()  # the socket listens already; requests wait for the first worker
        workers.run()
    if any(one.exitcode == STARTUP_FAILURE for one in workers.processes):
        raise HeadstartError(
            "a worker could not start",
            fix="look at the messages above; fewer --workers need less memory",
            code="worker",
        )


def _worker_app(folder: Path, config: ServeConfig) -> Any:
    """Make the application of a worker; uvicorn stops, or keeps the old worker, if that fails."""
    try:
        from headstart.serve.app import create_app
        from headstart.serve.model import open_model

        return create_app(open_model(folder), config)
    except Exception as error:
        log.error("a worker cannot start: %s", explain(error) or error)
        sys.exit(STARTUP_FAILURE)


def _connection_limit() -> int:
    """Raise the limit of open files as far as allowed; connections may use all but a few."""
    try:
        import resource
    except ImportError:  # Windows
        return 5_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # more than this process may have
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MOST_FILES), hard))
        soft = max(soft, MOST_FILES)
    return max(64, soft - SPARE_FILES)
