"""Small runs of every task with random weights, and servers of them in this process."""

import asyncio
import contextlib
import threading

import torch
import uvicorn
from starlette.testclient import TestClient

from headstart.data.tokenizers import train_tokenizer
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun
from headstart.serve.app import create_app
from headstart.serve.model import open_model
from headstart.serve.server import make_config
from headstart.serve.settings import ServeConfig, bind
from headstart.tasks import find_task
from tests.labelled import TINY, dataset

LABELS = {
    "classification": ("animal", "person"),
    "multi-label": ("comedy", "drama", "short"),
    "pairs": ("no", "yes"),
    "tagging": ("O", "B-PER", "I-PER", "B-LOC"),
    "spans": ("no answer",),
}
TEXTS = dataset(40).texts
# Of all lengths: a response must not depend on what it is padded to.
MIXED = [" ".join(TEXTS[: 1 + place % 7])[: 20 + 37 * place] for place in range(40)]
ADDRESS = "http://127.0.0.1:8000"


def save_random_run(folder, task="classification", seed=0, labels=None):
    """Write a run with random weights, strong enough that every text has its own prediction."""
    texts = dataset(60).texts
    tokenizer = train_tokenizer(texts, vocab_size=300)
    kind = find_task(task)(labels or LABELS[task])
    sizes = {**TINY, "vocab_size": tokenizer.vocab_size}
    chosen = preset("small", objective="masked", **sizes)
    model = build_model(chosen.base, kind.head(chosen, None), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    NetworkRun(folder, model.eval(), tokenizer, 128, "truncate", task=kind).save(folder)
    return folder


def client_of(app):
    """A client of the routes, without a socket; bugs are responses, as in a real server."""
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)


@contextlib.contextmanager
def served(folder, **settings):
    """A client of the run's routes."""
    with client_of(create_app(open_model(folder), ServeConfig(**settings))) as client:
        yield client


@contextlib.contextmanager
def listening(folder, **settings):
    """A server with a real socket, in a thread: its port and itself."""
    config = ServeConfig(**settings)
    socket = bind("127.0.0.1", 0)
    server = uvicorn.Server(make_config(create_app(open_model(folder), config), config))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield socket.getsockname()[1], server
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


class FakeModel:
    """Predicts with the text in capitals, as slowly as `gate` says, and records its batches."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.batches = []

    def predict(self, rows):
        self.started.set()
        assert self.gate.wait(30)
        self.batches.append(list(rows))
        if any("broken" in row for row in rows):
            raise RuntimeError("a bug at /secret/place.py")
        return [row.upper() for row in rows]


async def until(condition):
    """Run the event loop until the condition is true."""
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not become so")
