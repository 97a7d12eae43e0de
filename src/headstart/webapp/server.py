"""The app's server: the page, its files, and errors as the page shows them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from headstart.errors import HeadstartError, explain
from headstart.files import installed_version
from headstart.serve.settings import NO_TELEMETRY
from headstart.studies.report.svg import arm_style
from headstart.webapp.api import UPLOAD_MB, Services, make_api
from headstart.webapp.guard import PageGuard, csrf_token
from headstart.webapp.study_document import plain_error
from headstart.webapp.study_process import StudyConflictError
from headstart.webapp.uploads import TooLargeError
from headstart.webapp.workspace import UnknownStudyError, Workspace

STATUS: dict[type, int] = {UnknownStudyError: 404, StudyConflictError: 409, TooLargeError: 413}
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
REPORT_FILES = ("style.css", "hover.js")  # the report's own look and its values under the pointer
OURS = {"what": "something went wrong in the app itself", "where": None, "fix": "try it again"}


def make_app(
    folder: Path, *, port: int, extra: Sequence[str] = (), upload_mb: int = UPLOAD_MB
) -> FastAPI:
    """The app of a folder.

    Parameters
    ----------
    folder : where uploads and studies are kept.
    port : where it will be reached; requests to other addresses are refused.
    extra : options of `headstart compare` for every study.
    upload_mb : the largest file.
    """
    services = Services(Workspace(folder), tuple(extra), upload_mb)
    key = services.workspace.key()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        services.jobs.stop_all()  # a study goes on: it is a process of its own

    app = FastAPI(
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
    )
    app.state.services = services
    app.include_router(make_api(services))
    _add_pages(app, csrf_token(key))
    _add_errors(app, services)
    app.add_middleware(PageGuard, key=key, port=port, once=services.once)
    return app


def _add_pages(app: FastAPI, token: str) -> None:
    shell = static_text("index.html")
    shell = shell.replace("{token}", escape(token)).replace("{version}", installed_version())

    @app.get("/")
    @app.get("/study/{study_id}")
    @app.get("/compare")
    def page() -> HTMLResponse:
        return HTMLResponse(shell, headers={"cache-control": "no-store"})

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        kind = TYPES.get(Path(name).suffix)
        if kind is None or name not in _static_names():
            return PlainTextResponse("not found", status_code=404)
        return Response(static_text(name), media_type=kind)


def _static_names() -> set[str]:
    own = {file.name for file in files(__package__).joinpath("static").iterdir()}
    return own | {f"report-{name}" for name in REPORT_FILES}


def static_text(name: str) -> str:
    """A file of the page; those of the report are the report's own."""
    if name.removeprefix("report-") in REPORT_FILES and name.startswith("report-"):
        part = name.removeprefix("report-")
        text = files("headstart.studies.report").joinpath(part).read_text(encoding="utf-8")
        return text + arm_style() if part == "style.css" else text
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def _add_errors(app: FastAPI, services: Services) -> None:
    def told(request: Request, error: HeadstartError, status: int) -> JSONResponse:
        document = error.document()
        try:
            study = services.workspace.find(request.path_params.get("study_id", ""))
        except HeadstartError:
            return JSONResponse({"error": document}, status_code=status)
        return JSONResponse({"error": plain_error(study, document)}, status_code=status)

    @app.exception_handler(HeadstartError)
    def user_error(request: Request, error: HeadstartError) -> JSONResponse:
        return told(request, error, STATUS.get(type(error), 422))

    @app.exception_handler(RequestValidationError)
    def wrong_request(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        what = f"{place}: {first['msg']}" if place else str(first["msg"])
        return told(request, HeadstartError(what), 422)

    @app.exception_handler(Exception)
    def our_error(request: Request, error: Exception) -> JSONResponse:
        known = explain(error)
        if known is not None:
            return told(request, known, 500)
        return JSONResponse({"error": OURS}, status_code=500)
