"""Files whose names say train, validation or test are parts of one dataset."""

import json
from pathlib import Path

import pytest

from headstart.data.read import read_dataset
from headstart.data.sources import find_parts, part_of
from headstart.errors import HeadstartError


def table(rows, start=0):
    return "text,label\n" + "".join(f"text {n} of many,{n % 2}\n" for n in range(start, rows))


def squad(name):
    answers = [{"text": name, "answer_start": 0}]
    asked = [{"question": "who?", "answers": answers}]
    return json.dumps({"data": [{"paragraphs": [{"context": f"{name} is here", "qas": asked}]}]})


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train.csv", "train"),
        ("reviews_train.jsonl.gz", "train"),
        ("train-00000-of-00002.parquet", "train"),
        ("valid.tsv", "validation"),
        ("eng.testa", "validation"),
        ("eng.testb", "test"),
        ("dev-v2.0.json", "validation"),
        ("Test.CSV", "test"),
        ("reviews.csv", None),
        ("latest.csv", None),
        ("train-test.csv", None),
    ],
)
def test_a_word_of_the_name_tells_the_part(name, part):
    assert part_of(f"train/{name}") == part


@pytest.mark.parametrize("validation", ["validation.csv", "valid.csv", "dev.csv"])
def test_a_folder_with_train_validation_and_test_files_is_a_dataset(write, validation):
    write("d/train.csv", table(20))
    write(f"d/{validation}", table(26, 20))
    write("d/README.md", "the dataset")
    folder = write("d/test.csv", table(30, 26)).parent
    splits = read_dataset(folder)
    assert [len(part) for part in splits.parts().values()] == [20, 6, 4]
    assert splits.notes == (
        "parts by the names of the files: train is train.csv; "
        f"validation is {validation}; test is test.csv",
    )


def test_a_part_that_the_folder_lacks_is_cut_from_the_training_file(write):
    write("d/train.csv", table(40))
    splits = read_dataset(write("d/test.csv", table(44, 40)).parent)
    assert [len(part) for part in splits.parts().values()] == [36, 4, 4]


def test_several_files_are_the_parts_that_their_names_tell(write):
    files = [write("train.csv", table(40)), write("test.csv", table(44, 40))]
    splits = read_dataset(files)
    assert splits.test.texts == [f"text {n} of many" for n in range(40, 44)]
    assert "test is test.csv" in splits.notes[0]


def test_files_whose_names_do_not_tell_are_pooled_and_that_is_said(write):
    splits = read_dataset([write("a.csv", table(40)), write("test.csv", table(44, 40))])
    assert sum(map(len, splits.parts().values())) == 44
    assert "a.csv, test.csv are read as one dataset" in splits.notes[0]


def test_one_file_alone_needs_no_note_whatever_it_is_called(write):
    assert read_dataset(write("test.csv", table(40))).notes == ()


def test_shards_of_a_large_training_file_are_read_together(write):
    write("d/train-00000-of-00002.csv", table(10))
    write("d/train-00001-of-00002.csv", table(20, 10))
    folder = write("d/dev.csv", table(26, 20)).parent
    assert len(read_dataset(folder).train) == 20


def test_shards_of_a_test_part_are_read_together(write):
    write("d/train.csv", table(20))
    write("d/test-00000-of-00002.csv", table(24, 20))
    folder = write("d/test-00001-of-00002.csv", table(30, 24)).parent
    splits = read_dataset(folder)
    assert [len(splits.test), len(set(splits.test.files))] == [10, 2]


def test_two_files_for_one_part_are_refused_with_their_names(write):
    write("d/train.csv", table(20))
    folder = write("d/train.jsonl", "{}").parent
    with pytest.raises(HeadstartError, match=r"the train part: train\.csv, train\.jsonl"):
        read_dataset(folder)
    given = [write("train.csv", table(20)), write("test.csv", table(24, 20))]
    with pytest.raises(HeadstartError, match="there are two test files"):
        read_dataset(given, test=write("other.csv", table(30, 24)))


def test_a_folder_without_a_training_file_says_how_to_call_one(write):
    folder = write("d/reviews.csv", table(20)).parent
    with pytest.raises(HeadstartError, match=r"no file in it is called train.*reviews\.csv") as e:
        read_dataset(folder)
    assert "TRAIN --validation FILE --test FILE" in e.value.fix


def test_a_file_that_was_given_takes_the_place_of_the_folders_own(write):
    write("d/train.csv", table(20))
    folder = write("d/test.csv", table(24, 20)).parent
    other = str(write("other.csv", table(30, 24)))
    assert [one.name for one in find_parts([folder], test=other)[0]["test"]] == [other]


def test_tagged_sentences_in_a_folder_are_parts_by_name(write):
    for name, word in (("esp.train", "Ada"), ("esp.testa", "Alan"), ("esp.testb", "Emmy")):
        folder = write(f"d/{name}", f"{word} B-PER\nhere O\n\n").parent
    write("d/train.csv", table(10))  # the same in another form is not read
    found = read_dataset([str(folder)], task="tagging")
    assert [part.words[0][0] for part in (found.train, found.validation, found.test)] == [
        "Ada",
        "Alan",
        "Emmy",
    ]
    assert "train is esp.train" in found.notes[0]


def test_questions_in_a_folder_are_parts_by_name(write):
    write("d/train-v2.0.json", squad("Ada"))
    folder = write("d/dev-v2.0.json", squad("Emmy")).parent
    found = read_dataset([str(folder)], task="spans")
    assert (found.train.contexts, found.validation.contexts) == (["Ada is here"], ["Emmy is here"])
    assert found.test is None


def test_one_subfolder_per_class_is_a_dataset(write):
    for number in range(10):
        write(f"d/good/{number}.txt", f"text {number} is\ngood")
        folder = write(f"d/bad/{number}", f"text {number} is bad").parents[1]
    splits = read_dataset(folder)
    assert splits.train.label_names == ("bad", "good")
    assert sum(map(len, splits.parts().values())) == 20
    assert "one subfolder per class" in splits.notes[0]
    file = Path(splits.train.place(0)["file"])
    assert file.read_text() == splits.train.texts[0]


def test_class_folders_may_lie_in_folders_called_train_and_test(write):
    for part in ("train", "test"):
        for name in ("good", "bad", "unsup"):
            for number in range(10):
                file = write(f"d/{part}/{name}/{number}.txt", f"{part} {name} {number}")
    splits = read_dataset(file.parents[2])
    assert len(splits.test) == 20
    assert splits.train.label_names == ("bad", "good")


def test_an_unreadable_file_of_a_class_is_named(write):
    write("d/good/a.txt", b"caf\xe9")
    folder = write("d/bad/b.txt", "text").parents[1]
    with pytest.raises(HeadstartError, match="0xE9") as error:
        read_dataset(folder)
    assert error.value.where.endswith("a.txt")
