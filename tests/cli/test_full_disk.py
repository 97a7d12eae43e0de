"""A file that cannot be written any further, at any point: one message, and nothing half-written.

A limit on the size of files stands in for a full disk: it needs no other disk, and the system
refuses to write in the same way.
"""

import sys
from functools import partial

import pytest

from tests.forked import start
from tests.labelled import TINY, dataset, write_csv

pytestmark = pytest.mark.slow

resource = pytest.importorskip("resource", reason="limits on files need Unix")


def limited(size):
    """What a process does first: it may not write files of more than `size` bytes."""
    return partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


def assert_one_message(process, folder):
    assert process.wait() == 2, process.messages
    assert "a file may not become that large here" in process.messages
    assert "Traceback" not in process.messages
    assert [path for path in folder.rglob("*") if path.name.endswith(".part")] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("size", [10, 1_000, 15_000, 40_000])
def test_fine_tuning_ends_with_one_message_and_leaves_no_parts(tmp_path, size):
    data = write_csv(tmp_path / "d.csv", dataset(60))
    sizes = {**TINY, "epochs": 1, "threads": 1, "precision": "fp32"}
    named = [word for n, v in sizes.items() for word in (f"--{n.replace('_', '-')}", v)]
    arguments = ["finetune", data, "--out", tmp_path / "run", *named]
    process = start(arguments, first=limited(size))
    assert_one_message(process, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_tokenizer_that_cannot_be_saved_keeps_the_old_one(tmp_path):
    (tmp_path / "c.txt").write_text("a small text of words\n" * 50)
    (tmp_path / "t.json").write_text("old")
    arguments = ["tokenizer", tmp_path / "c.txt", "--out", tmp_path / "t.json"]
    process = start([*arguments, "--vocab-size", 300], first=limited(1_000))
    assert_one_message(process, tmp_path)
    assert (tmp_path / "t.json").read_text() == "old"
