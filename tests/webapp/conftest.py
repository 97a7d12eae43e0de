"""Fixtures to test the app with requests or with a real browser."""

import contextlib
import socket
import sys
import threading
import time
from dataclasses import dataclass

import pytest
from fastapi.testclient import TestClient

from headstart.webapp.server import make_app, make_config

ORIGIN = "http://127.0.0.1:8765"
TINY = [
    *("--epochs=2", "--tokens=16384", "--threads=1", "--vocab-size=300"),
    *("--width=16", "--layers=1", "--heads=2", "--feed-forward-width=32"),
]
TABLE = b"text,label\nfine film,good\nbad film,poor\n"
ECHO = "import json, sys; print(json.dumps({'warnings': [], 'arguments': sys.argv[1:]}))"
SLEEPS = "import time; time.sleep(60)"


@pytest.fixture
def app(tmp_path):
    made = make_app(tmp_path / "app", upload_mb=1)
    yield made
    end_all(made.state.studies)


def end_all(studies):
    """End every command of every study."""
    for study in studies.all():
        for kind in ("inspect", "plan", "study", "predict"):
            study.job(kind).stop(at_once=True)


@pytest.fixture
def studies(app):
    return app.state.studies


def client_of(app, **options):
    """The app's own page: with its key."""
    headers = {"authorization": f"Bearer {app.state.token}"}
    return TestClient(app, base_url=ORIGIN, headers=headers, **options)


@pytest.fixture
def client(app):
    with client_of(app) as made:
        yield made


@pytest.fixture
def upload(client):
    """Upload a table; returns the study's document."""

    def send(content=TABLE, name="films.csv"):
        response = client.post("/api/studies", content=content, headers={"x-file-name": name})
        assert response.status_code == 201, response.text
        return response.json()

    return send


@pytest.fixture
def fake_command(monkeypatch):
    """Replace every command by a small program, whose arguments are in `sys.argv[1:]`."""

    def use(program):
        line = lambda arguments: [sys.executable, "-c", program, *arguments]  # noqa: E731
        monkeypatch.setattr("headstart.webapp.studies.command_line", line)

    return use


def wait_until(what, seconds=120):
    """Wait until something is true; returns it."""
    for _ in range(seconds * 20):
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} seconds: {what}")


def ended(client, study, kind):
    """Wait for the end of a command; returns its document."""

    def look():
        job = client.get(f"/api/studies/{study['id']}").json()["jobs"][kind]
        return job["state"] not in ("running", "stopping") and job

    return wait_until(look)


@dataclass
class Served:
    """A server that listens, and where."""

    address: str
    studies: object

    @property
    def origin(self):
        return self.address.partition("/#")[0]


@contextlib.contextmanager
def serving(folder, **options):
    """The app on a free port, in a thread of this process."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = make_app(folder, **options)
        server = uvicorn.Server(make_config(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        wait_until(lambda: server.started)
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            yield Served(f"{origin}/#key={app.state.token}", app.state.studies)
        finally:
            end_all(app.state.studies)
            server.should_exit = True
            thread.join()
