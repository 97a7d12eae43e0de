"""`headstart app`: one server for a folder, on this machine alone."""

import json
import signal
import stat
import subprocess
import sys

import pytest
import uvicorn


def app(headstart, folder, *more):
    return headstart("app", "--folder", folder, "--no-browser", *more)


def test_each_start_has_another_key_and_only_its_owner_can_read_its_folder(
    headstart, tmp_path, monkeypatch
):
    hosts, modes = set(), []

    def serve(self, sockets):
        hosts.update(one.getsockname()[0] for one in sockets)
        modes.append(stat.S_IMODE((tmp_path / "studies").stat().st_mode))

    monkeypatch.setattr(uvicorn.Server, "run", serve)
    said = [json.loads(app(headstart, tmp_path, "--port", 0, "--json").stdout) for _ in range(2)]
    keys = {one["address"].partition("#key=")[2] for one in said}
    assert len(keys) == 2
    assert hosts == {"127.0.0.1"}
    assert modes == [0o700] * 2
    saved = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(key in path.read_text() for path in saved for key in keys)


def test_the_browsers_command_line_holds_no_key(headstart, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = headstart("app", "--folder", tmp_path, "--port", 0, "--json")
    key = json.loads(result.stdout)["address"].partition("#key=")[2]
    assert key not in opened[0]
    assert "#ticket=" in opened[0]


def test_without_the_extra_it_says_what_to_install(headstart, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = app(headstart, tmp_path)
    assert result.returncode == 2
    assert "headstart[serve]" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it(tmp_path, number):
    options = ["--folder", tmp_path, "--no-browser", "--port", "0"]
    command = [sys.executable, "-m", "headstart", "app", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert "#key=" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(60) == 0, process.stderr.read()
