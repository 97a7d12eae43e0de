"""Every kind of file gives the same rows."""

import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from headstart.data.columns import ReadOptions
from headstart.data.readers import open_rows, strict
from headstart.data.sources import find_source
from headstart.errors import HeadstartError
from tests.data.tables import CONTENT, ROWS


def rows_of(path, **how):
    opened = open_rows(find_source(path), ReadOptions(**how), labels="one")
    return [(row.text, row.label) for row in strict(opened)]


@pytest.mark.parametrize("gzipped", ["", ".gz"])
@pytest.mark.parametrize("name", CONTENT)
def test_every_table_is_read(write, name, gzipped):
    path = write(name + gzipped, CONTENT[name]())
    assert rows_of(path) == ROWS


def test_the_delimiter_that_was_found_is_said(write):
    opened = open_rows(find_source(write("a.csv", "text;label\na, b;1\n")), labels="one")
    assert opened.found == "semicolon-separated, text: 'text', label: 'label'"
    assert [row.text for row in opened] == ["a, b"]


def test_columns_can_be_named(write):
    path = write("a.csv", "id,words,kind\n1,hello,x\n")
    assert rows_of(path, text_column="words", label_column="kind") == [("hello", "x")]


def test_another_encoding_can_be_named(write):
    path = write("a.csv", "text,label\ncafé,1\n".encode("cp1252"))
    assert rows_of(path, encoding="cp1252") == [("café", "1")]


def test_utf_16_with_its_mark_is_read_when_named(write):
    path = write("a.csv", "text,label\ncafé,1\n".encode("utf-16"))
    assert rows_of(path, encoding="utf-16") == [("café", "1")]


def test_a_ragged_row_is_named_with_its_line(write):
    path = write("a.csv", 'text,label\n"two\nlines",1\n\nfine,0\none, two,1\n')
    with pytest.raises(HeadstartError) as error:
        rows_of(path)
    assert "this row has 3 columns, the header has 2" in error.value.what
    assert error.value.where == f"{path}, row 3 (line 6)"


def test_a_ragged_row_far_into_a_large_file_is_found(write):
    path = write("a.csv", "text,label\n" + "a text,1\n" * 10_000 + "a text\n")
    with pytest.raises(HeadstartError) as error:
        rows_of(path)
    assert error.value.where == f"{path}, row 10001 (line 10002)"


def test_a_quote_that_swallows_rows_of_a_tsv_is_an_error(write):
    path = write("a.tsv", 'text\tlabel\nfine\t1\n"open\t0\nnext\t1\nlast"\t0\n')
    with pytest.raises(HeadstartError, match="quotation mark") as error:
        rows_of(path)
    assert "row 2 (line 3)" in error.value.where


def test_a_csv_quote_that_is_never_closed_is_an_error_with_its_row(write):
    rest = "a perfectly ordinary row of text,1\n" * 600_000
    path = write("a.csv", 'text,label\nfine,1\n"open,0\n' + rest)
    with pytest.raises(HeadstartError, match="never closed") as error:
        rows_of(path)
    assert error.value.where == f"{path}, row 2 (line 3)"
    assert "quotation mark" in error.value.fix


def test_a_quote_that_is_never_closed_in_a_small_file_is_named_with_its_row(write):
    path = write("a.csv", 'text,label\nfine,1\n"open,0\nnext,1\nlast,0\n')
    with pytest.raises(HeadstartError, match="a quotation mark opens here") as error:
        rows_of(path)
    assert error.value.where == f"{path}, row 2 (line 3)"
    assert "close it" in error.value.fix


def test_a_cell_of_some_megabytes_is_read_and_no_row_twice(write):
    cells = ["first"] * 1000 + ["book " * 1_000_000, "last"]
    path = write("a.csv", "text,label\n" + "".join(f"{cell},1\n" for cell in cells))
    assert [text for text, _ in rows_of(path)] == cells


def test_a_cell_of_100_mb_is_an_error_with_its_row(write):
    path = write("a.csv", b"text,label\nfine,1\n" + b"x" * 100_000_000 + b",1\n")
    with pytest.raises(HeadstartError, match="longer than 16 MB") as error:
        rows_of(path)
    assert error.value.where == f"{path}, row 2 (line 3)"


def test_broken_json_is_named_with_its_line(write):
    path = write("a.jsonl", '{"text": "a", "label": 1}\n\n{"text": "b", \n')
    with pytest.raises(HeadstartError, match="not valid JSON") as error:
        rows_of(path)
    assert error.value.where == f"{path}, line 3"


def test_a_json_line_that_is_no_object_is_an_error(write):
    path = write("a.jsonl", '{"text": "a", "label": 1}\n[1, 2]\n')
    with pytest.raises(HeadstartError, match="object was expected") as error:
        rows_of(path)
    assert error.value.where == f"{path}, line 2"


def test_a_json_object_with_two_lists_is_not_guessed_at(write):
    path = write("a.json", json.dumps({"train": [], "test": []}))
    with pytest.raises(HeadstartError, match="train, test"):
        rows_of(path)


def test_a_json_number_label_may_follow_a_text_label(write):
    path = write("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b", "label": 1.5}\n')
    assert rows_of(path) == [("a", "x"), ("b", "1.5")]


def test_what_is_not_parquet_is_an_error(write):
    with pytest.raises(HeadstartError, match="Parquet"):
        rows_of(write("a.parquet", b"no parquet at all"))


def test_class_names_inside_a_parquet_file_are_found(tmp_path):
    features = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}
    table = pa.table({"text": ["a"], "label": [1]}).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    opened = open_rows(find_source(tmp_path / "a.parquet"), labels="one")
    assert opened.label_names == ["neg", "pos"]


def test_plain_text_is_no_dataset(write):
    with pytest.raises(HeadstartError, match="no labels") as error:
        rows_of(write("a.txt", "hello\n"))
    assert "--corpus" in error.value.fix


def test_a_damaged_gzip_of_a_parquet_file_is_an_error(tmp_path):
    (tmp_path / "a.parquet.gz").write_bytes(b"not gzipped")
    with pytest.raises(HeadstartError, match="gzip file is damaged"):
        rows_of(tmp_path / "a.parquet.gz")


@pytest.mark.parametrize(
    "content",
    [
        "text,label\ra b,1\rc,0\r",
        "\n\ntext,label\na b,1\nc,0",
        "text;label;;\na b;1;;\nc;0;;\n",
        "text,label\n\n\na b,1\n\nc,0\n\n",
        "id|text|label\n1|a b|1\n2|c|0\n",
        '"text","label"\n"a b","1"\n"c","0"\n',
        "text\tlabel\na b\t1\nc\t0\n",
    ],
    ids=[
        "carriage-returns",
        "blank-start",
        "empty-columns",
        "blank-lines",
        "bars",
        "quotes",
        "tabs",
    ],
)
def test_untidy_csv_files_are_read(write, content):
    assert rows_of(write("a.csv", content)) == [("a b", "1"), ("c", "0")]
