"""Files are whole or absent."""

import pytest

from headstart.files import replacing, write_text


def test_a_written_file_has_its_text(tmp_path):
    write_text(tmp_path / "deep" / "a.txt", "é\n")
    assert (tmp_path / "deep" / "a.txt").read_text(encoding="utf-8") == "é\n"


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise RuntimeError("the disk is full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
