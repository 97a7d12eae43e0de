"""The app's server: the page and its files, who may ask, how much, and errors as documents.

A local server is within reach of every page in the user's browser and of every user of the machine.
So the Host must be the loopback address (a foreign name that points to it is rejected), and every
request below /api must send the secret of this launch as a header, which no other page can know and
no browser adds by itself.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.errors import HeadstartError, explain
from headstart.files import installed_version
from headstart.serve.settings import NO_TELEMETRY
from headstart.study.report.build import arm_style
from headstart.webapp.routes import make_routes, page_error
from headstart.webapp.studies import MEGABYTE, SMALLER_FILE, Studies, too_large

KEY = "x-headstart-key"
MOST_JSON = 125_000  # bytes of a request that is not an upload
UPLOADS = re.compile(
    r"POST /api/studies|PUT /api/studies/\w+/corpus|POST /api/studies/\w+/predictions"
)
STATUS = {"unknown-study": 404, "conflict": 409, "too-large": 413, "key": 403}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Keys:
    """The secret of one launch, and tickets that can be exchanged for it once."""

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(24)
        self._tickets: set[str] = set()

    def ticket(self) -> str:
        """Make a ticket for a browser's command line, which other users can read."""
        made = secrets.token_urlsafe(24)
        self._tickets.add(made)
        return made

    def exchange(self, ticket: str) -> str:
        """Return the key for a ticket, which is worthless afterwards."""
        if ticket not in self._tickets:
            raise wrong_key()
        self._tickets.remove(ticket)
        return self.key


def wrong_key() -> HeadstartError:
    """Return the error of a request without the key of this launch."""
    return HeadstartError(
        "this page does not have the key of the app",
        fix="open the address that the app printed when it was started the last time",
        code="key",
    )


class Guard:
    """Check the key, limit the size of a request by its route, and add headers."""

    def __init__(self, app: ASGIApp, *, keys: Keys, most_bytes: int) -> None:
        self.app, self.keys, self.most_bytes = app, keys, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(KEY.encode(), b"")
        upload = UPLOADS.fullmatch(f"{scope['method']} {scope['path']}")
        most = self.most_bytes if upload else MOST_JSON
        fix = SMALLER_FILE if upload else "send less text"
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                found: Any = too_large(most, fix=fix).document()
                raise HTTPException(413, found)
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        app = self.app
        if scope["path"].startswith("/api") and not hmac.compare_digest(
            given, self.keys.key.encode()
        ):
            app = _reply(wrong_key())
        await app(scope, bounded, with_headers)


def make_app(folder: Path, *, upload_mb: int = 1_000, extra: Sequence[str] = ()) -> FastAPI:
    """Make the app of a folder.

    Parameters
    ----------
    folder : where uploads and studies are saved.
    upload_mb : the largest file.
    extra : options of `headstart compare` for every study.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, telemetry=NO_TELEMETRY)
    studies, keys, most_bytes = Studies(folder), Keys(), upload_mb * MEGABYTE
    app.state.studies, app.state.keys = studies, keys
    app.include_router(make_routes(studies, most_bytes=most_bytes, extra=extra))
    app.mount("/static", StaticFiles(packages=[(__package__, "static")]))
    _add_pages(app, upload_mb)
    _add_errors(app)
    app.add_middleware(Guard, keys=keys, most_bytes=most_bytes)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return app


def _add_pages(app: FastAPI, upload_mb: int) -> None:
    shell = files(__package__).joinpath("static", "index.html").read_text(encoding="utf-8")
    shell = shell.replace("{version}", installed_version()).replace("{upload_mb}", str(upload_mb))
    report = files("headstart.study.report")
    style = report.joinpath("style.css").read_text(encoding="utf-8") + arm_style()
    script = report.joinpath("script.js").read_text(encoding="utf-8")

    @app.get("/")
    @app.get("/study/{study_id}")
    @app.get("/compare")
    def page() -> HTMLResponse:
        return HTMLResponse(shell)

    @app.get("/report.css")
    def report_style() -> Response:
        return Response(style, media_type="text/css")

    @app.get("/report.js")
    def report_script() -> Response:
        return Response(script, media_type="text/javascript")

    @app.post("/session")
    def session(ticket: Annotated[str, Header(alias=KEY)]) -> dict[str, str]:
        return {"key": app.state.keys.exchange(ticket)}


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HeadstartError)
    def user_error(request: Request, error: HeadstartError) -> Response:
        return _reply(error)

    @app.exception_handler(RequestValidationError)
    def wrong_request(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        return _reply(HeadstartError(str(first["msg"]), where=place or None))

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> Response:
        detail: Any = error.detail  # a document of ours, or a sentence of the framework's
        found = detail if isinstance(detail, dict) else {"what": detail}
        return _reply(HeadstartError(**{"code": "http", **found}), error.status_code)

    @app.exception_handler(Exception)
    def our_error(request: Request, error: Exception) -> Response:
        ours = HeadstartError("something went wrong in the app itself", fix="try it again")
        return _reply(explain(error) or ours, 500)


def _reply(error: HeadstartError, status: int | None = None) -> Response:
    document = page_error(error.document())
    return JSONResponse({"error": document}, status_code=status or STATUS.get(error.code, 422))
