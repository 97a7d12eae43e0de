"""Rows in = rows used + rows reported; row numbers are those of the user's file."""

import json

import numpy as np
import pytest

from headstart.data import stream
from headstart.data.corpus import read_corpus
from headstart.data.read import guess_task, read_dataset, read_texts
from headstart.errors import HeadstartError
from headstart.tasks.classification import Classification


def table(rows, label="{}"):
    body = "".join(f"text {n} of many,{label.format(n % 2)}\n" for n in range(1, rows + 1))
    return "text,label\n" + body


def labelled(labels):
    rows = [{"text": f"text {n} of many", "label": label} for n, label in enumerate(labels * 10)]
    return "\n".join(map(json.dumps, rows))


def test_parts_and_mistakes_have_the_row_numbers_and_the_files_of_the_user(write):
    files = [str(write(name, table(200))) for name in ("a.csv", "b.csv")]
    splits = read_dataset(files[0])
    for part in splits.parts().values():
        assert [text.split()[1] for text in part.texts] == [str(row) for row in part.rows]
    assert sorted(row for part in splits.parts().values() for row in part.rows) == [*range(1, 201)]
    wrong = np.array([[4.0, 0.0] if label else [0.0, 4.0] for label in splits.test.labels])
    for mistake in Classification(("0", "1")).report(wrong, splits.test)["mistakes"]:
        assert mistake["text"] == f"text {mistake['row']} of many"
    assert read_dataset(files).train.place(0)["file"] in files


def test_a_table_is_read_once(write, monkeypatch):
    path, passes = write("a.csv", table(10_000)), []
    real = stream.Lines.__iter__
    monkeypatch.setattr(stream.Lines, "__iter__", lambda lines: passes.append(1) or real(lines))
    read_dataset(path)
    assert len(passes) == 1


@pytest.mark.parametrize(
    ("labels", "classes", "note"),
    [
        (["Pos", "pos", "third"], 3, "differ only in case"),
        (["é", "e\u0301", "third"], 3, "differ only in case"),
        (["a", "a\u200b", "third"], 3, "differ only in case"),
        (["1", "1.0", "0"], 2, "'1', '1.0' are one class"),
    ],
)
def test_labels_that_look_the_same_are_reported(write, labels, classes, note):
    splits = read_dataset(write("a.jsonl", labelled(labels)))
    assert len(splits.train.label_names) == classes
    assert any(note in one for one in splits.notes)
    assert read_dataset(write("b.csv", table(30, "{}.0"))).notes == ()


def test_a_long_label_is_shortened_in_messages(write):
    with pytest.raises(HeadstartError) as error:
        read_dataset(write("a.csv", table(30) + f"text,{'x' * 100_000}\n"))
    assert len(str(error.value)) < 1_000


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("a.conll", "Ada B-PER\nsleeps O\n", "tagging"),
        ("d/train.conll", "Ada B-PER\n", "tagging"),
        ("a.json", json.dumps({"data": [{"paragraphs": [{"qas": []}]}]}), "spans"),
        ("a.csv", "text,label\none,a|b\ntwo,c\n", "multi-label"),
        ("a.jsonl", '{"text": "one", "labels": ["a", "b"]}\n', "multi-label"),
        ("c.csv", "text1,text2,label\none day,two days,same\n", "pairs"),
        ("d.csv", "question,answer,label\nwhy is it,it is so,good\n", "classification"),
        ("b.csv", 'text,label\n"one | two",a\ntwo,b\n', "classification"),
        ("a.tsv", "broken", "classification"),
    ],
)
def test_a_file_implies_its_task(write, name, content, task):
    path = write(name, content)
    found, why = guess_task([path.parent if "/" in name else path])
    assert (found, why is None) == (task, task == "classification")


def test_texts_of_test_files_can_be_dropped_from_a_corpus(write):
    text = "a text of the test part that is long enough to be found inside of others"
    given = [write("test.csv", f"text,label\n{text},1\nshort,0\n"), write("t.txt", "another one\n")]
    corpus = read_corpus(write("c.txt", f"He said: {text}.\nshort\nANOTHER one\nfree\n"))
    assert list(corpus.without(read_texts(given))) == ["free"]
