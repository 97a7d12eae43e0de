"""A name of the Hub becomes a revision, then a folder; whatever goes wrong is one message."""

from types import SimpleNamespace

import pytest

from headstart.errors import HeadstartError
from headstart.interop.huggingface import find_folder, pin

pytest.importorskip("huggingface_hub")


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Replace the Hub by one with a single model; returns the requested downloads."""
    found = []

    def download(name, **how):
        found.append((name, how["revision"]))
        return str(tmp_path)

    newest = SimpleNamespace(model_info=lambda name, timeout: SimpleNamespace(sha="abc"))
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: newest)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return found


def test_a_name_is_pinned_to_its_revision_and_downloaded_at_it(asked, tmp_path):
    assert pin("owner/name") == pin("owner/name@abc") == "owner/name@abc"
    for name in ("owner/name", "owner/name@abc"):
        assert find_folder(name) == tmp_path
    assert asked == [("owner/name", "abc")] * 2


def test_a_folder_is_itself_and_a_missing_one_is_not_looked_up(asked, tmp_path):
    assert pin(str(tmp_path)) == str(tmp_path) == str(find_folder(str(tmp_path)))
    with pytest.raises(HeadstartError, match="no such folder"):
        find_folder(f"{tmp_path}/nowhere")
    assert asked == []


def test_without_a_network_there_is_one_message(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HeadstartError, match="did not send this model"):
        pin("owner/name")


def test_a_download_that_breaks_off_says_how_to_go_on(asked, monkeypatch):
    def broken(name, **how):
        raise OSError("the connection\nwas closed")

    monkeypatch.setattr("huggingface_hub.snapshot_download", broken)
    with pytest.raises(HeadstartError, match="the connection was closed") as error:
        find_folder("owner/name")
    assert error.value.where == "hf:owner/name"
    assert "start the same command again" in error.value.fix
