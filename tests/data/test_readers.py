"""Every file format gives the same rows; a bad row does not affect the others."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from headstart.data.columns import ReadOptions, choose_columns
from headstart.data.corpus import read_corpus
from headstart.data.readers import open_rows, strict
from headstart.data.sources import find_source
from headstart.errors import HeadstartError

# Quotes, delimiters, a line break and other scripts: what an untidy file has.
ROWS = [
    ('A fine film; truly, "fine"', "good"),
    ("Dull\nand long, alas", "bad"),
    ("très émouvant, 本当に", "good"),
    ("No\tthank you", "bad"),
]
RECORDS = [{"text": text, "label": label} for text, label in ROWS]


def delimited(delimiter):
    rows = [[cell.replace('"', '""') for cell in row] for row in ROWS]
    lines = [f"text{delimiter}label", *(f'"{a}"{delimiter}"{b}"' for a, b in rows)]
    return ("\n".join(lines) + "\n").encode()


def parquet_bytes():
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(RECORDS), sink)
    return sink.getvalue().to_pybytes()


def rows_of(path, **how):
    opened = open_rows(find_source(path), ReadOptions(**how), labels="one")
    return [(row.text, row.label) for row in strict(opened)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", delimited(",")),
        ("semicolon.csv", delimited(";")),
        ("bom.csv", b"\xef\xbb\xbf" + delimited(",")),
        ("utf-16.csv", delimited(",").decode().encode("utf-16")),
        ("windows.csv", delimited(",").replace(b"\n", b"\r\n")),
        ("blank-lines.csv", delimited(",").replace(b'"good"\n', b'"good"\n\n')),
        ("a.csv.gz", gzip.compress(delimited(","), mtime=0)),
        ("a.tsv", delimited("\t")),
        ("a.jsonl", "\n".join(map(json.dumps, RECORDS)).encode()),
        ("a.jsonl.gz", gzip.compress("\n".join(map(json.dumps, RECORDS)).encode(), mtime=0)),
        ("a.json", json.dumps(RECORDS).encode()),
        ("a.parquet", parquet_bytes()),
    ],
)
def test_every_table_is_read(write, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert rows_of(tmp_path / name) == ROWS
    assert list(read_corpus(tmp_path / name)) == [text for text, _ in ROWS]


@pytest.mark.parametrize(
    "content",
    [
        "text,label\ra b,1\rc,0\r",
        "\n\ntext,label\na b,1\nc,0",
        "text;label;;\na b;1;;\nc;0;;\n",
        "id|text|label\n1|a b|1\n2|c|0\n",
        '"text","label"\n"a b","1"\n"c","0"\n',
        "text\tlabel\na b\t1\nc\t0\n",
    ],
    ids=["returns", "blank-start", "empty-columns", "bars", "quotes", "tabs"],
)
def test_untidy_csv_files_are_read(write, content):
    path = write("a.csv", content)
    assert rows_of(path) == [("a b", "1"), ("c", "0")]
    assert "text: 'text', label: 'label'" in open_rows(find_source(path), labels="one").found


def test_columns_and_encodings_can_be_named(write):
    path = write("a.csv", "id,words,kind\n1,hello,x\n")
    assert rows_of(path, text_column="words", label_column="kind") == [("hello", "x")]
    path = write("a.csv.gz", "text,label\ncafé,1\n".encode("cp1252"))
    assert rows_of(path, encoding="cp1252") == [("café", "1")]


def test_a_cell_of_some_megabytes_is_read_and_no_row_twice(write):
    cells = ["first"] * 1000 + ["book " * 1_000_000, "last"]
    path = write("a.csv", "text,label\n" + "".join(f"{cell},1\n" for cell in cells))
    assert [text for text, _ in rows_of(path)] == cells


# Columns


TEXTS = [f"please help me with request {n}" for n in range(40)]
DATES = [f"2026-01-{n}" for n in range(40)]
TEAMS, CITIES, LANGUAGES = ["a", "b"] * 20, ["p", "q"] * 20, ["en", "fr"] * 20


def choose(columns, *, pairs=False, **wanted):
    names = [name for name, _ in columns]
    rows = zip(*(values for _, values in columns), strict=True)
    sample = [dict(zip(names, row, strict=True)) for row in rows]
    return choose_columns(names, sample, ReadOptions(**wanted), pairs=pairs)


@pytest.mark.parametrize(
    ("columns", "text", "label", "guessed"),
    [
        ([("id", DATES), (" Content ", TEXTS), ("label", TEAMS)], " Content ", "label", 0),
        ([("team", TEAMS), ("message", TEXTS)], "message", "team", 0),
        ([("what", TEXTS), ("team", TEAMS), ("date", DATES)], "what", "team", 2),
        ([("text", TEXTS), ("lang", LANGUAGES), ("id", DATES)], "text", "lang", 1),
    ],
)
def test_columns_are_found_by_name_or_by_values(columns, text, label, guessed):
    found = choose(columns)
    assert (found.text, found.label, len(found.guessed)) == (text, label, guessed)


@pytest.mark.parametrize("names", [("Premise", "Hypothesis"), ("left", "right")])
def test_the_texts_of_a_pair_are_found_by_name_or_given(names):
    given = {"text_column": "left", "second_column": "right"} if names[0] == "left" else {}
    columns = [(names[0], TEXTS), (names[1], TEXTS), ("label", TEAMS)]
    found = choose(columns, pairs=True, **given)
    assert (found.text, found.second) == names


@pytest.mark.parametrize(
    ("columns", "options", "code"),
    [
        ([("text", TEXTS), ("team", TEAMS), ("city", CITIES)], {}, "label-column"),
        ([("id", DATES), ("text", TEXTS)], {}, "label-column"),
        ([("A film that I like", TEXTS), ("a", TEAMS)], {}, "column-names"),
        ([("text", TEXTS), ("text", TEXTS), ("label", TEAMS)], {}, "column-names"),
        ([("text", TEXTS), ("label", TEAMS)], {"text_column": "T"}, "text-column"),
        ([(f"column {n}", TEAMS) for n in range(10_000)], {}, "text-column"),
        ([(name, TEXTS) for name in "abc"], {"pairs": True}, "second-column"),
    ],
)
def test_unclear_columns_are_an_error_that_lists_some_of_them(columns, options, code):
    with pytest.raises(HeadstartError) as error:
        choose(columns, **options)
    assert error.value.code == code
    assert len(str(error.value)) < 1_000


# CoNLL and SQuAD


def sentences(path):
    return list(open_rows(find_source(path, "conll")))


@pytest.mark.parametrize("tag", ["", " O", "\tX\tO"])
def test_words_are_read_with_tags_or_without(write, tag):
    path = write("a.conll", f"-DOCSTART-{tag}\n\n# note\nMarie{tag}\nsleeps{tag}\n\n\nYes{tag}\n")
    assert [one.words for one in sentences(path)] == [["Marie", "sleeps"], ["Yes"]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"caf\xe9 O\n", "byte 0xE9"),
        (b"\tO\n", "line 4"),
    ],
)
def test_a_broken_sentence_keeps_its_place_and_costs_no_other(write, line, reason):
    found = sentences(write("a.conll", b"one O\n\ntwo O\n" + line + b"\nthree O\n"))
    assert [one.number for one in found] == [1, 2, 3]
    assert [one.problem is None for one in found] == [True, False, True]
    assert reason in found[1].problem.what


def test_a_sentence_that_never_ends_is_not_gathered(write, monkeypatch):
    for module in ("readers", "sources"):
        monkeypatch.setattr(f"headstart.data.{module}.LONGEST_DOCUMENT", 20)
    endless, last = sentences(write("a.conll", "one O\n" * 50 + "\nlast O\n"))
    assert "longer than" in endless.problem.what
    assert len(endless.words) < 10
    assert last.problem is None


def questions(write, *asked, **how):
    paragraphs = [{"context": "a cat", "qas": asked}]
    path = write("a.json", json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return list(open_rows(find_source(path, "squad"), pairs=True, **how))


def test_answers_are_only_looked_at_in_training(write):
    wrong = {"text": "dog", "answer_start": 99}
    asked = {"id": "x", "question": "who?", "answers": [wrong]}
    (found,) = questions(write, asked)
    assert (found.text, found.columns["id"], found.problem) == (("who?", "a cat"), "x", None)
    (checked,) = questions(write, asked, labels="one")
    assert "is not at character 99" in checked.problem.what


@pytest.mark.parametrize("asked", [{"id": "x"}, {"id": "x", "question": 7}, "who?"])
def test_a_broken_question_keeps_its_place(write, asked):
    good = {"question": "who?"}
    found = questions(write, good, asked, good)
    assert [one.number for one in found] == [1, 2, 3]
    assert [one.problem is None for one in found] == [True, False, True]


@pytest.mark.parametrize("content", ["[]", '{"data": ["x"]}', '{"data": [{}, 1]}'])
def test_json_that_is_not_squads_is_rejected(write, content):
    with pytest.raises(HeadstartError, match="JSON") as error:
        open_rows(find_source(write("a.json", content), "squad"), pairs=True)
    assert "paragraphs" in error.value.fix
