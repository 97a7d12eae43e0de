"""The app's server: the page and its files, access control, size limits, and errors as JSON.

Every page in the user's browser and every user of the machine can send requests to a local server.
So the Host must be the loopback address (a foreign name that points to it is rejected), and every
request below /api must send the secret of this launch as a header, which no other page can know and
no browser adds automatically.
"""

import secrets
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header
from fastapi.responses import HTMLResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from headstart.errors import HeadstartError, explain
from headstart.files import installed_version
from headstart.serve.http import error_reply, handle_errors, known_error
from headstart.serve.settings import NO_TELEMETRY
from headstart.study.report.build import arm_style
from headstart.webapp.routes import api, page_error
from headstart.webapp.studies import Studies

MOST_JSON = 125_000  # bytes of a request that is not an upload
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
]


def make_app(folder: Path, *, upload_mb: int = 1_000, extra: Sequence[str] = ()) -> FastAPI:
    """Make the app of a folder, with a new `token`; `extra` are options for every study."""
    app = FastAPI(openapi_url=None, telemetry=NO_TELEMETRY)
    app.state.studies, app.state.extra = Studies(folder), extra
    app.state.token = secrets.token_urlsafe(24)
    # Each can be exchanged for the token once: other users can read a browser's command line.
    app.state.tickets = set[str]()
    app.state.max_bytes, app.state.held = MOST_JSON, 0
    app.state.most_upload = upload_mb * 1_000_000
    handle_errors(app, _reply)
    app.include_router(api)
    app.mount("/static", StaticFiles(packages=[(__package__, "static")]))
    _add_pages(app, upload_mb)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return app


def make_config(app: FastAPI) -> uvicorn.Config:
    """Return uvicorn's settings for the app; its headers are those of every response."""
    return uvicorn.Config(
        app, headers=HEADERS, log_level="warning", access_log=False, timeout_graceful_shutdown=5
    )


def _reply(error: Exception) -> Response:
    known = known_error(explain(error) or error)
    return error_reply(HeadstartError(**page_error(known.document())))


def _add_pages(app: FastAPI, upload_mb: int) -> None:
    shell = files(__package__).joinpath("static", "index.html").read_text(encoding="utf-8")
    shell = shell.replace("{version}", installed_version()).replace("{upload_mb}", str(upload_mb))
    report = files("headstart.study.report")
    style = report.joinpath("style.css").read_text(encoding="utf-8") + arm_style()
    script = report.joinpath("script.js").read_text(encoding="utf-8")

    @app.get("/")
    @app.get("/study/{study_id}")
    def page() -> HTMLResponse:
        return HTMLResponse(shell)

    @app.get("/report.css")
    def report_style() -> Response:
        return Response(style, media_type="text/css")

    @app.get("/report.js")
    def report_script() -> Response:
        return Response(script, media_type="text/javascript")

    @app.post("/session")
    async def session(ticket: Annotated[str, Header(alias="x-headstart-ticket")]) -> dict[str, str]:
        if ticket not in app.state.tickets:
            raise HeadstartError("this address works only once and was used already", code="token")
        app.state.tickets.remove(ticket)
        return {"token": app.state.token}
