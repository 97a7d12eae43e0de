"""Several server processes behind one address, and the process that looks after them."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from headstart.errors import HeadstartError, explain
from headstart.serve.metrics import forget_process, share_between_processes
from headstart.serve.model import ServedModel
from headstart.serve.settings import ServeSettings

log = logging.getLogger("headstart.serve")

QUICK_SECONDS = 10  # a worker that ends sooner than this will hardly do better the next time
MOST_QUICK_ENDS = 3
TICK_SECONDS = 0.2
# By a signal ends only a worker that serves nobody yet.
IN_ORDER = (0, -signal.SIGTERM, -signal.SIGINT)


class Supervisor:
    """Starts workers, passes signals on, and replaces a worker that ends by itself.

    Parameters
    ----------
    open_model : as `Service` takes it; it must be picklable.
    settings : the server's.
    listening : the socket that all of them answer at.
    prepare : called first in each worker: logging.
    """

    def __init__(
        self,
        open_model: Callable[[], ServedModel],
        settings: ServeSettings,
        listening: socket.socket,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._task = (open_model, settings, listening, prepare)
        self._wanted = settings.workers
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[BaseProcess, float] = {}
        self._stopping = False
        self._quick_ends = 0
        self._in_order = True

    def run(self, ready: Callable[[dict[str, Any]], Any] | None = None) -> bool:
        """Serve until SIGTERM or SIGINT; `ready` is given the model's facts when all answer.

        Returns
        -------
        Whether the workers ended in order, with everything answered.
        """
        numbers = share_between_processes()
        names = ("SIGTERM", "SIGINT", "SIGHUP")
        signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {number: signal.signal(number, self._pass_on) for number in signals}
        try:
            started = [self._start() for _ in range(self._wanted)]
            facts = [self._wait_for(*one) for one in started]
            if ready is not None and facts[0] is not None:
                ready(facts[0])
            while self._workers:
                self._look()
            return self._in_order
        finally:
            for process in self._workers:
                process.terminate()
            for process in self._workers:
                process.join()
            for number, handler in before.items():
                signal.signal(number, handler)
            numbers.cleanup()

    def _start(self) -> tuple[BaseProcess, Connection]:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_serve, args=(*self._task, theirs), daemon=False)
        process.start()
        theirs.close()
        self._workers[process] = time.monotonic()
        return process, ours

    def _wait_for(self, process: BaseProcess, report: Connection) -> dict[str, Any] | None:
        """The facts of a worker that answers; what kept it from that is raised here."""
        try:
            found = report.recv()
        except EOFError:
            if self._stopping:
                return None
            process.join()
            raise HeadstartError(
                f"a worker ended with code {process.exitcode} before it could answer",
                fix="look at the messages above; fewer --workers need less memory",
            ) from None
        finally:
            report.close()
        if isinstance(found, Exception):
            raise found
        facts: dict[str, Any] = found
        return facts

    def _look(self) -> None:
        """Wait a moment; replace workers that have ended."""
        wait([process.sentinel for process in self._workers], timeout=TICK_SECONDS)
        for process in [one for one in self._workers if not one.is_alive()]:
            started = self._workers.pop(process)
            if process.pid is not None:
                forget_process(process.pid)
            if self._stopping:
                self._in_order = self._in_order and process.exitcode in IN_ORDER
                continue
            quick = time.monotonic() - started < QUICK_SECONDS
            self._quick_ends = self._quick_ends + 1 if quick else 0
            if self._quick_ends >= MOST_QUICK_ENDS:
                raise HeadstartError(
                    f"workers end as soon as they start, the last with code {process.exitcode}",
                    fix="look at the messages above",
                )
            log.error("a worker ended with code %s; another one is started", process.exitcode)
            self._start()[1].close()

    def _pass_on(self, number: int, frame: object) -> None:
        if number != getattr(signal, "SIGHUP", None):
            self._stopping = True
            self._task[2].close()  # so that new clients are refused, and not left waiting
        for process in list(self._workers):
            if process.pid is not None and process.is_alive():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)


def _serve(
    open_model: Callable[[], ServedModel],
    settings: ServeSettings,
    listening: socket.socket,
    prepare: Callable[[], None] | None,
    report: Connection,
) -> None:
    """A worker: one server process."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C reaches the supervisor, which passes it on; twice would be in haste
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the server listens to it: no traceback
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server listens to it
    if prepare is not None:
        prepare()
    from headstart.serve.server import run_server
    from headstart.serve.service import Service

    try:
        service = Service(open_model, settings)
    except Exception as error:
        told = explain(error) or error
        if not _tell(report, told):
            log.error("a worker cannot start: %s", told)
        sys.exit(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if not run_server(service, listening, ready=lambda: _tell(report, service.model.facts())):
        sys.exit(1)


def _tell(report: Connection, what: object) -> bool:
    """Whether it was heard: a worker that replaces another one reports to nobody."""
    try:
        report.send(what)
    except OSError:
        return False
    finally:
        report.close()
    return True


def _end_with_parent() -> None:
    """Stop in order when the supervisor is gone: nobody else would stop this process."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
