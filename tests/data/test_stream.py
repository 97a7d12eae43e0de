"""Bytes that are not text have one message, with the place."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.sources import Source, find_source
from headstart.data.stream import Lines, check_text
from headstart.errors import HeadstartError


def read(path, encoding="utf-8"):
    return list(Lines(find_source(path), encoding))


def problem_of(line, encoding="utf-8"):
    try:
        check_text(line, encoding)
    except HeadstartError as problem:
        return problem
    return None


def test_a_byte_that_is_not_text_costs_its_own_line(write):
    first, second = read(write("a.txt", b"fine\nun caf\xe9 noir\n"))
    assert problem_of(first) is None
    problem = problem_of(second)
    assert problem.what == "byte 0xE9 is not text in UTF-8"
    assert "--encoding cp1252" in problem.fix


def test_a_bad_byte_far_into_a_large_file_is_found(write):
    lines = read(write("a.txt", "é\n".encode() * 200_000 + b"x\xff"))
    assert [number for number, line in enumerate(lines) if problem_of(line)] == [200_000]


def test_a_character_cut_off_at_the_end_is_a_problem(write):
    (line,) = read(write("a.txt", b"abc\xc3"))
    assert "0xC3" in problem_of(line).what


def test_bad_units_of_wide_encodings_are_problems(write):
    bad = "ab".encode("utf-16-le") + b"\x00\xd8" + "c".encode("utf-16-le")
    (line,) = read(write("a.txt", bad), "utf-16-le")
    assert problem_of(line, "utf-16-le").code == "encoding"


def test_utf_16_is_recognised_by_its_mark(write):
    with pytest.raises(HeadstartError, match="utf-16") as error:
        read(write("a.txt", "hello".encode("utf-16")))
    assert error.value.fix == "--encoding utf-16"


def test_an_unknown_encoding_is_an_error(write):
    with pytest.raises(HeadstartError, match="no encoding named 'klingon'"):
        read(write("a.txt", "hello"), "klingon")


def test_a_nul_byte_is_a_problem_of_its_line(write):
    lines = read(write("a.txt", b"one\ntwo\nth\0ree\n"))
    assert [problem_of(line) is None for line in lines] == [True, True, False]
    assert "NUL" in problem_of(lines[2]).what


def test_a_line_of_100_mb_is_cut_off_and_the_next_one_is_read(write):
    lines = read(write("a.txt", b"short\n" + b"x" * 100_000_000 + b"\nlast\n"))
    assert (len(lines), lines[0], lines[2]) == (3, "short", "last")
    assert "longer than 16 MB" in problem_of(lines[1]).what


def test_a_file_cut_off_while_gzipped_is_an_error(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"hello" * 1000)[:-12])
    with pytest.raises(HeadstartError, match="damaged or incomplete"):
        read(path)


def test_a_file_that_only_claims_to_be_gzipped_is_an_error(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(b"plain text")
    with pytest.raises(HeadstartError, match="damaged or incomplete"):
        read(tmp_path / "a.txt.gz")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0\r\ufeff"))))
def test_lines_come_back_as_they_were_written(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")
    assert list(Lines(Source(str(path), "text", path), "utf-8")) == lines


def test_lines_across_blocks_come_back_whole(write):
    lines = ["é" * 400_000, "b" * (1 << 20), "c", "d" * 9_999]
    path = write("a.txt", "\r\n".join(lines))
    assert read(path) == lines


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_file_that_is_too_large_to_be_read_at_once_is_an_error(write, name):
    lines = Lines(find_source(write(name, "[" + " " * 3_000_000 + "]")), "utf-8")
    with pytest.raises(HeadstartError, match="too much to read at once") as error:
        lines.text(1_000)
    assert "JSON Lines" in error.value.fix
