"""The application: the form of requests and the routes."""

import asyncio
import gc
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, create_model
from pydantic_core import PydanticCustomError
from starlette.middleware.trustedhost import TrustedHostMiddleware

from headstart.data.sources import check_text
from headstart.errors import HeadstartError
from headstart.files import installed_version
from headstart.machine import choose_threads
from headstart.run import Run
from headstart.serve.batching import BatchQueue
from headstart.serve.http import (
    STATUS,
    GuardedRoute,
    Handler,
    error_reply,
    handle_errors,
    known_error,
)
from headstart.serve.metrics import REQUESTS, SECONDS, metrics_page
from headstart.serve.model import describe, reply
from headstart.serve.settings import NO_TELEMETRY, ServeConfig, is_loopback

log = logging.getLogger("headstart.serve")

SWITCH_SECONDS = 0.0005  # the event loop and the model's threads take turns more often than usual


def _check_text(text: str) -> str:
    try:
        return check_text(text)
    except HeadstartError as error:
        raise PydanticCustomError("text", "{what}", {"what": error.what}) from None


Text = Annotated[str, AfterValidator(_check_text), Field(min_length=1, examples=["a fine film"])]


class Form(BaseModel):
    """An object without other fields than its own."""

    model_config = ConfigDict(extra="forbid")


class PairInput(Form):
    """Two texts, for the task pairs."""

    text: Text
    text_pair: Text


class QuestionInput(Form):
    """A question about a text, for the task spans."""

    question: Text
    context: Text


class Parameters(Form):
    """How the response should look."""

    top_k: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None, description="Only the most probable labels; by default all of them."
    )
    aggregation_strategy: Literal["simple", "none"] | None = Field(
        default=None, description="Of tags: entities (simple), or every word with its tag (none)."
    )


class ErrorReply(BaseModel):
    """Why there is no prediction; `code` is for programs, the rest for people."""

    error: str
    code: str
    where: str | None = None
    fix: str | None = None


INPUT_FORMS: dict[str, Any] = {"pairs": PairInput, "spans": QuestionInput}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": code} for code, status in STATUS.items()
}


def request_form(task: str, max_texts: int) -> type[Form]:
    """Make the request model of a task: one input, or a list of at most `max_texts`."""
    one: Any = INPUT_FORMS.get(task, Text)
    several: Any = list[one]
    inputs = Annotated[
        Annotated[one, Tag("one")]
        | Annotated[several, Field(max_length=max_texts, fail_fast=True), Tag("several")],
        Discriminator(lambda given: "several" if isinstance(given, list) else "one"),
    ]
    return create_model(
        "PredictRequest",
        __base__=Form,
        inputs=(inputs, ...),
        parameters=(Parameters | None, None),
        options=(dict[str, Any] | None, Field(None, description="Accepted and not used.")),
    )


class CountedRoute(GuardedRoute):
    """A guarded route that counts and times its requests, including failed ones."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def counted(request: Request) -> Response:
            start = time.perf_counter()
            try:
                response = await handle(request)
            except Exception as error:
                known = known_error(error)
                if known.code == "bug":
                    log.exception("a request failed")
                known.fix = known.fix or request.app.state.hint
                response = error_reply(known)
            REQUESTS.labels(self.path, response.status_code).inc()
            SECONDS.labels(self.path).observe(time.perf_counter() - start)
            return response

        return counted


def create_app(run: Run, config: ServeConfig) -> FastAPI:
    """Make the application of a run, and start the threads that predict."""
    # One per core of this worker: for small networks faster than one batch on all cores.
    threads = config.threads or max(1, choose_threads() // config.workers)
    queue = BatchQueue(run.predict, limit=config.queue, threads=threads)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(SWITCH_SECONDS)
        # Looking through the objects of libraries and model for garbage took 170 of the 275 µs of
        # a request outside the model.
        gc.collect()
        gc.freeze()
        yield
        await asyncio.to_thread(queue.close)

    app = FastAPI(
        title="headstart",
        version=installed_version(),
        description="Predictions of a text model, in the format of Hugging Face's pipelines.",
        lifespan=lifespan,
        openapi_url=None,  # a route of ours, which needs the token
        telemetry=NO_TELEMETRY,
    )
    inputs = describe(run)["inputs"]
    sample = "…" if len(inputs) == 1 else dict.fromkeys(inputs, "…")
    app.state.hint = "send " + json.dumps({"inputs": sample}, ensure_ascii=False)
    app.state.queue = queue
    app.state.token = config.read_token()
    app.state.max_bytes = config.max_bytes
    app.state.held = 0
    handle_errors(app, lambda error: error_reply(known_error(error)))
    _add_routes(app, run, config)
    if is_loopback(config.host):  # other names that lead here belong to pages of others
        app.add_middleware(
            TrustedHostMiddleware,
            allowed_hosts=["127.0.0.1", "localhost", "::1", "[::1]", config.host],
            www_redirect=False,
        )
    return app


def _add_routes(app: FastAPI, run: Run, config: ServeConfig) -> None:
    queue: BatchQueue = app.state.queue
    form = request_form(describe(run)["task"], config.max_texts)

    @app.get("/health", responses={503: {"model": ErrorReply}})
    async def health() -> dict[str, str]:
        """Whether requests are answered; this needs no token."""
        if not queue.alive:
            raise HeadstartError("the model is not ready", fix="try again", code="stopping")
        return {"status": "ok"}

    app.router.route_class = CountedRoute

    @app.post("/predict", responses=ERRORS)
    async def predict(body: form) -> JSONResponse:  # type: ignore[valid-type]
        """Predict: one input has one reply, a list has a list."""
        return JSONResponse(await _answer(run, queue, body, config.deadline))

    @app.post("/models/{name}", responses=ERRORS)
    async def predict_as_hosted(name: str, body: form) -> JSONResponse:  # type: ignore[valid-type]
        """Predict like Hugging Face's hosted service: labels of one text are in one more list."""
        found = await _answer(run, queue, body, config.deadline)
        labels = isinstance(found, list) and found and "label" in found[0]
        return JSONResponse([found] if labels else found)

    @app.get("/info")
    async def info() -> dict[str, Any]:
        """The model: task, labels, form of its inputs; and the limits of a request."""
        limits = {k: getattr(config, k) for k in ("max_bytes", "max_texts", "queue", "deadline")}
        return {**describe(run), "limits": limits, "headstart": installed_version()}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        return Response(metrics_page(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, Any]:
        return app.openapi()


async def _answer(run: Run, queue: BatchQueue, request: Any, deadline: float) -> Any:
    """Answer a request of the form `request_form`: one input has one reply, a list a list."""
    parameters = request.parameters or Parameters()
    several = isinstance(request.inputs, list)
    # The fields of a form are in the order of the model's.
    rows = [
        one if isinstance(one, str) else tuple(dict(one).values())
        for one in (request.inputs if several else [request.inputs])
    ]
    try:
        async with asyncio.timeout(deadline):
            found = await queue.submit(rows)
    except TimeoutError:
        raise HeadstartError(
            f"there is no prediction after {deadline:g} s",
            fix="send fewer or shorter texts, or try again later",
            code="deadline",
        ) from None
    replies = [
        reply(
            run,
            row,
            one,
            top_k=parameters.top_k,
            every_word=parameters.aggregation_strategy == "none",
        )
        for row, one in zip(rows, found, strict=True)
    ]
    return replies if several else replies[0]
