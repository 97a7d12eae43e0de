"""kill -9 at any moment while a store is written: the next run's store is whole and the same."""

import random
import time
from functools import partial
from pathlib import Path

import pytest

from headstart.data.token_store import is_complete, store_corpus
from tests.conftest import Result
from tests.forked import Fork

pytestmark = pytest.mark.slow

KILLS = 12


class Words:
    """Documents of words that have no end of different ones."""

    def __iter__(self):
        chance = random.Random(1)
        for _ in range(3000):
            yield " ".join(f"w{chance.randrange(30000)}" for _ in range(80))


def start(tokenizer, folder: Path) -> Fork:
    """A process that writes the store."""
    return Fork(partial(write, tokenizer, folder))


def write(tokenizer, folder: Path) -> Result:
    store_corpus(Words(), tokenizer, folder, fingerprint="words")
    return Result([], 0, "", "")


def finish(tokenizer, folder: Path) -> tuple[Path, float]:
    """An undisturbed writer: where the store is, and how long it took."""
    process = start(tokenizer, folder)
    begin = time.monotonic()
    assert process.wait() == 0
    (store,) = (path for path in folder.iterdir() if path.is_dir())
    return store, time.monotonic() - begin


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_store_is_whole_and_equal_after_kills_at_random_moments(bpe, tmp_path):
    undisturbed, seconds = finish(bpe, tmp_path / "undisturbed")
    expected = contents(undisturbed)
    folder = tmp_path / "killed"
    chance = random.Random(0)
    halves_seen = 0
    for _ in range(KILLS):
        start(bpe, folder).kill(after=chance.uniform(0, seconds))
        halves_seen += any(folder.glob("*.part"))
        store = folder / undisturbed.name
        if store.exists():  # it was quicker than the kill
            assert is_complete(store)
            assert contents(store) == expected
            store.rename(tmp_path / f"finished-{chance.random()}")
    assert halves_seen, "no kill came while the store was being written"
    again, _ = finish(bpe, folder)
    assert contents(again) == expected
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [undisturbed.name]
