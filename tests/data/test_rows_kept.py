"""Rows in = rows used + rows reported; row numbers are those of the user's file."""

import json

import numpy as np
import pytest

from headstart.data import stream
from headstart.data.corpus import read_corpus
from headstart.data.read import guess_task, read_dataset, read_texts, similar_labels
from headstart.errors import HeadstartError
from headstart.tasks.classification import Classification


def table(rows, label="{}"):
    body = "".join(f"text {n} of many,{label.format(n % 2)}\n" for n in range(1, rows + 1))
    return "text,label\n" + body


def test_every_part_has_the_row_numbers_of_the_file(write):
    splits = read_dataset(write("a.csv", table(60)))
    for part in splits.parts().values():
        assert [text.split()[1] for text in part.texts] == [str(row) for row in part.rows]
    assert sorted(row for part in splits.parts().values() for row in part.rows) == [*range(1, 61)]


def test_mistakes_have_the_row_numbers_of_the_file(write):
    test = read_dataset(write("a.csv", table(200))).test
    wrong = np.array([[4.0, 0.0] if label else [0.0, 4.0] for label in test.labels])
    for mistake in Classification(("0", "1")).report(wrong, test)["mistakes"]:
        assert mistake["text"] == f"text {mistake['row']} of many"


def test_rows_of_several_files_have_their_file(write):
    files = [str(write(name, table(20))) for name in ("a.csv", "b.csv")]
    place = read_dataset(files).train.place(0)
    assert place["file"] in files


def test_a_line_break_in_a_cell_does_not_shift_the_numbers(write):
    path = write("a.csv", 'text,label\n"one\ntwo",0\nthree,1\nfour,0\nfive,\n')
    with pytest.raises(HeadstartError, match="label is missing") as error:
        read_dataset(path)
    assert error.value.where == f"{path}, row 4 (line 6)"


def test_a_table_is_read_once(write, monkeypatch):
    path, passes = write("a.csv", table(10_000)), []
    real = stream.Lines.__iter__
    monkeypatch.setattr(stream.Lines, "__iter__", lambda lines: passes.append(1) or real(lines))
    read_dataset(path)
    assert len(passes) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("Pos", "pos"), ("true", "True"), ("é", "e\u0301"), ("a", "a\u200b"), ("a b", "a  b")],
)
def test_labels_that_look_the_same_are_reported(write, one, other):
    labels = [one, other, "third"]
    rows = [{"text": f"text {n} of many", "label": labels[n % 3]} for n in range(30)]
    splits = read_dataset(write("a.jsonl", "\n".join(map(json.dumps, rows))))
    assert len(splits.train.label_names) == 3
    assert any("differ only in case" in note for note in splits.notes)
    assert similar_labels(labels) == [sorted([one, other])]


def test_numbers_that_are_one_class_in_two_spellings_are_reported(write):
    rows = [{"text": f"text {n} of many", "label": ["1", "1.0", "0"][n % 3]} for n in range(30)]
    splits = read_dataset(write("a.jsonl", "\n".join(map(json.dumps, rows))))
    assert splits.train.label_names == ("0", "1")
    assert any("'1', '1.0' are one class" in note for note in splits.notes)
    tidy = read_dataset(write("b.csv", table(30, "{}.0")))
    assert tidy.notes == ()


def test_a_long_label_is_shortened_in_messages(write):
    path = write("a.csv", table(30) + f"text,{'x' * 100_000}\n")
    with pytest.raises(HeadstartError) as error:
        read_dataset(path)
    assert len(str(error.value)) < 1_000


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("a.conll", "Ada B-PER\nsleeps O\n", "tagging"),
        ("a.json", json.dumps({"data": [{"paragraphs": [{"qas": []}]}]}), "spans"),
        ("a.csv", "text,label\none,a|b\ntwo,c\n", "multi-label"),
        ("a.jsonl", '{"text": "one", "labels": ["a", "b"]}\n', "multi-label"),
        ("c.csv", "text1,text2,label\none day,two days,same\n", "pairs"),
        ("b.jsonl", '{"premise": "a b", "hypothesis": "b c", "label": "x"}\n', "pairs"),
        ("d.csv", "question,answer,label\nwhy is it,it is so,good\n", "classification"),
        ("b.csv", 'text,label\n"one | two",a\ntwo,b\n', "classification"),
        ("a.tsv", "broken", "classification"),
    ],
)
def test_a_file_implies_its_task(write, name, content, task):
    found, why = guess_task([write(name, content)])
    assert (found, why is None) == (task, task == "classification")


def test_a_folder_implies_the_task_of_its_training_file(write):
    write("d/train.label", "1\n")
    assert guess_task([write("d/train.review.spm", "_a\n").parent])[0] == "classification"
    assert guess_task([write("e/train.conll", "Ada B-PER\n").parent])[0] == "tagging"


def test_texts_of_test_files_can_be_dropped_from_a_corpus(write):
    text = "a text of the test part that is long enough to be found inside of others"
    labelled = write("test.csv", f"text,label\n{text},1\nshort,0\n")
    plain = write("test.txt", "another one\n")
    corpus = read_corpus(write("c.txt", f"He said: {text}.\nshort\nANOTHER one\nfree\n"))
    held_out = read_texts([labelled, plain])
    assert list(corpus.without(held_out)) == ["free"]
