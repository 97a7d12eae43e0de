"""The application: the form of requests, the routes, and the checks before them."""

import asyncio
import gc
import hmac
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
)
from pydantic_core import PydanticCustomError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.data.sources import check_text
from headstart.errors import HeadstartError, explain
from headstart.explain import occlude
from headstart.files import installed_version
from headstart.machine import choose_threads
from headstart.serve.batching import BatchQueue, size_of
from headstart.serve.metrics import Metrics
from headstart.serve.model import ServedModel
from headstart.serve.settings import NO_TELEMETRY, READ_SECONDS, ServeConfig, is_loopback

log = logging.getLogger("headstart.serve")

LARGEST_AT_ONCE = 64  # requests of the largest size
MOST_EXPLAINED = 50_000  # characters of a request; each text is copied up to 200 times
SWITCH_SECONDS = 0.0005  # the event loop and the model's threads take turns more often than usual
PATHS = ("/predict", "/health", "/info", "/metrics", "/openapi.json")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATUS = {
    "not-json": 400,
    "token": 401,
    "not-found": 404,
    "method": 405,
    "slow": 408,
    "too-large": 413,
    "content-type": 415,
    "invalid": 422,
    "busy": 429,
    "bug": 500,
    "stopping": 503,
    "deadline": 504,
}
CODES = {status: code for code, status in STATUS.items()}
CLOSE = {"Connection": "close"}  # the rest of the request is not read
HEADERS = {
    "token": {"WWW-Authenticate": "Bearer"},
    "busy": {"Retry-After": "1"},
    "slow": CLOSE,
    "too-large": CLOSE,
}


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
    explain: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="Also say which words moved the first label, and by how much."
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


def error_reply(error: HeadstartError, status: int | None = None) -> JSONResponse:
    """Convert an error to a response; its code decides the status."""
    content = {"error": error.what, "code": error.code, "where": error.where, "fix": error.fix}
    # Half of a surrogate pair can come back from the names in a request.
    plain = {
        name: text.encode("utf-8", "backslashreplace").decode()[:500]
        for name, text in content.items()
        if text is not None
    }
    status = status or STATUS.get(error.code, 422)
    return JSONResponse(plain, status, HEADERS.get(error.code))


class Service:
    """Answers requests within the limits of the config.

    Parameters
    ----------
    folder : of the run; `reload` opens it again.
    model : the run, opened.
    """

    def __init__(self, folder: Path, config: ServeConfig, model: ServedModel) -> None:
        self.folder = folder
        self.config = config
        self.metrics = Metrics()
        self.queue = self._start(model)

    @property
    def model(self) -> ServedModel:
        """The model that is asked now."""
        return self.queue.model

    def _start(self, model: ServedModel) -> BatchQueue:
        """Start the threads of a model: one per core of this worker's share.

        For small networks that is faster than one batch on all cores. An export to ONNX shares a
        batch out by itself.
        """
        share = max(1, choose_threads() // self.config.workers)
        own: int = getattr(model.run, "threads", 1)
        threads = max(1, (self.config.threads or share) // own)
        return BatchQueue(model, self.metrics, limit=self.config.queue, threads=threads)

    async def answer(self, request: Any) -> Any:
        """Answer a request of the form `request_form`: one input has one reply, a list a list."""
        parameters = request.parameters or Parameters()
        several = isinstance(request.inputs, list)
        inputs = request.inputs if several else [request.inputs]
        # The fields of a form are in the order of the model's.
        rows = [one if isinstance(one, str) else tuple(dict(one).values()) for one in inputs]
        try:
            async with asyncio.timeout(self.config.deadline):
                await self._check_limits(rows, explain=bool(parameters.explain))
                replies = await self._predict(rows, parameters)
        except TimeoutError:
            raise HeadstartError(
                f"there is no prediction after {self.config.deadline:g} s",
                fix="send fewer or shorter texts, or try again later",
                code="deadline",
            ) from None
        return replies if several else replies[0]

    async def _predict(self, rows: list[Any], parameters: Parameters) -> list[Any]:
        queue = self.queue  # a reload in between must not mix two models
        model = queue.model
        every_word = parameters.aggregation_strategy == "none"
        replies = []
        for row, found in zip(rows, await queue.submit(rows), strict=True):
            reply = model.reply(row, found, top_k=parameters.top_k, every_word=every_word)
            if parameters.explain:
                occlusion = occlude(row)
                without = await queue.submit(occlusion.without)
                reply[0]["explanation"] = model.explanation(occlusion, [found, *without])
            replies.append(reply)
        return replies

    async def _check_limits(self, rows: list[Any], *, explain: bool) -> None:
        if explain and not self.model.run.explains:
            raise HeadstartError(
                f"the task {self.model.task} has no classes of whole texts to explain",
                where="parameters.explain",
                fix="leave explain out",
            )
        size = sum(map(size_of, rows))
        if explain and size > MOST_EXPLAINED:
            raise HeadstartError(
                f"more than {MOST_EXPLAINED:,} characters to explain",
                where="parameters.explain",
                fix="send fewer or shorter texts",
            )
        if size * 4 <= self.config.max_tokens:  # a token is a quarter of a character at least
            return
        # In a thread: it takes a while, and other requests arrive meanwhile.
        tokens = await asyncio.to_thread(self.model.count_tokens, rows)
        if tokens > self.config.max_tokens:
            raise HeadstartError(
                f"{tokens:,} tokens; a request may have {self.config.max_tokens:,}",
                where="inputs",
                fix="send shorter texts, or several requests",
            )

    def reload(self) -> None:
        """Open the run again and serve it, if it is sound and has the same task."""
        try:
            model = ServedModel.open(self.folder, self.config.name)
            if model.task != self.model.task:
                raise HeadstartError(f"its task is {model.task}, and was {self.model.task}")
        except Exception as error:
            log.error("the newer run is rejected, the old one stays: %s", explain(error) or error)
            return
        before, self.queue = self.queue, self._start(model)
        log.info("the newer run is served: %s", model.name)
        time.sleep(self.config.deadline)  # until no request asks the old one
        before.close()
        _spare_collector()


def _spare_collector() -> None:
    """Exclude the objects of libraries and model from garbage collection.

    Looking through them took 170 of the 275 µs of a request outside the model.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def create_app(folder: Path, config: ServeConfig, model: ServedModel | None = None) -> FastAPI:
    """Make the application of a run, and start the threads of its model.

    Parameters
    ----------
    folder : the run, as `ServedModel.open` takes it.
    model : the same, if it is open already.
    """
    service = Service(folder, config, model or ServedModel.open(folder, config.name))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(SWITCH_SECONDS)
        _spare_collector()
        yield
        await asyncio.to_thread(service.queue.close)

    token = config.read_token()
    # The gate checks the token before the body is read; this describes it in the document.
    bearer = [] if token is None else [Security(HTTPBearer(auto_error=False))]
    app = FastAPI(
        title="headstart",
        version=installed_version(),
        description="Predictions of a text model, in the form of Hugging Face's pipelines.",
        lifespan=lifespan,
        dependencies=bearer,
        docs_url=None,  # Swagger UI loads its scripts from another server
        redoc_url=None,
        telemetry=NO_TELEMETRY,
    )
    app.state.service = service
    _add_routes(app, service)
    _add_error_handlers(app, service)
    app.add_middleware(Gate, service=service, token=token)
    if is_loopback(config.host):  # other names that lead here belong to pages of others
        hosts = ["127.0.0.1", "localhost", "::1", "[::1]", config.host]
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    form = request_form(service.model.task, service.config.max_texts)

    @app.post("/predict", responses=ERRORS)
    async def predict(body: form) -> JSONResponse:  # type: ignore[valid-type]
        """Predict: one input has one reply, a list has a list."""
        return JSONResponse(await service.answer(body))

    @app.post("/models/{name}", responses=ERRORS)
    async def predict_as_hosted(name: str, body: form) -> JSONResponse:  # type: ignore[valid-type]
        """Predict like Hugging Face's hosted service: labels of one text are in one more list."""
        if name != service.model.name:
            raise HeadstartError(
                "there is no model of this name", where="name", fix="see /info", code="not-found"
            )
        found = await service.answer(body)
        labels = isinstance(found, list) and found and "label" in found[0]
        return JSONResponse([found] if labels else found)

    @app.get("/health", responses={503: {"model": ErrorReply}})
    async def health() -> dict[str, str]:
        """Whether requests are answered."""
        if not service.queue.alive:
            raise HeadstartError("the model is not ready", fix="try again", code="stopping")
        return {"status": "ok", "model": service.model.name}

    @app.get("/info")
    async def info() -> dict[str, Any]:
        """The model: task, labels, form of its inputs; and the limits of a request."""
        names = ("max_bytes", "max_texts", "max_tokens", "queue", "deadline")
        limits = {name: getattr(service.config, name) for name in names}
        return {**service.model.facts(), "limits": limits, "headstart": installed_version()}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        return Response(service.metrics.page(), media_type=METRICS_TYPE)


def _add_error_handlers(app: FastAPI, service: Service) -> None:
    fields = service.model.fields
    sample: Any = "…" if len(fields) == 1 else dict.fromkeys(fields, "…")
    fix = "send " + json.dumps({"inputs": sample}, ensure_ascii=False)

    @app.exception_handler(HeadstartError)
    async def known(request: Request, error: HeadstartError) -> Response:
        return error_reply(error)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        code = CODES.get(error.status_code, "invalid")
        return error_reply(HeadstartError(str(error.detail), code=code), error.status_code)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            place = f"character {first['loc'][1]}"
            what = HeadstartError("the body is not JSON", where=place, fix=fix, code="not-json")
        else:
            what = HeadstartError(str(first["msg"]), where=_place(first["loc"]), fix=fix)
        return error_reply(what)


def _place(parts: tuple[str | int, ...]) -> str | None:
    """Name a place as a person would: `inputs[3].text`."""
    named = [one for one in parts if one not in ("body", "one", "several")]
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in named)
    return text.removeprefix(".") or None


def _counted_path(path: str) -> str:
    """Name the route of a path in the metrics; clients must not add names of their own."""
    if path.startswith("/models/"):
        return "/models/{name}"
    return path if path in PATHS else "other"


class Gate:
    """Checks the token, the head and the body of a request before FastAPI sees it, and counts it.

    Parameters
    ----------
    app : what is behind the gate.
    token : what clients must send as `Authorization: Bearer …`; `/health` needs none.
    """

    def __init__(self, app: ASGIApp, service: Service, token: str | None) -> None:
        self.app = app
        self.metrics = service.metrics
        self.max_bytes = service.config.max_bytes
        self.token = token
        self.held = 0  # bytes of all requests that are not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        body = bytearray()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        async def replayed() -> Message:
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        try:
            headers = Headers(scope=scope)
            self._check_token(scope["path"], headers)
            if scope["method"] == "POST":
                self._check_head(headers)
                await self._read(receive, body)
            await self.app(scope, replayed, watched)
        except HeadstartError as error:
            await error_reply(error)(scope, receive, watched)
        except ClientDisconnect:
            status = 499  # nobody is there to be told; the number is that of nginx
        except Exception:
            log.exception("a request failed")
            if not status:
                bug = HeadstartError("the server failed; its log says why", code="bug")
                await error_reply(bug)(scope, receive, watched)
        finally:
            self.held -= len(body)
            path = _counted_path(scope["path"])
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)

    def _check_token(self, path: str, headers: Headers) -> None:
        """Compare in constant time, so that the delay says nothing about the token."""
        if self.token is None or path == "/health":
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.encode(), self.token.encode())
        if not right or scheme.lower() != "bearer":
            raise HeadstartError(
                "the token is wrong" if given else "a token is required",
                where="Authorization",
                fix="send the header Authorization: Bearer TOKEN",
                code="token",
            )

    def _check_head(self, headers: Headers) -> None:
        """Reject what a page of another site could send without asking, and what is too large."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HeadstartError(
                "the body is not declared as JSON",
                where="Content-Type",
                fix="send the header Content-Type: application/json",
                code="content-type",
            )
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise HeadstartError(
                "compressed bodies are not read",
                where="Content-Encoding",
                fix="send the body as it is",
                code="content-type",
            )
        self._check_size(int(headers.get("content-length", 0)))

    def _check_size(self, size: int) -> None:
        if size > self.max_bytes:
            raise HeadstartError(
                f"the body is larger than {self.max_bytes:,} bytes",
                fix="send several requests",
                code="too-large",
            )

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """Read a body; its size, its time and the bytes of all requests together are limited."""
        more = True
        try:
            async with asyncio.timeout(READ_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    part = message.get("body", b"")
                    body += part
                    self.held += len(part)
                    self._check_size(len(body))
                    if self.held > LARGEST_AT_ONCE * self.max_bytes:
                        raise HeadstartError(
                            "too many large requests", fix="try again in a second", code="busy"
                        )
                    more = message.get("more_body", False)
        except TimeoutError:
            raise HeadstartError(
                f"the body did not arrive within {READ_SECONDS:g} s",
                fix="send it faster",
                code="slow",
            ) from None
