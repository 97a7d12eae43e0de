"""`headstart serve` as a person starts it: messages, signals, workers; and the page about it."""

import contextlib
import json
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import psutil
import pytest

from tests.pages import read_blocks, words_of
from tests.serve.served import save_random_run, served

PAGE = "docs/serving.md"


def test_a_port_in_use_is_one_message_with_the_fix(headstart, classifier):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = headstart("serve", classifier, "--port", taken.getsockname()[1])
    assert result.returncode == 2
    assert "cannot be used" in result.stderr
    assert "--port" in result.stderr


def test_a_run_that_cannot_be_opened_is_one_message(headstart, tmp_path):
    result = headstart("serve", tmp_path / "nothing", "--port", 0)
    assert result.returncode == 2
    assert "no such run" in result.stderr


def started(*arguments):
    """Start a server process; returns it with its first message."""
    command = [sys.executable, "-m", "headstart", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = ""
    while not said.endswith("\n}\n"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        said += line
    return process, json.loads(said)


def ask(address, text="the old cat", **headers):
    body = json.dumps({"inputs": text}).encode()
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"{address}/predict", body, headers)
    with urllib.request.urlopen(request, timeout=300) as reply:
        return {one["label"] for one in json.load(reply)}


def stopped(process):
    """Stop a server with SIGTERM; returns its exit code and its output."""
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not become so"
        time.sleep(0.05)


def workers_of(process):
    """The workers of a server that has several."""
    found = []
    for one in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            if "spawn_main" in " ".join(one.cmdline()):
                found.append(one)
    return found


@pytest.mark.slow
def test_workers_are_replaced_by_ones_with_a_newer_run(tmp_path):
    folder = save_random_run(tmp_path / "run", labels=("old", "older"))
    save_random_run(tmp_path / "next", seed=1, labels=("new", "newer"))
    process, said = started(folder, "--workers", 2, "--threads", 1)
    try:
        address = said["address"]
        assert ask(address) == {"old", "older"}
        weights = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(weights[:1_000])
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(workers_of(process)) == 3)  # the one that cannot open the run
        wait_for(lambda: len(workers_of(process)) == 2)
        assert ask(address) == {"old", "older"}
        for path in (tmp_path / "next").iterdir():
            path.replace(folder / path.name)
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: ask(address) == {"new", "newer"})
    finally:
        code, errors = stopped(process)
    assert code == 0, errors
    assert "Traceback" not in errors
    assert "keeping worker" in errors


@pytest.mark.slow
def test_a_stop_while_a_dead_worker_is_replaced_ends_every_worker(classifier):
    process, said = started(classifier, "--workers", 2, "--threads", 1)
    assert ask(said["address"]) == {"animal", "person"}
    family = workers_of(process)
    assert len(family) == 2
    family[0].kill()
    family += workers_of(process)
    code, errors = stopped(process)
    assert code == 0, errors
    assert "at once" not in errors
    assert not psutil.wait_procs(family, timeout=10)[1]


@pytest.mark.slow
def test_a_dead_worker_is_replaced(classifier):
    process, said = started(classifier, "--workers", 2, "--threads", 1)
    try:
        assert ask(said["address"])  # a worker has started
        first, second = workers_of(process)
        first.kill()
        wait_for(
            lambda: len(psutil.Process(process.pid).children()) >= 2 and not first.is_running()
        )
        second.kill()  # only the new one is left
        wait_for(lambda: answers(said["address"]))
        with urllib.request.urlopen(f"{said['address']}/metrics", timeout=30) as reply:
            page = reply.read().decode()
        assert "headstart_queue_texts 0.0" in page
        assert 'headstart_requests_total{path="/predict",status="200"}' in page
    finally:
        code, errors = stopped(process)
    assert code == 0, errors
    assert "died" in errors


def answers(address):
    try:
        return bool(ask(address))
    except OSError:
        return False


def test_every_curl_line_of_the_page_is_answered(tmp_path, monkeypatch):
    runs = {
        name: save_random_run(tmp_path / name, task, labels=labels)
        for name, task, labels in (
            ("reviews", "classification", ("negative", "positive")),
            ("pairs", "pairs", ("different", "same")),
            ("tagger", "tagging", None),
            ("answers", "spans", None),
        )
    }
    ports = {8000: "reviews", 8001: "pairs", 8002: "tagger", 8003: "answers"}
    commands = [command for block in read_blocks(PAGE) for command in block.commands]
    lines = [words_of(command) for command in commands if command.startswith("curl")]
    assert len(lines) >= 7
    monkeypatch.setenv("HEADSTART_TOKEN", "s3cret")
    headers = {"Authorization": "Bearer s3cret", "Content-Type": "application/json"}
    with contextlib.ExitStack() as stack:
        clients = {port: stack.enter_context(served(runs[name])) for port, name in ports.items()}
        for words in lines:
            address = urllib.parse.urlsplit(next(word for word in words if word.startswith("http")))
            method, body = "GET", None
            if "-d" in words:
                method, body = "POST", words[words.index("-d") + 1]
            reply = clients[address.port].request(
                method, address.path, headers=headers, content=body
            )
            assert reply.status_code == 200, f"{shlex.join(words)}\n{reply.text}"
