"""`headstart doctor`."""

import os

import pytest

from headstart.data.token_store import store_corpus
from headstart.data.tokenizers import train_tokenizer


def test_json_tells_the_machine_and_the_choices(headstart_json):
    document = headstart_json("doctor", "--device", "cpu", "--threads", 1)
    assert document["machine"]["memory_bytes"] > 0
    assert document["choices"]["device"] == "cpu"
    assert document["choices"]["threads"] == 1
    assert document["choices"]["precision"]["precision"] in ("fp32", "bf16")


def test_the_page_says_why_a_precision_was_chosen(headstart):
    page = headstart("doctor").stdout
    assert "What Headstart uses" in page
    assert "times" in page


def test_a_device_that_does_not_exist_ends_with_code_2(headstart):
    result = headstart("doctor", "--device", "abacus")
    assert result.returncode == 2
    assert "fix:" in result.stderr


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with two stores, and half of a third."""
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    tokenizer = train_tokenizer(["a b c"], vocab_size=262)
    for name in ("one", "two"):
        store_corpus([f"{name} text"], tokenizer, tmp_path / "stores", fingerprint=name)
    (tmp_path / "stores" / "third.part").mkdir()
    return tmp_path / "stores"


def test_the_cache_is_listed_with_its_sizes(cache, headstart_json):
    found = headstart_json("doctor", "--cache")["found"]
    assert {one["path"] for one in found} == {
        str(path) for path in cache.iterdir() if path.is_dir()
    }
    assert sorted(one["bytes"] > 0 for one in found) == [False, True, True]


def test_pruning_removes_what_was_long_not_used(cache, headstart_json):
    assert headstart_json("doctor", "--prune", 30)["removed"] == []
    folders = [path for path in cache.iterdir() if path.is_dir()]
    for folder in folders[1:]:
        for path in (folder, *folder.iterdir()):
            os.utime(path, (0, 0))
    removed = headstart_json("doctor", "--prune", 30)["removed"]
    assert {one["path"] for one in removed} == set(map(str, folders[1:]))
    assert [path for path in cache.iterdir() if path.is_dir()] == folders[:1]
