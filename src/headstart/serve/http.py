"""What the server and the web app share: errors as JSON, the token, and the limits of a body."""

import asyncio
import hmac
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headstart.errors import HeadstartError
from headstart.serve.settings import READ_SECONDS

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

LARGEST_AT_ONCE = 64  # requests of the largest size
STATUS = {
    "not-json": 400,
    "token": 401,
    "not-found": 404,
    "unknown-study": 404,
    "method": 405,
    "slow": 408,
    "conflict": 409,
    "too-large": 413,
    "content-type": 415,
    "invalid": 422,
    "busy": 429,
    "gone": 499,  # the number is nginx's
    "bug": 500,
    "stopping": 503,
    "deadline": 504,
}
CLOSE = {"Connection": "close"}  # the rest of the request is not read
HEADERS = {
    "token": {"WWW-Authenticate": "Bearer"},
    "busy": {"Retry-After": "1"},
    "slow": CLOSE,
    "too-large": CLOSE,
}


def known_error(error: Exception) -> HeadstartError:
    """Convert what FastAPI, Starlette or we raised; what is not known is a bug."""
    if isinstance(error, HeadstartError):
        return error
    if isinstance(error, HTTPException):
        code = {404: "not-found", 405: "method"}.get(error.status_code, "not-json")
        return HeadstartError(str(error.detail), code=code)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return HeadstartError(
                "the body is not JSON", where=f"character {first['loc'][1]}", code="not-json"
            )
        if isinstance(error.body, bytes):  # FastAPI does not parse what may come from another site
            return HeadstartError(
                "the body is not declared as JSON",
                where="Content-Type",
                fix="send the header Content-Type: application/json",
                code="content-type",
            )
        # The place as a person would name it: `inputs[3].text`.
        named = [one for one in first["loc"] if one not in ("body", "one", "several")]
        place = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in named)
        return HeadstartError(str(first["msg"]), where=place.removeprefix(".") or None)
    if isinstance(error, ClientDisconnect):
        return HeadstartError("the client closed the connection", code="gone")
    return HeadstartError("the server failed; its log says why", code="bug")


def error_reply(error: HeadstartError) -> JSONResponse:
    """Convert an error to a response; its code decides the status."""
    content = {"error": error.what, "code": error.code, "where": error.where, "fix": error.fix}
    # Half of a surrogate pair can come back from the names in a request.
    plain = {
        name: text.encode("utf-8", "backslashreplace").decode()[:500]
        for name, text in content.items()
        if text is not None
    }
    return JSONResponse(plain, STATUS.get(error.code, 422), HEADERS.get(error.code))


def handle_errors(app: FastAPI, reply: Callable[[Exception], Response]) -> None:
    """Answer every error with `reply`; a bug is also logged by uvicorn, with its traceback."""

    async def handle(request: Request, error: Exception) -> Response:
        return reply(error)

    for kind in (HeadstartError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, handle)


class GuardedRoute(APIRoute):
    """A route that checks the token, then the size and time of the body, before FastAPI reads it.

    The application's state has `token` (`None`: no token is required), `max_bytes` of a body, and
    `held`, the bytes of the bodies of all requests that are not answered yet. A route without a
    declared body, such as an upload, reads it directly.
    """

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            state = request.app.state
            if state.token is not None:
                check_token(request, state.token)
            if self.body_field is None:
                return await handle(request)
            limited = LimitedRequest(request.scope, request.receive)
            try:
                await limited.body()  # which FastAPI finds there
                return await handle(limited)
            finally:
                state.held -= limited.size

        return guarded


def check_token(request: Request, token: str) -> None:
    """Compare in constant time, so that the delay says nothing about the token."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if not hmac.compare_digest(given.encode(), token.encode()) or scheme.lower() != "bearer":
        raise HeadstartError(
            "the token is wrong" if given else "a token is required",
            where="Authorization",
            fix="send the header Authorization: Bearer TOKEN",
            code="token",
        )


class LimitedRequest(Request):
    """A request whose body is limited in size and time, and with all others in memory."""

    size = 0  # bytes that were read

    async def stream(self) -> Any:
        """Yield the parts of the body."""
        state = self.app.state
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for part in super().stream():
                    self.size += len(part)
                    state.held += len(part)
                    if self.size > state.max_bytes:
                        raise too_large(state.max_bytes)
                    if state.held > LARGEST_AT_ONCE * state.max_bytes:
                        raise HeadstartError(
                            "too many large requests", fix="try again in a second", code="busy"
                        )
                    yield part
        except TimeoutError:
            raise HeadstartError(
                f"the body did not arrive within {READ_SECONDS:g} s",
                fix="send it faster",
                code="slow",
            ) from None


def too_large(most: int, where: str | None = None) -> HeadstartError:
    """Make the error of a request or a file that is longer than `most` bytes."""
    return HeadstartError(
        f"the request or file is larger than {most:,} bytes",
        where=where,
        fix="send fewer texts at once, or a smaller file",
        code="too-large",
    )
