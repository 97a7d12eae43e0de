"""A download from the Hub that breaks off is completed by the next, and then needs no network."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headstart.errors import HeadstartError
from headstart.interop.hub import find_folder, pin

REVISION = "a" * 40
FILES = {
    "config.json": b"{}",
    "model-1.safetensors": b"1" * 300_000,
    "model-2.safetensors": b"2" * 300_000,
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    ).encode(),
    "tokenizer.json": b"{}" * 50_000,
    "tokenizer_config.json": b'{"model_max_length": 12}',
}


class Hub:
    """A Hub with one model, that breaks off in the middle of the files that `breaks` names."""

    def __init__(self, files=FILES):
        self.files = files
        self.breaks: set[str] = set()
        self.sent: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *given):
                pass

            def do_HEAD(self):
                self.do_GET(body=False)

            def do_GET(self, body=True):
                if "/api/models/owner/name" in self.path:
                    content = json.dumps(hub.answer(self.path)).encode()
                    return self.reply(content, {"Content-Type": "application/json"}, body)
                name = self.path.rpartition("/")[2]
                content = hub.files[name]
                tag = {"ETag": f'"{hash(content):x}"', "X-Repo-Commit": REVISION}
                if body:
                    hub.sent.append(name)
                    start = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
                    content = content[int(start[1]) :] if start else content
                    if name in hub.breaks:
                        self.reply(content, tag, body, length=len(content) // 2)
                        return self.close()
                return self.reply(content, tag, body)

            def reply(self, content, headers, body, length=None):
                self.send_response(206 if "Range" in self.headers else 200)
                for key, value in {**headers, "Content-Length": len(content)}.items():
                    self.send_header(key, str(value))
                self.end_headers()
                if body:
                    self.wfile.write(content[:length])

            def close(self):
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path):
        if "/tree/" in path:
            return [
                {"type": "file", "path": name, "size": len(content), "oid": f"{n:040x}"}
                for n, (name, content) in enumerate(self.files.items())
            ]
        siblings = [{"rfilename": name} for name in self.files]
        return {"id": "owner/name", "sha": REVISION, "siblings": siblings}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    started = Hub()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", started.address)
    place = started.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", place)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    yield started
    started.stop()


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["model-2.safetensors", "tokenizer.json"])
def test_a_download_that_breaks_off_is_completed_by_the_next_call(hub, name):
    pinned = pin("owner/name")
    assert pinned == pin(pinned) == f"owner/name@{REVISION}"
    hub.breaks = {name}
    with pytest.raises(HeadstartError, match="did not come to its end") as error:
        find_folder(pinned)
    assert "start the same command again" in error.value.fix
    hub.breaks = set()
    hub.sent.clear()
    assert read(find_folder(pinned)) == FILES
    assert "config.json" not in hub.sent  # what was whole is kept


def test_a_whole_download_needs_no_network(hub):
    folder = find_folder("owner/name")
    hub.stop()
    assert find_folder(f"owner/name@{REVISION}") == folder


def test_a_download_that_another_tool_began_is_completed(hub):
    from huggingface_hub import hf_hub_download

    for name in ("config.json", "model.safetensors.index.json", "model-1.safetensors"):
        hf_hub_download("owner/name", name, revision=REVISION)
    assert read(find_folder(f"owner/name@{REVISION}")) == FILES
