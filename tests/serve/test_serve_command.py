"""`headstart serve` as a person starts it: messages, signals, workers; and the page about it."""

import contextlib
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil
import pytest

from headstart.serve.app import create_app
from headstart.serve.model import open_model
from headstart.serve.settings import ServeConfig
from tests.pages import read_blocks, words_of
from tests.serve.served import client_of, save_random_run

PAGE = "docs/serving.md"


def test_a_port_in_use_is_one_message_with_the_fix(headstart, classifier):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = headstart("serve", classifier, "--port", taken.getsockname()[1])
    assert result.returncode == 2
    assert "cannot be used" in result.stderr
    assert "--port" in result.stderr


def test_other_machines_are_not_let_in_without_a_token(headstart, classifier, monkeypatch):
    monkeypatch.delenv("HEADSTART_TOKEN", raising=False)
    result = headstart("serve", classifier, "--host", "0.0.0.0")
    assert result.returncode == 2
    assert "no token is set" in result.stderr
    assert "--no-token" in result.stderr


def test_a_missing_package_is_one_message_with_the_command_that_installs_it(
    headstart, classifier, monkeypatch
):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "fastapi" else real(name)
    )
    result = headstart("serve", classifier)
    assert result.returncode == 2
    assert "fastapi is not installed" in result.stderr
    assert "pip install 'headstart[serve]'" in result.stderr


def test_a_run_that_cannot_be_opened_is_one_message(headstart, tmp_path):
    result = headstart("serve", tmp_path / "nothing", "--port", 0)
    assert result.returncode == 2
    assert "no such run" in result.stderr


def started(*arguments):
    """A server process, and what it said when it was ready."""
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
    with urllib.request.urlopen(request, timeout=30) as reply:
        return {one["label"] for one in json.load(reply)}


def stopped(process):
    """Stop a server with SIGTERM: its exit code and what it said."""
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
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.6])
def test_a_stop_while_a_dead_worker_is_replaced_ends_every_worker(classifier, delay):
    process, said = started(classifier, "--workers", 2, "--threads", 1)
    assert ask(said["address"]) == {"animal", "person"}
    family = workers_of(process)
    assert len(family) == 2
    family[0].kill()
    time.sleep(delay)
    family += workers_of(process)
    code, errors = stopped(process)
    assert code == 0, errors
    assert "at once" not in errors
    assert not psutil.wait_procs(family, timeout=10)[1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_right_after_the_start_is_heard(classifier, number):
    process, _ = started(classifier)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


@pytest.mark.slow
def test_a_dead_worker_is_replaced(classifier):
    process, said = started(classifier, "--workers", 2, "--threads", 1)
    try:
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


@pytest.mark.slow
def test_a_server_without_a_token_rejects_pages_of_other_sites(classifier):
    process, said = started(classifier, "--no-token")
    try:
        for headers, status in (
            ({"Content-Type": "text/plain"}, 415),
            ({"Host": "evil.example"}, 400),
        ):
            with pytest.raises(urllib.error.HTTPError) as error:
                ask(said["address"], **headers)
            assert error.value.code == status
    finally:
        assert stopped(process)[0] == 0


def requests_of_the_page():
    """Each `curl` line of the page: its words, and what the page shows as the answer to it."""
    return [
        (words_of(command), block.printed if command == block.commands[-1] else [])
        for block in read_blocks(PAGE)
        for command in block.commands
        if command.startswith("curl")
    ]


def test_every_curl_line_of_the_page_is_answered(tmp_path, monkeypatch):
    """As `curl` would send it; the shape of the answer is the one that the page shows."""
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
    lines = requests_of_the_page()
    assert len(lines) >= 8
    monkeypatch.setenv("HEADSTART_TOKEN", "s3cret")
    clients = {
        port: client_of(create_app(open_model(runs[name]), ServeConfig()))
        for port, name in ports.items()
    }
    for client in clients.values():
        client.__enter__()
    try:
        for words, printed in lines:
            port, method, path, headers, body = read_curl(words)
            headers.setdefault("Authorization", "Bearer s3cret")
            reply = clients[port].request(method, path, headers=headers, content=body)
            assert reply.status_code == 200, f"{shlex.join(words)}\n{reply.text}"
            if printed and printed[0][:1] in "[{":
                assert shape(reply.json()) == shape(json.loads("".join(printed))), words
    finally:
        for client in clients.values():
            client.__exit__(None, None, None)


def read_curl(words):
    """The request of a `curl` line with -H and -d."""
    headers, body, url = {}, None, None
    rest = iter(words[1:])
    for word in rest:
        if word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value.replace("$HEADSTART_TOKEN", "s3cret")
        elif word == "-d":
            body = next(rest)
        else:
            assert not word.startswith("-"), f"the test does not know {word}"
            url = word
    found = re.fullmatch(r"(?:http://)?127\.0\.0\.1:(\d+)(/\S*)", url)
    return int(found[1]), "GET" if body is None else "POST", found[2], headers, body


def shape(value):
    """What does not depend on the weights: names and kinds, of lists the first's."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items() if name != "run"}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__.replace("int", "number").replace("float", "number")
