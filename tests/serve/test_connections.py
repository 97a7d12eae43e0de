"""Connections of all manners on a real socket: half-closed, slow, idle, too many; a newer run."""

import asyncio
import contextlib
import json
import socket
import time

import pytest

from headstart.serve.connections import BoundedProtocol, Sweeper
from headstart.serve.server import bind
from headstart.serve.settings import ServeSettings
from tests.serve.served import listening, save_random_run, service_of, until


def head(length, path="/predict"):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


BODY = b'{"inputs": "the old cat"}'


@pytest.fixture(scope="module")
def running(classifier):
    """A server that is patient for a second only."""
    service = service_of(classifier, read_seconds=1.0)
    with listening(service) as (port, server):
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


def test_a_client_that_has_closed_its_sending_half_is_answered(running):
    with connected(running[0]) as client:
        client.sendall(head(len(BODY)) + BODY)
        client.shutdown(socket.SHUT_WR)
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"label"' in answer


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
        client.sendall(head(len(BODY)).replace(b"Host: x", b"Host: x\r\nConnection: close") + BODY)
        assert received(client).startswith(b"HTTP/1.1 200")


def test_answers_are_not_held_back_to_fill_a_packet():
    """asyncio turns Nagle's algorithm off where a socket says that it is of TCP."""
    with bind(ServeSettings(port=0)) as found:
        assert found.proto == socket.IPPROTO_TCP


def test_what_is_no_http_is_400(running):
    with connected(running[0]) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert received(client).startswith(b"HTTP/1.1 400")


def test_past_the_limit_a_connection_is_closed_and_others_go_on(running, monkeypatch, caplog):
    port, _server = running
    with connected(port) as client:
        client.sendall(head(len(BODY)) + BODY)
        assert client.recv(12) == b"HTTP/1.1 200"
        monkeypatch.setattr(BoundedProtocol, "limit", 1)
        with connected(port) as other, contextlib.suppress(ConnectionResetError):
            assert received(other) == b""
        client.recv(65_536)
        client.sendall(head(len(BODY)) + BODY)
        assert client.recv(12) == b"HTTP/1.1 200"
    assert "Traceback" not in caplog.text


def test_hugging_faces_own_client_is_understood(running):
    from huggingface_hub import InferenceClient

    client = InferenceClient(model=f"http://127.0.0.1:{running[0]}/models/animals", token="none")
    found = client.text_classification("the old cat", top_k=2)
    assert {one.label for one in found} == {"animal", "person"}


def test_the_sweeper_leaves_connections_alone_that_move_on():
    class Connection:
        def __init__(self, cycle):
            self.cycle, self.transport = cycle, self
            self.closed = False

        def abort(self):
            self.closed = True

    def cycle(over):
        return type("Cycle", (), {"response_complete": over})()

    idle, answered, busy = Connection(None), Connection(cycle(True)), Connection(cycle(False))
    state = type("State", (), {"connections": {idle, answered, busy}})()
    sweeper = Sweeper(state, first_seconds=10, next_seconds=40, answer_seconds=60)
    for now in range(0, 36, 5):
        answered.cycle = cycle(True) if now == 30 else answered.cycle
        sweeper.sweep(now)
    assert (idle.closed, answered.closed, busy.closed) == (True, False, False)
    sweeper.sweep(65)
    assert (answered.closed, busy.closed) == (False, True)
    sweeper.sweep(75)
    assert answered.closed


def test_a_newer_run_is_taken_without_a_gap_and_a_broken_one_is_refused(tmp_path):
    folder = save_random_run(tmp_path / "run", labels=("old", "older"))
    service = service_of(folder)

    async def scenario():
        service.batcher.start()
        wrong = []
        labels = set()
        stop = False

        async def ask():
            while not stop:
                _, _, answers = await service.ask(["the old cat"])
                found = set(answers[0]["probabilities"])
                if found not in ({"old", "older"}, {"new", "newer"}):
                    wrong.append(found)
                labels.update(found)
                await asyncio.sleep(0.001)

        asking = asyncio.create_task(ask())
        save_random_run(tmp_path / "next", seed=1, labels=("new", "newer"))
        (folder / "model.safetensors").write_bytes(b"broken")
        assert not await service.reload()
        assert service.model.labels == ("old", "older")
        for path in (tmp_path / "next").iterdir():
            path.replace(folder / path.name)
        assert await service.reload()
        await until(lambda: "new" in labels)
        stop = True
        await asking
        service.batcher.close()
        return wrong, labels

    wrong, labels = asyncio.run(scenario())
    assert wrong == []
    assert labels == {"old", "older", "new", "newer"}
    page = service.metrics.page().decode()
    assert 'headstart_reloads_total{result="refused"} 1.0' in page
    assert 'headstart_reloads_total{result="taken"} 1.0' in page


def test_a_stop_answers_everything_that_was_accepted(classifier):
    service = service_of(classifier)
    with listening(service) as (port, server):
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
