"""The servers to compare, each in a separate process, and the classifier that all of them serve."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from headstart.data.tokenizers import train_tokenizer
from headstart.interop.export import export_run
from headstart.model.model import build_model
from headstart.model.presets import preset, stock_head
from headstart.run import NetworkRun
from headstart.tasks.classification import Classification

PLAIN = Path(__file__).parent / "plain_server.py"


def make_run(folder: Path, texts: list[str]) -> None:
    """Write a classifier of the preset `small` with random weights, which do not affect the speed.

    The folder `run` has Headstart's run; `huggingface` and `onnx` have its exports.
    """
    tokenizer = train_tokenizer(texts, vocab_size=8_192)
    task = Classification(("negative", "positive"))
    chosen = preset("small", objective="masked", vocab_size=tokenizer.vocab_size)
    head = stock_head(task.head(chosen, None), chosen.base)
    model = build_model(chosen.base, head, seed=0).eval()
    with torch.no_grad():  # so that predictions differ between texts
        for parameter in model.head.parameters():
            parameter.mul_(20)
    NetworkRun(folder / "run", model, tokenizer, 512, "truncate", task=task).save(folder / "run")
    for form in ("huggingface", "onnx"):
        export_run(
            folder / "run",
            form,
            folder / form,
        )


@contextmanager
def ours(run: Path, *options: str) -> Iterator[tuple[int, psutil.Process]]:
    """Start `headstart serve`; yields its port and process."""
    command = [sys.executable, "-m", "headstart", "serve", str(run), "--port", "0", "--json"]
    server = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    said = ""
    while not said.endswith("}\n") or said.count("{") != said.count("}"):
        line = server.stdout.readline()
        if not line:
            raise SystemExit("headstart serve did not start")
        said += line
    found = json.loads(said)
    try:
        yield int(found["address"].rpartition(":")[2]), psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def plain(exported: Path) -> Iterator[tuple[int, psutil.Process]]:
    """Start the plain server; yields its port and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(PLAIN), str(exported), str(port)])
    try:
        for _ in range(600):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if server.poll() is not None:
                raise SystemExit("the plain server did not start")
            time.sleep(0.1)
        yield port, psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(60)


def memory(process: psutil.Process) -> float:
    """Return the memory of a server and all of its workers, in MB."""
    everyone = [process, *process.children(recursive=True)]
    return sum(one.memory_info().rss for one in everyone) / 1e6
