"""Around every route: the token, the count of requests, and a last net for errors."""

import hmac
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.serve.bodies import ClientGoneError
from headstart.serve.replies import RefusedError, internal_error
from headstart.serve.service import Service

log = logging.getLogger("headstart.serve")

Route = tuple[str, str]
Handler = Callable[[Scope, Receive], Awaitable[Response]]
OPEN = frozenset({"/health"})  # no token for this
COUNTED = OPEN | {"/predict", "/info", "/metrics", "/docs", "/openapi.json"}
SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """The outermost ASGI application.

    Parameters
    ----------
    app : the routes.
    service : what they ask; its metrics count the requests.
    short : routes by method and path that are called directly: for a small model, finding the
        way through the router takes longer than everything else about a request.
    """

    def __init__(self, app: ASGIApp, service: Service, short: dict[Route, Handler]) -> None:
        self.app = app
        self.service = service
        self.short = short
        token = service.settings.token
        self._token = None if token is None else f"Bearer {token}".encode()
        self._local = token is None and not service.settings.no_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong inside ends as one JSON error."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # nobody speaks WebSocket here
            await receive()
            await send({"type": "websocket.close", "code": 1000})
            return
        start, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SAFE]
            await send(message)

        try:
            if self._token is not None and scope["path"] not in OPEN:
                self._check_token(scope)
            if self._local:
                self._check_host(scope)
            handler = self.short.get((scope["method"], scope["path"]))
            if handler is None:
                await self.app(scope, receive, watched)
            else:
                response = await handler(scope, receive)
                await response(scope, receive, watched)
        except ClientGoneError:
            status = status or 499  # nobody is there to be told; the number is that of nginx
        except RefusedError as refused:
            await self._refuse(refused, scope, receive, watched)
        except Exception as error:
            log.error("a request failed", exc_info=error)
            if not status:
                await self._refuse(internal_error(), scope, receive, watched)
        finally:
            self.service.bodies.release(scope)
            path = counted_path(scope["path"])
            self.service.metrics.requests.labels(path, status).inc()
            self.service.metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _refuse(self, refused: RefusedError, *asgi: Any) -> None:
        self.service.metrics.refused.labels(refused.reason).inc()
        response: Response = refused.response()
        await response(*asgi)

    def _check_host(self, scope: Scope) -> None:
        """Refuse a public name that points here: with it, another site's page could read answers.

        Such a name has a dot, and is no address.
        """
        for name, value in scope["headers"]:
            if name == b"host":
                host = value.decode("latin-1").partition(":")[0]  # an address of IPv6 has no dot
                if "." in host and host != self.service.settings.host and not _is_address(host):
                    raise RefusedError(
                        421,
                        "this server has no such name",
                        where="Host",
                        fix="ask for 127.0.0.1 or localhost, or set a token",
                        reason="host",
                    )

    def _check_token(self, scope: Scope) -> None:
        """Compare in constant time, so that an answer's delay tells nothing about the token."""
        assert self._token is not None
        given = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                given = value
        if not hmac.compare_digest(given, self._token):
            raise RefusedError(
                401,
                "a token is needed here" if not given else "this is not the token",
                where="Authorization",
                fix="send the header Authorization: Bearer TOKEN",
                reason="token",
                headers={"WWW-Authenticate": "Bearer"},
            )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def counted_path(path: str) -> str:
    """The path under which a request is counted: one of few, whatever clients make up."""
    if path in COUNTED:
        return path
    if path.startswith("/models/"):
        return "/models/{name}"
    return "other"
