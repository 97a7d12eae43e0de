"""The OpenAPI document, and requests made up from it."""

import pytest

from headstart.serve.app import create_app
from headstart.serve.model import open_model
from headstart.serve.settings import ServeConfig
from tests.serve.served import ADDRESS

schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
PATHS = ("/predict", "/models/{name}", "/info", "/health")


def test_the_document_describes_every_route_and_its_refusals(client):
    document = client.get("/openapi.json").json()
    assert set(PATHS) <= set(document["paths"])
    assert {"200", "413", "422", "429"} <= set(document["paths"]["/predict"]["post"]["responses"])
    body = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["$ref"].rpartition("/")[2] in document["components"]["schemas"]


@pytest.fixture(scope="module")
def app(classifier):
    """The routes and a running queue, as the server has them."""
    routes = create_app(open_model(classifier), ServeConfig(max_bytes=100_000))

    async def without_lifespan(scope, receive, send):
        if scope["type"] != "lifespan":  # it would be started with every request
            host = (b"host", ADDRESS.removeprefix("http://").encode())
            headers = [one for one in scope["headers"] if one[0] != b"host"]
            await routes({**scope, "headers": [host, *headers]}, receive, send)
            return
        for phase in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{phase}.complete"})

    yield without_lifespan
    routes.state.queue.close()


def test_requests_made_up_from_the_document_have_no_server_error(app):
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    modes = schemathesis.GenerationMode

    for found in schema.get_all_operations():
        operation = found.ok()
        ask(operation, modes.POSITIVE)
        if operation.method == "post":
            ask(operation, modes.NEGATIVE)


def ask(operation, mode):
    strategy = operation.as_strategy(generation_mode=mode)
    count = 8 if operation.method == "post" else 1

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def one(case):
        case.call_and_validate(checks=CHECKS)

    one()
