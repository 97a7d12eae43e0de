"""A request's body: read within the limits of size and time, whoever sends it."""

import asyncio
from typing import Any

from starlette.types import Receive, Scope

from headstart.serve.replies import RefusedError, read_json
from headstart.serve.settings import ServeSettings


class ClientGoneError(Exception):
    """The client has left before its request was whole."""


async def read_body(scope: Scope, receive: Receive, settings: ServeSettings) -> Any:
    """The JSON document of a request; one that is too large or too slow is refused."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > settings.max_bytes:
            raise _too_large(settings)
        if name == b"content-encoding" and value.lower() != b"identity":
            raise RefusedError(415, "compressed bodies are not read here", where="Content-Encoding")
        if name == b"inference-header-content-length":
            raise RefusedError(
                415, "binary tensors are not read here: send JSON", where=name.decode()
            )
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.read_seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientGoneError
                part = message.get("body", b"")
                size += len(part)
                if size > settings.max_bytes:
                    raise _too_large(settings)
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


def _too_large(settings: ServeSettings) -> RefusedError:
    return RefusedError(
        413,
        f"the body is larger than {settings.max_bytes:,} bytes",
        fix="send several requests",
        reason="bytes",
        headers={"Connection": "close"},  # the rest of it is not read
    )
