"""Labelled files become checked datasets: rows in = rows used + rows reported."""

import json
from pathlib import Path

import numpy as np
import pytest

from headstart.data.sources import part_of
from headstart.data.splits import guess_task, read_dataset
from headstart.errors import HeadstartError
from headstart.tasks.classification import Classification


def sizes(splits):
    return [len(part) for part in splits.parts().values()]


def table(rows, start=1, label="{}"):
    body = (f"text {n} of many,{label.format(n % 2)}\n" for n in range(start, rows + 1))
    return "text,label\n" + "".join(body)


def labelled(labels):
    rows = [{"text": f"text {n} of many", "label": label} for n, label in enumerate(labels * 10)]
    return "\n".join(map(json.dumps, rows))


def test_one_file_gives_three_parts_with_every_class(reviews):
    splits = read_dataset(reviews)
    assert sizes(splits) == [32, 4, 4]
    for part in splits.parts().values():
        assert len(set(part.label_counts().values())) == 1


def test_given_parts_are_used_as_they_are_and_missing_ones_are_split_off(reviews, write):
    given = write("v.csv", "text,label\nnew,0\n")
    assert sizes(read_dataset(reviews, validation=given, test=given)) == [40, 1, 1]
    assert sizes(read_dataset(reviews, test=given)) == [36, 4, 1]
    assert sizes(read_dataset(reviews, validation=given)) == [40, 1]
    assert sum(sizes(read_dataset([reviews, given]))) == 41


def test_overlap_and_empty_texts_are_dropped_and_counted(reviews, write):
    test = write("test.csv", "text,label\nReview  number 1 says YES,1\n")
    valid = write("valid.csv", "text,label\nnew,0\n")
    splits = read_dataset(reviews, validation=valid, test=test, drop_overlap=True)
    assert (sizes(splits), splits.train.dropped) == ([39, 1, 1], {"overlap": 1})
    path = write("a.csv", 'text,label\na b c,1\nd e f,0\n"  ",1\n,0\ng h i,1\nj k l,0\n')
    assert read_dataset(path).train.dropped == {"empty": 2}


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


# Labels


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 0, 5], ("0", "5", "10")),
        (["z", "a", "b"], ("a", "b", "z")),
        ([1, 1.0, "1", "1.0", 0, "0"], ("0", "1")),
    ],
)
def test_labels_are_ordered_by_size_or_alphabet_and_1_is_1_0(write, labels, names):
    assert read_dataset(write("a.jsonl", labelled(labels))).train.label_names == names


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (["Pos", "pos", "third"], "differ only in case"),
        (["é", "e\u0301", "third"], "differ only in case"),
        (["a", "a\u200b", "third"], "differ only in case"),
    ],
)
def test_labels_that_look_the_same_are_reported(write, labels, note):
    assert any(note in one for one in read_dataset(write("a.jsonl", labelled(labels))).notes)
    assert read_dataset(write("b.csv", table(30, label="{}.0"))).notes == ()


# Tasks


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


# Parts


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("reviews_train.jsonl.gz", "train"),
        ("train-00000-of-00002.parquet", "train"),
        ("eng.testa", "validation"),
        ("dev-v2.0.json", "validation"),
        ("Test.CSV", "test"),
        ("latest.csv", None),
        ("train-test.csv", None),
    ],
)
def test_a_word_of_the_name_tells_the_part(name, part):
    assert part_of(f"train/{name}") == part


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"train.csv": (1, 20), "dev.csv": (21, 26), "test.csv": (27, 30)}, [20, 6, 4]),
        ({"train.csv": (1, 40), "test.csv": (41, 44), "README.md": (1, 0)}, [36, 4, 4]),
        (
            {
                "train-00000-of-00002.csv": (1, 10),
                "train-00001-of-00002.csv": (11, 20),
                "dev.csv": (21, 26),
            },
            [20, 6],
        ),
    ],
)
def test_a_folder_with_train_validation_and_test_files_is_a_dataset(write, files, expected):
    for name, (start, end) in files.items():
        folder = write(f"d/{name}", table(end, start)).parent
    splits = read_dataset(folder)
    assert sizes(splits) == expected
    assert "parts by the names of the files: train is train" in splits.notes[0]


def test_several_files_are_the_parts_that_their_names_tell_or_one_dataset(write):
    train, test, other = (write(f"{n}.csv", table(40)) for n in ("train", "test", "a"))
    assert sizes(read_dataset([train, test])) == [36, 4, 40]
    assert "a.csv, test.csv are read as one dataset" in read_dataset([other, test]).notes[0]
    with pytest.raises(HeadstartError, match=r"the test part: test\.csv, a\.csv"):
        read_dataset([train, test], test=other)


def test_a_folder_without_clear_parts_says_how_to_call_them(write):
    folder = write("d/reviews.csv", table(20)).parent
    with pytest.raises(HeadstartError, match=r"no file called train.*reviews\.csv") as e:
        read_dataset(folder)
    assert "TRAIN --validation FILE --test FILE" in e.value.fix
    write("d/train.csv", table(20))
    assert len(read_dataset(folder, test=folder / "reviews.csv").test) == 20
    write("d/train.jsonl", "{}")
    with pytest.raises(HeadstartError, match=r"the train part: train\.csv, train\.jsonl"):
        read_dataset(folder)


def test_tagged_sentences_in_a_folder_are_parts_by_name(write):
    for name, word in (("esp.train", "Ada"), ("esp.testa", "Alan"), ("esp.testb", "Emmy")):
        folder = write(f"d/{name}", f"{word} B-PER\nhere O\n\n").parent
    write("d/train.csv", table(10))  # the same in another form is not read
    found = read_dataset([str(folder)], task="tagging")
    assert [part.words[0][0] for part in found.parts().values()] == ["Ada", "Alan", "Emmy"]


def test_one_subfolder_per_class_is_a_dataset_also_in_folders_called_train_and_test(write):
    for part in ("train", "test"):
        for name in ("good", "bad", "unsup"):
            for number in range(10):
                file = write(f"d/{part}/{name}/{number}.txt", f"{part} {name} {number}")
    folder = file.parents[2]
    splits = read_dataset(folder)
    assert len(splits.test) == 20
    assert splits.train.label_names == ("bad", "good")
    assert sum(sizes(read_dataset(folder / "train"))) == 20
    assert Path(splits.train.place(0)["file"]).read_text() == splits.train.texts[0]
    write("d/train/good/a.txt", b"caf\xe9")
    with pytest.raises(HeadstartError, match="0xE9") as error:
        read_dataset(folder)
    assert error.value.where.endswith("a.txt")
