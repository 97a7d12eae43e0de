"""Files whose names say train, validation or test are parts of one dataset."""

import json
from pathlib import Path

import pytest

from headstart.data.read import read_dataset
from headstart.data.sources import part_of
from headstart.errors import HeadstartError


def table(rows, start=0):
    return "text,label\n" + "".join(f"text {n} of many,{n % 2}\n" for n in range(start, rows))


def sizes(splits):
    return [len(part) for part in splits.parts().values()]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("reviews_train.jsonl.gz", "train"),
        ("train-00000-of-00002.parquet", "train"),
        ("valid.tsv", "validation"),
        ("eng.testa", "validation"),
        ("eng.testb", "test"),
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
        ({"train.csv": (0, 20), "dev.csv": (20, 26), "test.csv": (26, 30)}, [20, 6, 4]),
        ({"train.csv": (0, 40), "test.csv": (40, 44), "README.md": (0, 0)}, [36, 4, 4]),
        (
            {
                "train-00000-of-00002.csv": (0, 10),
                "train-00001-of-00002.csv": (10, 20),
                "dev.csv": (20, 26),
                "test-00000-of-00002.csv": (26, 28),
                "test-00001-of-00002.csv": (28, 30),
            },
            [20, 6, 4],
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
    train, test, other = (write(f"{n}.csv", table(44, 4)) for n in ("train", "test", "a"))
    assert sizes(read_dataset([train, test])) == [36, 4, 40]
    splits = read_dataset([other, test])
    assert "a.csv, test.csv are read as one dataset" in splits.notes[0]
    assert read_dataset(test).notes == ()
    with pytest.raises(HeadstartError, match="there are two test files"):
        read_dataset([train, test], test=other)


def test_a_folder_without_clear_parts_says_how_to_call_them(write):
    folder = write("d/reviews.csv", table(20)).parent
    with pytest.raises(HeadstartError, match=r"no file in it is called train.*reviews\.csv") as e:
        read_dataset(folder)
    assert "TRAIN --validation FILE --test FILE" in e.value.fix
    write("d/train.csv", table(20))
    assert len(read_dataset(folder, test=folder / "reviews.csv").test) == 20
    write("d/train.jsonl", "{}")
    with pytest.raises(HeadstartError, match=r"the train part: train\.csv, train\.jsonl"):
        read_dataset(folder)


def test_tagged_sentences_and_questions_in_a_folder_are_parts_by_name(write):
    for name, word in (("esp.train", "Ada"), ("esp.testa", "Alan"), ("esp.testb", "Emmy")):
        folder = write(f"d/{name}", f"{word} B-PER\nhere O\n\n").parent
    write("d/train.csv", table(10))  # the same in another form is not read
    found = read_dataset([str(folder)], task="tagging")
    assert [part.words[0][0] for part in found.parts().values()] == ["Ada", "Alan", "Emmy"]
    for part, word in (("train", "Ada"), ("dev", "Emmy")):
        qas = [{"question": "who?", "answers": [{"text": word, "answer_start": 0}]}]
        content = {"data": [{"paragraphs": [{"context": f"{word} is here", "qas": qas}]}]}
        folder = write(f"q/{part}-v2.0.json", json.dumps(content)).parent
    found = read_dataset([str(folder)], task="spans")
    assert (found.train.contexts, found.validation.contexts) == (["Ada is here"], ["Emmy is here"])


def test_one_subfolder_per_class_is_a_dataset(write):
    for number in range(10):
        write(f"d/good/{number}.txt", f"text {number} is\ngood")
        folder = write(f"d/bad/{number}", f"text {number} is bad").parents[1]
    splits = read_dataset(folder)
    assert splits.train.label_names == ("bad", "good")
    assert sum(sizes(splits)) == 20
    assert Path(splits.train.place(0)["file"]).read_text() == splits.train.texts[0]
    write("d/good/a.txt", b"caf\xe9")
    with pytest.raises(HeadstartError, match="0xE9") as error:
        read_dataset(folder)
    assert error.value.where.endswith("a.txt")


def test_class_folders_may_lie_in_folders_called_train_and_test(write):
    for part in ("train", "test"):
        for name in ("good", "bad", "unsup"):
            for number in range(10):
                file = write(f"d/{part}/{name}/{number}.txt", f"{part} {name} {number}")
    splits = read_dataset(file.parents[2])
    assert len(splits.test) == 20
    assert splits.train.label_names == ("bad", "good")
