"""Labelled files become checked datasets."""

import json

from headstart.data.read import read_dataset


def sizes(splits):
    return [len(part) for part in splits.parts().values()]


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


def test_overlap_is_dropped_from_train_when_asked(reviews, write):
    test = write("test.csv", "text,label\nReview  number 1 says YES,1\n")
    splits = read_dataset(reviews, validation=test, test=test, drop_overlap=True)
    assert sizes(splits) == [39, 0, 1]
    assert splits.train.dropped == {"overlap": 1}


def test_empty_texts_are_dropped_and_counted(write):
    path = write("a.csv", 'text,label\na b c,1\nd e f,0\n"  ",1\n,0\ng h i,1\nj k l,0\n')
    assert read_dataset(path).train.dropped == {"empty": 2}


def test_labels_are_ordered_by_size_or_alphabet_and_1_is_1_0(write):
    def names(labels):
        records = [{"text": f"t {n}", "label": label} for n, label in enumerate(labels * 4)]
        return read_dataset(write("a.json", json.dumps(records))).train.label_names

    assert names([10, 0, 5]) == ("0", "5", "10")
    assert names(["z", "a", "b"]) == ("a", "b", "z")
    assert names([1, 1.0, "1", "1.0", 0, "0"]) == ("0", "1")
