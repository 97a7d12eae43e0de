"""Every sentence has its place, also one that cannot be read."""

import pytest

from headstart.data.columns import ReadOptions
from headstart.data.readers import ends_in_tags, open_rows
from headstart.data.sources import find_source


def sentences(path, encoding="utf-8"):
    return list(open_rows(find_source(path, "conll"), ReadOptions(encoding=encoding)))


@pytest.mark.parametrize("tag", ["", " O", "\tX\tO"])
def test_words_are_read_with_tags_or_without(tmp_path, tag):
    path = tmp_path / "a.conll"
    path.write_text(f"-DOCSTART-{tag}\n\n# a comment\nMarie{tag}\nsleeps{tag}\n\n\nYes{tag}\n")
    assert [one.words for one in sentences(path)] == [["Marie", "sleeps"], ["Yes"]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b"caf\xe9 O\n", "byte 0xE9"), (b"a\x00b O\n", "NUL"), (b"\tO\n", "line 4")],
)
def test_a_broken_sentence_keeps_its_place_and_costs_no_other(tmp_path, line, reason):
    (tmp_path / "a.conll").write_bytes(b"one O\n\ntwo O\n" + line + b"\nthree O\n")
    found = sentences(tmp_path / "a.conll")
    assert [one.number for one in found] == [1, 2, 3]
    assert [one.problem is None for one in found] == [True, False, True]
    assert reason in found[1].problem.what


def test_a_sentence_that_never_ends_is_not_gathered(tmp_path, monkeypatch):
    monkeypatch.setattr("headstart.data.readers.LONGEST_DOCUMENT", 20)
    (tmp_path / "a.conll").write_text("one O\n" * 50 + "\nlast O\n")
    endless, last = sentences(tmp_path / "a.conll")
    assert "no blank line" in endless.problem.what
    assert len(endless.words) < 10
    assert last.problem is None


def test_lines_that_end_in_the_tags_are_told_from_texts(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Marie B-PER\nsleeps O\n\nlost\n")
    assert ends_in_tags(find_source(path, "conll"), "utf-8", ("O", "B-PER"))
    path.write_text("Marie lives in Paris .\nSo do I\n")
    assert not ends_in_tags(find_source(path, "conll"), "utf-8", ("O", "B-PER"))
