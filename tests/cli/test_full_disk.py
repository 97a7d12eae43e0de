"""A file that cannot be written any further, at any point: one message, and nothing half-written.

A limit on the size of files stands in for a full disk: it needs no other disk, and the system
refuses to write in the same way.
"""

import sys

import pytest

from tests.labelled import TINY, dataset, write_csv

resource = pytest.importorskip("resource", reason="limits on files need Unix")


def limited(size):
    """What a child process does first: it may not write files of more than `size` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def assert_one_message(result, folder):
    assert result.returncode == 2, result.stderr
    assert "a file may not become that large here" in result.stderr
    assert "Traceback" not in result.stderr
    assert [path for path in folder.rglob("*") if path.name.endswith(".part")] == []


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("size", [10, 1_000, 15_000, 40_000])
def test_fine_tuning_ends_with_one_message_and_leaves_no_parts(headstart, tmp_path, size):
    data = write_csv(tmp_path / "d.csv", dataset(60))
    sizes = {**TINY, "epochs": 1, "threads": 1, "precision": "fp32"}
    sizes["feed_forward"] = sizes.pop("feed_forward_width")
    named = [word for n, v in sizes.items() for word in (f"--{n.replace('_', '-')}", v)]
    arguments = ["finetune", data, "--base", "none", "--out", tmp_path / "run", *named]
    result = headstart(*arguments, preexec_fn=limited(size))
    assert_one_message(result, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_tokenizer_that_cannot_be_saved_keeps_the_old_one(headstart, tmp_path):
    (tmp_path / "c.txt").write_text("a small text of words\n" * 50)
    (tmp_path / "t.json").write_text("old")
    arguments = ["tokenizer", tmp_path / "c.txt", "--out", tmp_path / "t.json"]
    result = headstart(*arguments, "--vocab-size", 300, preexec_fn=limited(1_000))
    assert_one_message(result, tmp_path)
    assert (tmp_path / "t.json").read_text() == "old"
