"""After a kill -9 while a store is written, the next run writes the same complete store."""

import random
import time
from functools import partial
from pathlib import Path

import pytest

from headstart.data.batches import is_complete, store_corpus
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


def write(tokenizer, folder: Path) -> Result:
    store_corpus(Words(), tokenizer, folder, fingerprint="words")
    return Result([], 0, "", "")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_store_is_whole_and_equal_after_kills_at_random_moments(bpe, tmp_path):
    begin = time.monotonic()
    assert Fork(partial(write, bpe, tmp_path / "undisturbed")).wait() == 0
    seconds = time.monotonic() - begin
    (undisturbed,) = (path for path in (tmp_path / "undisturbed").iterdir() if path.is_dir())
    folder, chance, halves_seen = tmp_path / "killed", random.Random(0), 0
    store = folder / undisturbed.name
    for number in range(KILLS):
        Fork(partial(write, bpe, folder)).kill(after=chance.uniform(0, seconds))
        halves_seen += any(folder.glob("*.part"))
        if store.exists():  # it was quicker than the kill
            assert is_complete(store)
            assert contents(store) == contents(undisturbed)
            store.rename(tmp_path / f"finished-{number}")
    assert halves_seen, "no kill came while the store was being written"
    assert Fork(partial(write, bpe, folder)).wait() == 0
    assert contents(store) == contents(undisturbed)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [undisturbed.name]
