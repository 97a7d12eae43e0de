"""The routes: Hugging Face's form, and what operators look at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope

from headstart.files import installed_version
from headstart.serve import huggingface
from headstart.serve.guard import Guard
from headstart.serve.metrics import CONTENT_TYPE
from headstart.serve.openapi import docs_page, openapi_document
from headstart.serve.replies import RefusedError, json_response
from headstart.serve.schemas import Health, Refusal
from headstart.serve.service import Service
from headstart.serve.settings import NO_TELEMETRY

PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The body is no JSON."},
    401: {"model": Refusal, "description": "The token is missing or wrong."},
    404: {"model": Refusal, "description": "There is nothing of this name."},
    408: {"model": Refusal, "description": "The request came too slowly."},
    413: {"model": Refusal, "description": "The body is too large."},
    415: {"model": Refusal, "description": "The body is compressed or binary."},
    422: {"model": Refusal, "description": "A value is not what it should be; where says which."},
    429: {"model": Refusal, "description": "Too many wait; Retry-After says for how long."},
    503: {"model": Refusal, "description": "The server stops."},
    504: {"model": Refusal, "description": "The deadline has passed."},
}
STATES: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "Not ready."}}


def create_app(service: Service) -> Guard:
    """The ASGI application; its lifespan runs the model's thread."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        service.stopping = True
        service.batcher.close()

    app = FastAPI(
        lifespan=lifespan,
        docs_url=None,  # Swagger UI loads its scripts from elsewhere; `/docs` is a page of ours
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
    )
    _add_predictions(app, service)
    _add_operations(app, service)

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        return RefusedError(error.status_code, str(error.detail), headers=headers).response()

    @app.exception_handler(RefusedError)
    async def refuse(request: Request, refused: RefusedError) -> Response:
        service.metrics.refused.labels(refused.reason).inc()
        return refused.response()

    return Guard(app, service, {("POST", "/predict"): partial(_predict, service)})


async def _predict(service: Service, scope: Scope, receive: Receive) -> Response:
    content = await service.bodies.read(scope, receive)
    return json_response(await huggingface.answer(service, content))


def _add_predictions(app: FastAPI, service: Service) -> None:
    @app.post("/predict", operation_id="predict", responses=REFUSALS)
    async def predict(request: Request) -> Response:
        """Predict, in Hugging Face's form; of one input one answer, of a list a list."""
        return await _predict(service, request.scope, request.receive)

    @app.post("/models/{name}", operation_id="models", responses=REFUSALS)
    async def models(request: Request, name: str) -> Response:
        """The same as their hosted service answers it: of one text a list with its labels in it."""
        _check_name(service, name)
        content = await service.bodies.read(request.scope, request.receive)
        found = await huggingface.answer(service, content)
        labels = isinstance(found, list) and bool(found) and "label" in found[0]
        return json_response([found] if labels else found)


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/health", operation_id="health", responses={200: {"model": Health}, **STATES})
    async def health() -> Response:
        """Whether requests are answered."""
        return _health(service)

    @app.get("/info", operation_id="info")
    async def info() -> Response:
        """The model: task, labels, the form of its inputs; and the limits of a request."""
        settings = service.settings
        limits = {name: getattr(settings, name) for name in ("max_bytes", "max_texts")}
        limits |= {"max_tokens": settings.max_tokens, "queue": settings.queue}
        return json_response(
            {
                **service.model.facts(),
                "parameters": list(huggingface.PARAMETERS),
                "limits": {**limits, "deadline": settings.deadline},
                "headstart": installed_version(),
            }
        )

    @app.get("/metrics", operation_id="metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    def document() -> dict[str, Any]:
        token = service.settings.token is not None
        return openapi_document(app, service.model, token=token)

    app.openapi = document  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """This description, for machines."""
        return json_response(document())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        """This description, for people."""
        page = docs_page(document(), service.model)
        return HTMLResponse(page, headers={"Content-Security-Policy": PAGE_POLICY})


def _health(service: Service) -> Response:
    ready = service.ready
    content = {"status": "ok" if ready else "stopping", "model": service.model.name}
    return json_response(content, 200 if ready else 503)


def _check_name(service: Service, name: str) -> None:
    if name != service.model.name:
        raise RefusedError(404, f"there is no such model; there is {service.model.name}")
