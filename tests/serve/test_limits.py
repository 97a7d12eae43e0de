"""Limits and errors: bytes, texts, queue, deadline and token; errors contain no internals."""

import json
import threading
import time

import pytest

from headstart.errors import HeadstartError
from headstart.serve import http
from headstart.serve.app import create_app
from headstart.serve.model import open_model
from headstart.serve.settings import ServeConfig
from tests.serve.served import FakeModel, client_of, served

JSON = {"Content-Type": "application/json"}

BAD_BODIES = [
    b"",
    b"{",
    b"[" * 100_000,
    b"\xff\xfe\x00",
    b'{"inputs": ' + b"9" * 5_000 + b"}",
    b'{"inputs": NaN}',
    b"[]",
    b"{}",
    b'{"inputs": [["a"]]}',
    b'{"inputs": "a", "parameters": []}',
    b'{"inputs": "a", "parameters": {"top_k": true}}',
    b'{"inputs": "a", "surprise": 1}',
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: repr(body[:30]))
def test_a_bad_body_is_one_json_error_about_the_request(client, body):
    reply = client.post("/predict", content=body, headers=JSON)
    found = reply.json()
    assert (reply.status_code, found["code"]) in [(400, "not-json"), (422, "invalid")]
    assert found["error"]


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_a_body_that_a_page_of_another_site_could_send_is_415(client, kind):
    """Browsers send these without asking the server first; JSON they do not."""
    headers = {} if kind is None else {"Content-Type": kind}
    reply = client.post("/predict", content=b'{"inputs": "a"}', headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (415, "content-type")


def test_of_many_errors_in_one_body_the_first_is_named(client):
    body = json.dumps({"inputs": [3] * 200_000})
    reply = client.post("/predict", content=body, headers=JSON)
    assert (reply.status_code, reply.json()["where"]) == (422, "inputs[0]")


@pytest.mark.parametrize("path", ["/nothing", "/docs"])
def test_what_is_not_there_is_a_json_error_too(client, path):
    reply = client.get(path)
    assert (reply.status_code, reply.json()["code"]) == (404, "not-found")


def test_limits_on_bytes_and_texts(classifier):
    with served(classifier, max_bytes=4_000, max_texts=3, queue=10) as client:

        def ask(inputs):
            reply = client.post("/predict", json={"inputs": inputs})
            return reply.status_code, reply.json().get("where") if reply.status_code > 200 else None

        assert ask("word " * 10) == (200, None)
        assert ask("word " * 2_000)[0] == 413
        assert ask(["a"] * 4) == (422, "inputs")
        # Without a length in its head.
        parts = iter([b'{"inputs": "', b"x" * 3_000, b"x" * 3_000, b'"}'])
        assert client.post("/predict", content=parts, headers=JSON).status_code == 413


def test_the_bodies_of_all_requests_together_are_bounded_and_are_let_go(classifier, monkeypatch):
    monkeypatch.setattr(http, "LARGEST_AT_ONCE", 0.0001)
    with served(classifier) as client:
        reply = client.post("/predict", json={"inputs": "word " * 100})
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
        assert client.post("/predict", json={"inputs": "word"}).status_code == 200
        assert client.app.state.held == 0


HOSTS = [
    ("127.0.0.1:8000", 200),
    ("localhost", 200),
    ("[::1]:80", 200),
    ("evil.example:8000", 400),
    ("evil", 400),
]


@pytest.mark.parametrize("how", ["default", "--no-token", "with a token"])
def test_at_loopback_a_foreign_host_is_rejected(classifier, monkeypatch, how):
    """A page whose name points to 127.0.0.1 must not read predictions (DNS rebinding)."""
    if how == "with a token":
        monkeypatch.setenv("HEADSTART_TOKEN", "s3cret")
    found = []
    with served(classifier, token=how != "--no-token") as client:
        for host, _ in HOSTS:
            headers = {"Host": host, "Authorization": "Bearer s3cret"}
            reply = client.post("/predict", json={"inputs": "word"}, headers=headers)
            found.append((host, reply.status_code))
    assert found == HOSTS


def fake_app(classifier, **settings):
    """An application with a fake model that can be delayed."""
    run, fake = open_model(classifier), FakeModel()
    real = run.predict

    def predict(rows):
        fake.predict(rows)
        return real(rows)

    object.__setattr__(run, "predict", predict)  # a run is frozen
    return create_app(run, ServeConfig(threads=1, **settings)), fake


@pytest.mark.parametrize("inputs", ["text", ["text", "more", "and more"]])
def test_a_full_queue_is_429_with_retry_after_for_lists_as_for_texts(classifier, inputs):
    app, fake = fake_app(classifier, queue=3, max_texts=3)
    fake.gate.clear()
    with client_of(app) as client:
        ask = lambda given: client.post("/predict", json={"inputs": given})  # noqa: E731
        answers = []
        threads = [
            threading.Thread(target=lambda given=given: answers.append(ask(given).status_code))
            for given in ("first", ["a", "b", "c"])
        ]
        threads[0].start()
        assert fake.started.wait(30)
        threads[1].start()
        while app.state.queue.waiting < 3:
            time.sleep(0.01)
        reply = ask(inputs)
        assert (reply.status_code, reply.json()["code"]) == (429, "busy")
        assert 1 <= int(reply.headers["retry-after"]) <= 60
        fake.gate.set()
        for thread in threads:
            thread.join(30)
        assert answers == [200, 200]
        assert ask(inputs).status_code == 200
        assert 'requests_total{path="/predict",status="429"}' in client.get("/metrics").text


def test_past_the_deadline_the_answer_is_504(classifier):
    app, fake = fake_app(classifier, deadline=0.05)
    fake.gate.clear()
    with client_of(app) as client:
        reply = client.post("/predict", json={"inputs": "text"})
        fake.gate.set()
    assert reply.status_code == 504


def test_a_bug_in_the_model_is_500_without_a_trace_or_a_path_and_is_logged(classifier, caplog):
    app, _ = fake_app(classifier)
    with client_of(app) as client:
        reply = client.post("/predict", json={"inputs": ["broken"]})
        assert client.post("/predict", json={"inputs": "whole"}).status_code == 200
    assert reply.status_code == 500
    assert "/secret" not in reply.text
    assert "Traceback" not in reply.text
    assert "/secret/place.py" in caplog.text


def test_no_answer_names_a_place_on_this_machine(client, classifier):
    pages = ("/info", "/health", "/metrics", "/openapi.json", "/x")
    assert str(classifier.parent) not in "".join(client.get(page).text for page in pages)


def test_with_a_token_everything_but_health_needs_it(classifier, monkeypatch):
    monkeypatch.setenv("HEADSTART_TOKEN", "s3cret")
    with served(classifier) as client:
        right = {"Authorization": "Bearer s3cret"}
        for path in ("/info", "/metrics", "/openapi.json"):
            reply = client.get(path)
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert reply.json()["code"] == "token"
            assert client.get(path, headers={"Authorization": "Bearer s3cre"}).status_code == 401
            assert client.get(path, headers={"Authorization": "Basic s3cret"}).status_code == 401
            assert client.get(path, headers=right).status_code == 200
        assert client.post("/predict", json={"inputs": "a"}).status_code == 401
        assert client.post("/predict", json={"inputs": "a"}, headers=right).status_code == 200
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_that_others_reach_needs_a_token_or_a_clear_word(host, monkeypatch):
    monkeypatch.delenv("HEADSTART_TOKEN", raising=False)
    with pytest.raises(HeadstartError, match="no token"):
        ServeConfig.create(host=host)
    ServeConfig.create(host=host, token=False)
    monkeypatch.setenv("HEADSTART_TOKEN", "s3cret")
    ServeConfig.create(host=host)


@pytest.mark.parametrize("token", [" ", "two\nlines", "ключ"])
def test_a_token_that_no_header_can_carry_is_rejected(token, monkeypatch):
    monkeypatch.setenv("HEADSTART_TOKEN", token)
    with pytest.raises(HeadstartError, match="token"):
        ServeConfig.create()


def test_metrics_count_requests_times_batches_and_the_queue(client):
    client.post("/predict", json={"inputs": ["a", "b"]})
    client.post("/predict", content=b"x")  # rejected before it is answered
    client.get("/made/up")
    page = client.get("/metrics").text
    for name in (
        'headstart_requests_total{path="/predict",status="200"}',
        'headstart_requests_total{path="/predict",status="415"}',
        'headstart_request_seconds_bucket{le="0.1",path="/predict"}',
        "headstart_batch_texts_sum",
        "headstart_queue_texts 0.0",
    ):
        assert name in page
    assert "made" not in page  # clients add no names
