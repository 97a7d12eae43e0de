"""Bounds and refusals: bytes, texts, tokens, the queue, the deadline, the token; nothing leaks."""

import json
import threading
import time

import pytest
from starlette.testclient import TestClient

from headstart.errors import HeadstartError
from headstart.serve.settings import ServeSettings, is_loopback
from tests.serve.served import FakeModel, create_app, served, service_of

BAD_BODIES = [
    b"",
    b"{",
    b"[" * 100_000,
    b"\xff\xfe\x00",
    b'{"inputs": ' + b"9" * 5_000 + b"}",
    b'{"inputs": NaN}',
    b"null",
    b"[]",
    b'"text"',
    b"{}",
    b'{"inputs": null}',
    b'{"inputs": {"text": ["a"]}}',
    b'{"inputs": [["a"]]}',
    b'{"inputs": "a", "parameters": []}',
    b'{"inputs": "a", "parameters": {"top_k": 0}}',
    b'{"inputs": "a", "parameters": {"top_k": true}}',
    b'{"inputs": "a", "parameters": {"explain": "yes"}}',
    b'{"inputs": "a", "surprise": 1}',
    b'{"inputs": "\\ud800"}',
    b'{"inputs": "a\\u0000"}',
]


@pytest.mark.parametrize("path", ["/predict", "/models/animals"])
@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: repr(body[:30]))
def test_a_bad_body_is_one_json_error_about_the_request(client, path, body):
    reply = client.post(path, content=body)
    assert reply.status_code in (400, 422)
    assert set(reply.json()) <= {"error", "where", "fix"}
    assert reply.json()["error"]


def test_no_inputs_have_no_answers(client):
    reply = client.post("/predict", json={"inputs": []})
    assert (reply.status_code, reply.json()) == (200, [])


@pytest.mark.parametrize("path", ["/nothing", "/models/other/ready", "/v2"])
def test_what_is_not_there_is_a_json_error_too(client, path):
    reply = client.get(path)
    assert reply.status_code == 404
    assert reply.json()["error"]


def test_limits_on_bytes_texts_and_tokens(classifier):
    with served(classifier, max_bytes=4_000, max_texts=3, max_tokens=50, queue=10) as client:

        def ask(inputs, **more):
            reply = client.post("/predict", json={"inputs": inputs, **more})
            return reply.status_code, reply.json().get("where") if reply.status_code > 200 else None

        assert ask("word " * 10) == (200, None)
        assert ask("word " * 2_000)[0] == 413
        assert ask(["a"] * 4) == (422, "inputs")
        assert ask(["a", "word " * 400]) == (422, "inputs[1]")
        assert ask("a b c d e f g h i j k", parameters={"explain": True}) == (
            422,
            "parameters.explain",
        )

        def chunks():
            yield from [b'{"inputs": "', b"x" * 3_000, b"x" * 3_000, b'"}']

        reply = client.post("/predict", content=chunks())  # without a length in its head
        assert reply.status_code == 413
        assert client.post("/predict", content=b"x", headers={"content-encoding": "gzip"}).is_error


def test_a_text_that_is_too_long_to_explain_is_refused(client):
    body = {"inputs": "word " * 10_001, "parameters": {"explain": True}}
    reply = client.post("/predict", json=body)
    assert (reply.status_code, reply.json()["where"]) == (422, "parameters.explain")


def test_the_bodies_of_all_requests_together_are_bounded_and_are_let_go(classifier):
    service = service_of(classifier)
    with TestClient(create_app(service)) as client:
        service.bodies.most_held = 100
        reply = client.post("/predict", json={"inputs": "word " * 100})
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
        assert client.post("/predict", json={"inputs": "word"}).status_code == 200
    assert service.bodies.held == 0


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:80", 200), ("evil.example:8000", 421)],
)
def test_a_public_name_that_points_here_is_refused_without_a_token(client, host, status):
    reply = client.post("/predict", json={"inputs": "word"}, headers={"Host": host})
    assert reply.status_code == status


def fake_service(classifier, **settings):
    """A service whose model is a fake that can be held up."""
    service = service_of(classifier, threads=1, **settings)
    fake = FakeModel()
    fake.read = lambda inputs, explain, places: [
        type("Q", (), {"rows": (text,), "size": len(text)}) for text in inputs
    ]
    service.model = fake
    return service, fake


@pytest.mark.parametrize("inputs", ["text", ["text"], ["text", "more", "and more"]])
def test_a_full_queue_is_429_with_retry_after_for_lists_as_for_texts(classifier, inputs):
    service, fake = fake_service(classifier, queue=3, max_texts=3)
    fake.gate.clear()
    with TestClient(create_app(service)) as client:
        ask = lambda given: client.post("/predict", json={"inputs": given})  # noqa: E731
        answers = []
        threads = [
            threading.Thread(target=lambda given=given: answers.append(ask(given).status_code))
            for given in ("first", ["a", "b", "c"])
        ]
        threads[0].start()
        assert fake.started.wait(30)
        threads[1].start()
        while "headstart_queue_texts 3.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        reply = ask(inputs)
        assert reply.status_code == 429
        assert 1 <= int(reply.headers["retry-after"]) <= 60
        fake.gate.set()
        for thread in threads:
            thread.join(30)
        assert answers == [200, 200]
        assert ask(inputs).status_code == 200
        assert 'headstart_refused_total{reason="queue"} 1.0' in client.get("/metrics").text


def test_past_the_deadline_the_answer_is_504(classifier):
    service, fake = fake_service(classifier, deadline=0.05)
    fake.gate.clear()
    with TestClient(create_app(service)) as client:
        reply = client.post("/predict", json={"inputs": "text"})
        fake.gate.set()
    assert reply.status_code == 504


def test_a_bug_in_the_model_is_500_without_a_trace_or_a_path_and_is_logged(classifier, caplog):
    service, _ = fake_service(classifier)
    with TestClient(create_app(service)) as client:
        reply = client.post("/predict", json={"inputs": ["broken"]})
        assert client.post("/predict", json={"inputs": "whole"}).status_code == 200
    assert reply.status_code == 500
    assert "/secret" not in reply.text
    assert "Traceback" not in reply.text
    assert "/secret/place.py" in caplog.text


def test_no_answer_names_a_place_on_this_machine(client, classifier):
    pages = ("/info", "/health", "/metrics", "/docs", "/openapi.json", "/models/animals", "/x")
    assert str(classifier.parent) not in "".join(client.get(page).text for page in pages)


def test_with_a_token_everything_but_health_needs_it(classifier):
    with served(classifier, token="s3cret") as client:
        right = {"Authorization": "Bearer s3cret"}
        for path in ("/info", "/metrics", "/docs", "/openapi.json"):
            reply = client.get(path)
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert client.get(path, headers={"Authorization": "Bearer s3cre"}).status_code == 401
            assert client.get(path, headers=right).status_code == 200
        assert client.post("/predict", json={"inputs": "a"}).status_code == 401
        assert client.post("/predict", json={"inputs": "a"}, headers=right).status_code == 200
        assert client.get("/health").status_code == 200
        assert client.get("/health").status_code == 200
    assert "s3cret" not in repr(ServeSettings(token="s3cret"))


def test_tokens_are_compared_in_constant_time(classifier, monkeypatch):
    import hmac

    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(
        "headstart.serve.guard.hmac.compare_digest",
        lambda *pair: compared.append(pair) or real(*pair),
    )
    with served(classifier, token="s3cret") as client:
        client.get("/info", headers={"Authorization": "Bearer guess"})
    assert compared == [(b"Bearer guess", b"Bearer s3cret")]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_that_others_reach_needs_a_token_or_a_clear_word(host):
    with pytest.raises(HeadstartError, match="no token"):
        ServeSettings(host=host).check()
    ServeSettings(host=host, token="s3cret").check()
    ServeSettings(host=host, no_token=True).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_none(host):
    assert is_loopback(host)
    ServeSettings(host=host).check()


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": ""},
        {"token": "two\nlines"},
        {"token": "ключ"},
        {"port": 70_000},
        {"queue": 0},
        {"workers": 0},
        {"max_texts": 2_000},
        {"deadline": float("nan")},
        {"host": "no such host.invalid"},
    ],
)
def test_settings_that_cannot_be_are_refused_at_once(wrong):
    with pytest.raises(HeadstartError):
        ServeSettings(**wrong).check()


def test_metrics_count_requests_times_batches_and_the_queue(client):
    client.post("/predict", json={"inputs": ["a", "b"]})
    page = client.get("/metrics").text
    for name in (
        'headstart_requests_total{path="/predict",status="200"}',
        'headstart_request_seconds_bucket{le="0.1",path="/predict"}',
        "headstart_batch_texts_sum",
        "headstart_queue_texts 0.0",
    ):
        assert name in page
    client.get("/made/up")
    assert "made" not in client.get("/metrics").text


def test_answers_are_strict_json_and_not_cached(client):
    reply = client.post("/predict", json={"inputs": "ﬁne ☃"})
    json.loads(reply.content, parse_constant=lambda name: pytest.fail(name))
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-content-type-options"] == "nosniff"
