"""Connections: how many there may be, and how long one may keep a place without a request.

uvicorn closes a connection that is idle after an answer. These close the others, too: those that
never send a request, send one a byte at a time, or never read their answer.
"""

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

SPARE_FILES = 128  # for the model, logs and libraries
SWEEP_SECONDS = 1.0


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, which also answers clients that have closed their sending half.

    The one on h11, because it bounds the head of a request; the faster one does not.
    """

    limit = 1_000_000  # connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self.limit:
            self.transport = transport  # `connection_lost` closes it
            transport.abort()
            return
        super().connection_made(transport)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more; the answer to a whole request is still sent."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            return None
        cycle.keep_alive = False
        return True


def connection_limit() -> int:
    """As many connections as files may be open, after raising that limit as far as allowed."""
    try:
        import resource
    except ImportError:  # Windows
        return 5_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass
    return max(64, soft - SPARE_FILES)


class Sweeper:
    """Closes connections whose request or answer takes too long.

    Parameters
    ----------
    state : uvicorn's, which has the connections.
    first_seconds : for the head of the first request.
    next_seconds : from an answer to the next request's head; uvicorn closes idle ones before.
    answer_seconds : from a request's head to the end of its answer.
    """

    def __init__(
        self,
        state: ServerState,
        *,
        first_seconds: float,
        next_seconds: float,
        answer_seconds: float,
    ) -> None:
        self.state = state
        self.first_seconds = first_seconds
        self.next_seconds = next_seconds
        self.answer_seconds = answer_seconds
        self._seen: dict[Any, tuple[Any, bool, float]] = {}  # cycle, whether it is over, since

    async def run(self) -> None:
        """Look at all connections again and again."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep(time.monotonic())

    def sweep(self, now: float) -> None:
        """Look at all connections once."""
        seen: dict[Any, tuple[Any, bool, float]] = {}
        for connection in list(self.state.connections):
            cycle = getattr(connection, "cycle", None)
            over = cycle is None or cycle.response_complete
            before = self._seen.get(connection)
            same = before is not None and before[0] is cycle and before[1] == over
            since = before[2] if before is not None and same else now
            limit = self.next_seconds if over else self.answer_seconds
            if now - since > (self.first_seconds if cycle is None else limit):
                transport: asyncio.Transport | None = getattr(connection, "transport", None)
                if transport is not None:
                    transport.abort()
                continue
            seen[connection] = (cycle, over, since)
        self._seen = seen
