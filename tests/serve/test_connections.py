"""Slow, idle and too many connections on a real socket."""

import json
import socket
import time

import pytest

from headstart.serve import http as http_module
from headstart.serve import server as server_module
from tests.serve.served import listening


def head(length, path="/predict"):
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


BODY = b'{"inputs": "the old cat"}'


@pytest.fixture(scope="module")
def running(classifier):
    """A server that is patient for a second only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_module, "READ_SECONDS", 1.0)
        patch.setattr(server_module, "READ_SECONDS", 1.0)
        with listening(classifier) as (port, server):
            yield port, server


def connected(port):
    found = socket.create_connection(("127.0.0.1", port))
    found.settimeout(20)
    return found


def received(connection):
    data = b""
    while part := connection.recv(65_536):
        data += part
    return data


def test_a_body_that_does_not_come_is_408_and_the_connection_is_closed(running):
    with connected(running[0]) as client:
        client.sendall(head(len(BODY)) + BODY[:5])
        assert received(client).startswith(b"HTTP/1.1 408")


def test_a_connection_without_a_request_or_with_half_a_head_is_closed(running):
    with connected(running[0]) as silent, connected(running[0]) as slow:
        slow.sendall(b"POST /predict HTT")
        assert received(silent) == b""
        assert received(slow) == b""


def test_a_client_that_leaves_in_the_middle_harms_nobody(running):
    for sent in (b"", b"POST", head(len(BODY)), head(len(BODY)) + BODY[:3], head(9) + BODY):
        client = connected(running[0])
        client.sendall(sent)
        client.close()
    with connected(running[0]) as client:
        client.sendall(head(len(BODY)).replace(b"Host:", b"Connection: close\r\nHost:") + BODY)
        found = received(client).lower()
    assert found.startswith(b"http/1.1 200")
    assert b"cache-control: no-store" in found
    assert b"x-content-type-options: nosniff" in found


def test_past_the_limit_of_connections_a_request_is_503(classifier, monkeypatch):
    monkeypatch.setattr(server_module, "_connection_limit", lambda: 2)
    with listening(classifier) as (port, _), connected(port) as first:
        first.sendall(head(len(BODY)) + BODY)
        assert first.recv(12) == b"HTTP/1.1 200"
        with connected(port) as second:
            second.sendall(head(len(BODY)) + BODY)
            assert received(second).startswith(b"HTTP/1.1 503")
        first.recv(65_536)
        first.sendall(head(len(BODY)) + BODY)
        assert first.recv(12) == b"HTTP/1.1 200"


def test_hugging_faces_own_client_is_understood(running):
    from huggingface_hub import InferenceClient

    client = InferenceClient(model=f"http://127.0.0.1:{running[0]}/models/animals", token="none")
    found = client.text_classification("the old cat", top_k=2)
    assert {one.label for one in found} == {"animal", "person"}


def test_a_stop_answers_everything_that_was_accepted(classifier):
    with listening(classifier) as (port, server):
        clients = [connected(port) for _ in range(20)]
        for client in clients:
            client.sendall(head(len(BODY)) + BODY)
        while sum(one.cycle is not None for one in list(server.server_state.connections)) < 20:
            time.sleep(0.001)  # until all of them have been read
        server.should_exit = True
        answers = [received(client) for client in clients]
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    bodies = [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers]
    scores = [{one["label"]: one["score"] for one in body} for body in bodies]
    # Batches of other sizes add in another order: equal to what docs/serving.md promises.
    assert all(one == pytest.approx(scores[0], abs=1e-4) for one in scores)
    with pytest.raises(ConnectionError):
        connected(port)
