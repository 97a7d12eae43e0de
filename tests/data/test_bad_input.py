"""A bad input is one message with its cause, place and fix; in prediction it costs one row."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.columns import ReadOptions
from headstart.data.corpus import read_corpus
from headstart.data.read import read_dataset
from headstart.data.readers import open_rows
from headstart.data.sources import find_source
from headstart.errors import HeadstartError

HEAD = "text,label\n"
NESTED = "[" * 100_000
DIGITS = '{"text": ' + "9" * 5_000 + "}"


@pytest.mark.parametrize(
    ("name", "content", "message", "place"),
    [
        ("a.csv", "", "is empty", ""),
        ("a.jsonl", "", "is empty", ""),
        ("a.json", "", "is empty", ""),
        ("a.csv", HEAD, "holds no rows", ""),
        ("a.csv", HEAD + "a,1\nb,1\n", "one class only", ""),
        ("a.csv", HEAD + "a,1\nb,1\nc,0\n", "1 of 2 classes have fewer than two .*: '0'", ""),
        ("a.csv", "id,words\n1,hello\n", "no text column.*'id', 'words'", ""),
        ("a.csv", HEAD + "a,1\nb,\n", "label is missing", ", row 2 (line 3)"),
        ("a.csv", HEAD + "a,1\nb,<NA>\n", "label is missing", ", row 2 (line 3)"),
        ("a.jsonl", '{"text": "b", "label": NaN}\n', "label is missing", ", line 1"),
        ("a.jsonl", '{"text": 5, "label": 1}\n', "not text but a int", ", line 1"),
        ("a.jsonl", '{"text": "a", "label": [1, 2]}\n', "not one value but a list", ", line 1"),
        ("a.jsonl", '{"text": "a\\u0000b", "label": 1}\n', "NUL", ", line 1"),
        ("a.jsonl", '{"text": "a\\ud83d", "label": 1}\n', "U\\+D83D", ", line 1"),
        ("a.jsonl", '{"text": "a", "label": 1}\n\n{"text": \n', "not valid JSON", ", line 3"),
        ("a.jsonl", '{"text": "a", "label": 1}\n[1, 2]\n', "object was expected", ", line 2"),
        ("a.jsonl", NESTED, "not valid JSON", ", line 1"),
        ("a.json", DIGITS, "not valid JSON", ""),
        ("a.json", '{"train": [], "test": []}', "train, test", ""),
        ("a.parquet", b"no parquet at all", "Parquet", ""),
        ("a.txt", "hello\n", "no labels", ""),
        ("a.csv", HEAD.encode() + b"a,1\ncaf\xe9,0\n", "byte 0xE9 .* UTF-8", ", row 2 (line 3)"),
        ("a.csv", HEAD + '"two\nlines",1\n\nb,0\na, b,1\n', "has 3 columns", ", row 3 (line 6)"),
        ("a.csv", HEAD + 'fine,1\n"open,0\nb,1\n', "quotation mark opens here", ", row 2 (line 3)"),
        ("a.csv", HEAD + "a,1\n" + "x" * (17 << 20) + ",1", "than 16 MB", ", row 2 (line 3)"),
        ("a.csv", HEAD + "a,1\n" * 10_000 + "b\n", "has 1 column", ", row 10001 (line 10002)"),
    ],
)
def test_a_bad_file_is_one_message_with_its_place(write, name, content, message, place):
    path = write(name, content)
    with pytest.raises(HeadstartError, match=message) as error:
        read_dataset(path)
    assert error.value.where in (f"{path}{place}", path.name)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet.gz"])
def test_a_damaged_gzip_file_is_an_error(tmp_path, name):
    for content in (gzip.compress(b"text\n" + b"one\n" * 1_000)[:-20], b"not gzipped"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(HeadstartError, match="damaged or incomplete"):
            read_dataset(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16"])
def test_the_advice_for_another_encoding_leads_to_the_text(write, encoding):
    rows = "".join(f"größe {n},{n % 2}\n" for n in range(20))
    path = write("a.csv", f"text,label\n{rows}".encode(encoding))
    with pytest.raises(HeadstartError) as error:
        read_dataset(path)
    assert error.value.fix == f"--encoding {encoding}"
    assert read_dataset(path, encoding=encoding).train.texts[0].startswith("größe")


@pytest.mark.parametrize("encoding", ["rot13", "undefined", "nonsense"])
def test_a_codec_that_is_not_an_encoding_of_text_is_an_error(write, encoding):
    with pytest.raises(HeadstartError, match="no encoding named"):
        read_dataset(write("a.csv", "text,label\na,1\n"), encoding=encoding)


def test_an_unknown_label_in_validation_is_named_with_its_row(reviews, write):
    path = write("valid.csv", "text,label\nfine,1\nodd,2\n")
    with pytest.raises(HeadstartError, match="'2' does not occur in the training rows") as error:
        read_dataset(reviews, validation=path)
    assert error.value.where == f"{path}, row 2 (line 3)"


@pytest.mark.parametrize(
    ("name", "content", "options", "message", "fix"),
    [
        ("a.txt", "\n \n", {}, "no text", ""),
        ("a.csv", "a,b\n1,2\n", {}, "columns are 'a', 'b'", "--text-column"),
        ("a.txt", "x\n", {"documents": "page"}, "not a way", "blank-line"),
        ("a.xlsx", b"PK", {}, r"'\.xlsx' files cannot be read", "save it as CSV"),
        ("a.txt", "a" * (17 << 20), {"documents": "file"}, "too much to read", "--documents line"),
    ],
)
def test_a_bad_corpus_is_one_message(write, name, content, options, message, fix):
    with pytest.raises(HeadstartError, match=message) as error:
        read_corpus(write(name, content), **options)
    assert fix in (error.value.fix or "")


def test_a_missing_file_or_a_folder_without_text_is_an_error(tmp_path):
    with pytest.raises(HeadstartError, match="no file or folder") as error:
        read_corpus(tmp_path / "nothing.csv")
    assert "rotten-tomatoes, imdb" in error.value.fix
    with pytest.raises(HeadstartError, match="no readable file"):
        read_corpus(tmp_path)


def rows_of(path, **how):
    return list(open_rows(find_source(path), ReadOptions(**how), all_columns=True))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"5,five,too many\n", "3 columns, the header has 2"),
        (b"5,caf\xe9\n", "byte 0xE9 is not text"),
        (b"5,a\x00b\n", "NUL"),
        (b"5,\n", "the text is empty"),
        (b'5,"never closed\n', "never closed"),
        (b"5," + b"x" * (17 << 20) + b"\n", "longer than 16 MB"),
    ],
)
def test_a_broken_row_of_a_csv_keeps_its_place_and_costs_no_other(tmp_path, line, reason):
    good = [f"{n},text {n}\n".encode() for n in range(1, 10)]
    (tmp_path / "a.csv").write_bytes(b"id,text\n" + b"".join([*good[:4], line, *good[5:]]))
    rows = rows_of(tmp_path / "a.csv")
    assert [row.number for row in rows] == list(range(1, 10))
    assert reason in rows.pop(4).problem.what
    assert [row.text for row in rows] == [f"text {row.number}" for row in rows]


@pytest.mark.parametrize("broken", [NESTED, DIGITS, "{}", '{"other": 1}', '{"text": "\\ud83d"}'])
def test_one_strange_row_of_json_lines_costs_only_itself(write, broken):
    good = json.dumps({"text": "fine"})
    rows = rows_of(write("a.jsonl", f"{good}\n{broken}\n{good}\n"))
    assert [row.problem is None for row in rows] == [True, False, True]


def test_bytes_that_are_not_text_cost_their_own_line(write):
    lines = [b"fine", b"caf\xe9", *[b"\xc3\xa9"] * 200_000, b"th\0ree", b"cut \xc3"]
    bad = {
        row.number: row.problem.what
        for row in rows_of(write("a.txt", b"\n".join(lines)))
        if row.problem is not None
    }
    assert list(bad) == [2, 200_003, 200_004]
    wide = "ab".encode("utf-16-le") + b"\x00\xd8" + "c".encode("utf-16-le")
    (line,) = rows_of(write("b.txt", wide), encoding="utf-16-le")
    assert line.problem.code == "encoding"


def test_a_line_of_100_mb_is_cut_off_and_the_next_one_is_read(write):
    rows = rows_of(write("a.txt", b"short\n" + b"x" * 100_000_000 + b"\nlast\n"))
    assert [row.text for row in rows if row.problem is None] == ["short", "last"]
    assert "longer than 16 MB" in rows[1].problem.what


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
