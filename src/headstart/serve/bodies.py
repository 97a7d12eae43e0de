"""A request's body: read within the limits of size and time, whoever sends it."""

import asyncio
from typing import Any

from starlette.types import Receive, Scope

from headstart.serve.replies import RefusedError, read_json
from headstart.serve.settings import ServeSettings

LARGEST_AT_ONCE = 64  # requests of the largest size; more wait outside
HELD = "headstart.held"  # in a request's scope: the bytes that it holds


class ClientGoneError(Exception):
    """The client has left before its request was whole."""


class BodyReader:
    """Reads bodies; all of them together hold a bounded number of bytes.

    Parameters
    ----------
    settings : the server's.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.held = 0
        self.most_held = LARGEST_AT_ONCE * settings.max_bytes

    async def read(self, scope: Scope, receive: Receive) -> Any:
        """The JSON document of a request; one that is too large or too slow is refused."""
        settings = self.settings
        self._check_head(scope)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(settings.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientGoneError
                    part = message.get("body", b"")
                    self._hold(scope, len(part))
                    parts.append(part)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise RefusedError(
                408,
                f"the request was not whole after {settings.read_seconds:g} s",
                reason="slow",
                headers={"Connection": "close"},
            ) from None
        return read_json(parts[0] if len(parts) == 1 else b"".join(parts))

    def release(self, scope: Scope) -> None:
        """The request is answered: it holds nothing any more."""
        self.held -= scope.pop(HELD, 0)

    def _check_head(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                if int(value) > self.settings.max_bytes:
                    raise self._too_large()
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise RefusedError(
                    415, "compressed bodies are not read here", where="Content-Encoding"
                )

    def _hold(self, scope: Scope, size: int) -> None:
        whole = scope[HELD] = scope.get(HELD, 0) + size
        self.held += size
        if whole > self.settings.max_bytes:
            raise self._too_large()
        if self.held > self.most_held:
            raise RefusedError(
                429,
                "too many large requests at once",
                fix="try again in 1 s",
                reason="bytes",
                headers={"Retry-After": "1", "Connection": "close"},
            )

    def _too_large(self) -> RefusedError:
        return RefusedError(
            413,
            f"the body is larger than {self.settings.max_bytes:,} bytes",
            fix="send several requests",
            reason="bytes",
            headers={"Connection": "close"},  # the rest of it is not read
        )
