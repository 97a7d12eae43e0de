"""Every kind of file gives the same rows."""

import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from headstart.data.columns import ReadOptions
from headstart.data.corpus import read_corpus
from headstart.data.readers import open_rows, strict
from headstart.data.sources import find_source
from tests.data.tables import CONTENT, ROWS


def rows_of(path, **how):
    opened = open_rows(find_source(path), ReadOptions(**how), labels="one")
    return [(row.text, row.label) for row in strict(opened)]


@pytest.mark.parametrize("name", [*CONTENT, "a.csv.gz", "a.jsonl.gz", "a.parquet.gz"])
def test_every_table_is_read(write, name):
    path = write(name, CONTENT[name.removesuffix(".gz")]())
    assert rows_of(path) == ROWS
    assert list(read_corpus(path)) == [text for text, _ in ROWS]


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
    ids=["returns", "blank-start", "empty-columns", "blank-lines", "bars", "quotes", "tabs"],
)
def test_untidy_csv_files_are_read(write, content):
    assert rows_of(write("a.csv", content)) == [("a b", "1"), ("c", "0")]


def test_what_was_found_is_said(write):
    opened = open_rows(find_source(write("a.csv", "text;label\na, b;1\n")), labels="one")
    assert opened.found == "semicolon-separated, text: 'text', label: 'label'"


def test_columns_and_encodings_can_be_named(write):
    path = write("a.csv", "id,words,kind\n1,hello,x\n")
    assert rows_of(path, text_column="words", label_column="kind") == [("hello", "x")]
    for encoding in ("cp1252", "utf-16"):
        path = write("a.csv.gz", "text,label\ncafé,1\n".encode(encoding))
        assert rows_of(path, encoding=encoding) == [("café", "1")]


def test_a_cell_of_some_megabytes_is_read_and_no_row_twice(write):
    cells = ["first"] * 1000 + ["book " * 1_000_000, "last"]
    path = write("a.csv", "text,label\n" + "".join(f"{cell},1\n" for cell in cells))
    assert [text for text, _ in rows_of(path)] == cells


def test_a_number_may_follow_a_text_as_a_label(write):
    path = write("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b", "label": 1.5}\n')
    assert rows_of(path) == [("a", "x"), ("b", "1.5")]


def test_class_names_inside_a_parquet_file_are_found(tmp_path):
    features = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}
    table = pa.table({"text": ["a"], "label": [1]}).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet") == [("a", "pos")]
