"""Labelled files become checked datasets; each bad input has its message."""

import json

import pytest

from headstart.data.read import read_dataset
from headstart.errors import HeadstartError


def error_of(*arguments, **options):
    with pytest.raises(HeadstartError) as error:
        read_dataset(*arguments, **options)
    return error.value


def test_one_file_gives_three_parts_with_every_class(reviews):
    splits = read_dataset(reviews)
    assert {name: len(part) for name, part in splits.parts().items()} == {
        "train": 32,
        "validation": 4,
        "test": 4,
    }
    for part in splits.parts().values():
        assert len(set(part.label_counts().values())) == 1


def test_files_of_their_own_are_taken_as_they_are(reviews, write):
    validation = write("valid.csv", "text,label\nreview number 1 says yes,1\n")
    test = write("test.csv", "text,label\nnew,0\n")
    splits = read_dataset(reviews, validation=validation, test=test)
    assert (len(splits.train), splits.validation.texts, splits.test.texts) == (
        40,
        ["review number 1 says yes"],
        ["new"],
    )


def test_with_a_test_file_only_validation_is_cut_from_train(reviews, write):
    splits = read_dataset(reviews, test=write("test.csv", "text,label\nnew,0\n"))
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (36, 4, 1)


def test_with_a_validation_file_only_there_is_no_test(reviews, write):
    splits = read_dataset(reviews, validation=write("v.csv", "text,label\nnew,0\n"))
    assert splits.test is None
    assert len(splits.train) == 40


def test_overlap_is_dropped_from_train_when_asked(reviews, write):
    test = write("test.csv", "text,label\nReview  number 1 says YES,1\n")
    splits = read_dataset(reviews, validation=test, test=test, drop_overlap=True)
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (39, 0, 1)
    assert splits.train.dropped == {"overlap": 1}


def test_several_files_are_one_dataset(reviews, write):
    more = write("more.csv", "text,label\nquite another one,1\n")
    parts = read_dataset([reviews, more]).parts().values()
    assert sum(map(len, parts)) == 41


def test_empty_texts_are_dropped_and_counted(write):
    path = write("a.csv", 'text,label\na b c,1\nd e f,0\n"  ",1\n,0\ng h i,1\nj k l,0\n')
    train = read_dataset(path).train
    assert train.dropped == {"empty": 2}


def test_numbers_are_ordered_by_size_and_names_by_alphabet(write):
    numbers = write("a.csv", "text,label\n" + "".join(f"t {n},{n % 3 * 5}\n" for n in range(12)))
    assert read_dataset(numbers).train.label_names == ("0", "5", "10")
    names = write("b.csv", "text,label\n" + "".join(f"t {n},{'zab'[n % 3]}\n" for n in range(12)))
    assert read_dataset(names).train.label_names == ("a", "b", "z")


def test_whole_numbers_are_the_same_class_however_they_are_written(write):
    records = [{"text": f"text {n}", "label": [1, 1.0, "1", "1.0", 0, "0"][n]} for n in range(6)]
    path = write("a.json", json.dumps(records))
    assert read_dataset(path).train.label_names == ("0", "1")


def test_a_missing_column_lists_those_there_are(write):
    error = error_of(write("a.csv", "id,words\n1,hello\n"))
    assert "no text column was found; the columns are 'id', 'words'" in error.what


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json"])
def test_an_empty_file_is_an_error(write, name):
    path = write(name, "")
    error = error_of(path)
    assert str(path) in error.where


def test_a_file_with_a_header_only_is_an_error(write):
    assert error_of(write("a.csv", "text,label\n")).what == "the file holds no rows"


def test_one_class_only_is_an_error(write):
    error = error_of(write("a.csv", "text,label\na,1\nb,1\n"))
    assert "there is one class only" in error.what


def test_an_unknown_label_in_validation_is_named_with_its_row(reviews, write):
    path = write("valid.csv", "text,label\nfine,1\nodd,2\n")
    error = error_of(reviews, validation=path)
    assert error.what == "label '2' does not occur in the training rows; known are '0', '1'"
    assert error.where == f"{path}, row 2 (line 3)"


@pytest.mark.parametrize("missing", ["", "NaN", "nan", "<NA>"])
def test_a_missing_label_is_named_with_its_row(write, missing):
    path = write("a.csv", f"text,label\na,1\nb,{missing}\n")
    error = error_of(path)
    assert "the label is missing" in error.what
    assert error.where == f"{path}, row 2 (line 3)"


@pytest.mark.parametrize("missing", ["null", "NaN"])
def test_a_missing_label_in_json_is_named_with_its_line(write, missing):
    path = write("a.jsonl", f'{{"text": "a", "label": 1}}\n{{"text": "b", "label": {missing}}}\n')
    assert error_of(path).where == f"{path}, line 2"


def test_a_class_with_one_text_is_an_error(write):
    error = error_of(write("a.csv", "text,label\na,1\nb,1\nc,0\n"))
    assert error.what == "1 of 2 classes have fewer than two different texts: '0'"


def test_a_text_that_is_a_number_is_an_error(write):
    path = write("a.jsonl", '{"text": 5, "label": 1}\n')
    assert "not text but a int (5)" in error_of(path).what


def test_a_label_that_is_a_list_is_an_error(write):
    path = write("a.jsonl", '{"text": "a", "label": [1, 2]}\n')
    assert "not one value but a list" in error_of(path).what


def test_a_nul_character_written_as_an_escape_is_an_error(write):
    path = write("a.jsonl", '{"text": "a\\u0000b", "label": 1}\n')
    error = error_of(path)
    assert "NUL" in error.what
    assert error.where == f"{path}, line 1"


def test_half_a_surrogate_pair_is_an_error(write):
    path = write("a.jsonl", '{"text": "a\\ud83d", "label": 1}\n')
    assert "U+D83D" in error_of(path).what


def test_a_file_that_is_not_utf_8_is_an_error(write):
    path = write("a.csv", b"text,label\nfine,1\ncaf\xe9,0\n")
    error = error_of(path)
    assert error.what == "byte 0xE9 is not text in UTF-8"
    assert error.where == f"{path}, row 2 (line 3)"


def test_a_bad_byte_far_into_a_csv_is_found_too(write):
    path = write("a.csv", b"text,label\n" + b"fine,1\n" * 300_000 + b"caf\xe9,0\n")
    assert "byte 0xE9" in error_of(path).what
