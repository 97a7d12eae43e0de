"""Bytes that are not text have one message, with the place."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.errors import HeadstartError
from headstart.text.reading.records import read_lines
from headstart.text.reading.sources import Source, find_source
from headstart.text.reading.stream import BLOCK, read_checked


def read(path, encoding="utf-8"):
    return b"".join(read_checked(find_source(path), encoding))


def test_a_byte_that_is_not_utf_8_is_named_with_offset_and_line(write):
    path = write("a.txt", b"fine\nun caf\xe9 noir\n")
    with pytest.raises(HeadstartError) as error:
        read(path)
    assert error.value.what == "byte 0xE9 at offset 11 is not UTF-8"
    assert error.value.where == f"{path}, line 2"
    assert "--encoding cp1252" in error.value.fix
    assert "café noir" in error.value.fix


def test_the_offset_is_right_far_into_a_large_file(write):
    start = "é".encode() * (BLOCK // 2 + 10) + b"x"
    with pytest.raises(HeadstartError) as error:
        read(write("a.txt", start + b"\xff"))
    assert f"offset {len(start):,}" in error.value.what


def test_a_character_cut_off_at_the_end_is_an_error(write):
    with pytest.raises(HeadstartError, match="0xC3 at offset 3"):
        read(write("a.txt", b"abc\xc3"))


def test_utf_16_is_recognised_by_its_mark(write):
    with pytest.raises(HeadstartError, match="utf-16") as error:
        read(write("a.txt", "hello".encode("utf-16")))
    assert error.value.fix == "--encoding utf-16"


def test_an_unknown_encoding_is_an_error(write):
    with pytest.raises(HeadstartError, match="no encoding named 'klingon'"):
        read(write("a.txt", "hello"), "klingon")


def test_a_nul_byte_is_named_with_its_line(write):
    path = write("a.txt", b"one\ntwo\nth\0ree\n")
    with pytest.raises(HeadstartError, match="NUL byte") as error:
        read(path)
    assert error.value.where == f"{path}, line 3"


def test_a_line_of_100_mb_is_an_error_with_its_line(write):
    path = write("a.txt", b"short\n" + b"x" * 100_000_000 + b"\n")
    with pytest.raises(HeadstartError, match="longer than 16 MB") as error:
        read(path)
    assert error.value.where == f"{path}, line 2"


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
    assert list(read_lines(Source(str(path), "text", path), "utf-8")) == lines


def test_lines_across_blocks_come_back_whole(write):
    lines = ["é" * 400_000, "b" * BLOCK, "c", "d" * (BLOCK - 1)]
    path = write("a.txt", "\r\n".join(lines))
    assert list(read_lines(find_source(path), "utf-8")) == lines
