"""`headstart doctor`."""

import os

import pytest

from headstart.data.corpus import TextList
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
    """A cache with two stores, of which one is damaged, and half of a third."""
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    tokenizer = train_tokenizer(["a b c"], vocab_size=262)
    for name in ("one", "two"):
        store_corpus(TextList([f"{name} text"]), tokenizer, tmp_path / "stores")
    damaged = sorted((tmp_path / "stores").glob("*/all-00000.bin"))[0]
    damaged.write_bytes(damaged.read_bytes()[::-1])
    (tmp_path / "stores" / "third.part").mkdir()
    return tmp_path / "stores", damaged.parent


def test_the_cache_is_checked_in_full(cache, headstart_json, headstart):
    _, damaged = cache
    found = headstart_json("doctor", "--cache")["found"]
    states = {one["path"]: one["state"] for one in found}
    assert sorted(states.values()) == ["damaged", "half-written", "whole"]
    assert states[str(damaged)] == "damaged"
    assert "--prune" in headstart("doctor", "--cache").stdout


def test_pruning_removes_what_is_damaged_or_was_long_not_used(cache, headstart_json):
    folder, _ = cache
    removed = headstart_json("doctor", "--prune", 30)["removed"]
    assert sorted(one["state"] for one in removed) == ["damaged", "half-written"]
    (kept,) = (path for path in folder.iterdir() if path.is_dir())
    for path in kept.iterdir():
        os.utime(path, (0, 0))
    assert len(headstart_json("doctor", "--prune", 30)["removed"]) == 1
    assert [path for path in folder.iterdir() if path.is_dir()] == []


def test_a_store_that_nobody_opened_for_months_goes_when_another_is_made(cache):
    folder, damaged = cache
    (old,) = (path for path in folder.glob("*/manifest.json") if path.parent != damaged)
    os.utime(old, (0, 0))
    tokenizer = train_tokenizer(["a b c"], vocab_size=262)
    store_corpus(TextList(["three text"]), tokenizer, folder)
    assert not old.exists()
