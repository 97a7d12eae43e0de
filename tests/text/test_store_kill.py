"""kill -9 at any moment while a store is written: the next run's store is whole and the same."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headstart.text.store.token_store import TokenStore

KILLS = 12

WRITER = """
import random, sys
from pathlib import Path
from headstart.text.store.write_store import store_corpus
from headstart.text.tokenizers.tokenizer import load_tokenizer

class Corpus:
    fingerprint = "words"
    def __iter__(self):
        chance = random.Random(1)
        for number in range(3000):
            yield " ".join(f"w{chance.randrange(30000)}" for _ in range(80))

tokenizer = load_tokenizer(sys.argv[1])
print("ready", flush=True)
store = store_corpus(Corpus(), tokenizer, Path(sys.argv[2]), shard_tokens=1 << 15)
print(store.folder, flush=True)
"""


def start(tokenizer_file: Path, folder: Path) -> subprocess.Popen[str]:
    """A writer that has finished its imports."""
    arguments = [sys.executable, "-c", WRITER, str(tokenizer_file), str(folder)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(tokenizer_file: Path, folder: Path) -> tuple[Path, float]:
    """An undisturbed writer: where the store is, and how long it took."""
    process = start(tokenizer_file, folder)
    begin = time.monotonic()
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return Path(output.strip()), time.monotonic() - begin


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_store_is_whole_and_equal_after_kills_at_random_moments(bpe, tmp_path):
    tokenizer_file = bpe.save(tmp_path / "tokenizer.json")
    undisturbed, seconds = finish(tokenizer_file, tmp_path / "undisturbed")
    expected = contents(undisturbed)
    folder = tmp_path / "killed"
    chance = random.Random(0)
    halves_seen = 0
    for _ in range(KILLS):
        process = start(tokenizer_file, folder)
        time.sleep(chance.uniform(0, seconds))
        process.kill()
        process.communicate()
        halves_seen += any(folder.glob("*.part"))
        store = folder / undisturbed.name
        if store.exists():  # it was quicker than the kill
            TokenStore(store)
            assert contents(store) == expected
            store.rename(tmp_path / f"finished-{chance.random()}")
    assert halves_seen, "no kill came while the store was being written"
    again, _ = finish(tokenizer_file, folder)
    assert contents(again) == expected
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [undisturbed.name]
