"""Every row has its place, also one that cannot be read."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.columns import ReadOptions
from headstart.data.readers import open_rows
from headstart.data.sources import find_source
from headstart.errors import HeadstartError


def rows_of(path, pairs=False, **how):
    return list(open_rows(find_source(path), ReadOptions(**how), pairs=pairs, all_columns=True))


def problems(rows):
    return {row.number: row.problem.what for row in rows if row.problem is not None}


def test_good_rows_come_as_they_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,"one, two"\n2,"with ""quotes""\nand a line"\n3,three\n')
    assert [row.text for row in rows_of(path)] == [
        "one, two",
        'with "quotes"\nand a line',
        "three",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"5,five,too many\n", "3 columns, the header has 2"),
        (b"5\n", "1 column"),
        (b"5,caf\xe9\n", "byte 0xE9 is not text"),
        (b"5,a\x00b\n", "NUL"),
        (b"5,\n", "the text is empty"),
        (b'5,"never closed\n', "never closed"),
    ],
)
def test_a_broken_row_of_a_csv_keeps_its_place_and_costs_no_other(tmp_path, line, reason):
    path = tmp_path / "a.csv"
    good = [f"{n},text {n}\n".encode() for n in range(1, 10)]
    path.write_bytes(b"id,text\n" + b"".join(good[:4]) + line + b"".join(good[5:]))
    rows = rows_of(path)
    assert [row.number for row in rows] == list(range(1, 10))
    assert list(problems(rows)) == [5]
    assert reason in problems(rows)[5]
    assert [row.text for row in rows if row.problem is None] == [
        f"text {n}" for n in range(1, 10) if n != 5
    ]


def test_a_broken_line_of_json_keeps_its_place(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": f"text {n}"}) for n in range(5)]
    lines[2] = '{"text": "cut'
    lines[3] = '{"text": "\\ud83d half"}'
    path.write_text("\n".join(lines))
    found = problems(rows_of(path))
    assert list(found) == [3, 4]
    assert "not valid JSON" in found[3]
    assert "surrogate" in found[4]


def test_gzipped_and_other_encodings_are_read(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("text\ncafé\n".encode("cp1252")))
    assert [row.text for row in rows_of(path, encoding="cp1252")] == ["café"]
    wide = tmp_path / "b.csv"
    wide.write_text("text,x\ncafé,1\n", encoding="utf-16")
    assert [row.text for row in rows_of(wide, encoding="utf-16")] == ["café"]


def test_a_text_too_long_to_be_one_is_said_and_the_next_is_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("short\n" + "x" * ((16 << 20) + 5) + "\nlast\n")
    rows = rows_of(path)
    assert [row.text for row in rows if row.problem is None] == ["short", "last"]
    assert "longer than 16 MB" in problems(rows)[2]


def test_texts_that_come_alone_are_no_pairs(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(HeadstartError, match="no two text columns"):
        rows_of(tmp_path / "a.txt", pairs=True)


def test_a_damaged_gzip_file_and_an_unknown_encoding_are_said(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"text\n" + b"one\n" * 1_000)[:-20])
    with pytest.raises(HeadstartError, match="damaged or incomplete"):
        rows_of(path)
    with pytest.raises(HeadstartError, match="no encoding named 'klingon'"):
        rows_of(path, encoding="klingon")


cells = st.text(st.characters(exclude_characters='"\r\n\0', codec="utf-8"), min_size=1, max_size=5)


@given(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=8), st.data())
def test_one_unclosed_quotation_mark_costs_one_line(tmp_path_factory, table, data):
    lines = [",".join(f'"{cell}"' for cell in row) for row in table]
    broken = data.draw(st.integers(0, len(lines)))
    lines.insert(broken, 'a,"b')
    path = tmp_path_factory.mktemp("quotes") / "a.csv"
    path.write_bytes("\n".join(["text,other", *lines]).encode())
    rows = rows_of(path, text_column="text")
    assert len(rows) >= len(lines) - 1
    assert sum(row.problem is not None for row in rows[:broken]) == sum(
        not row[0].strip() for row in table[:broken]
    )
