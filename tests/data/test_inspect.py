"""The look at the data finds what a person should know, and says it in sentences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.corpus import read_corpus
from headstart.data.dataset import Dataset, Sentences, Splits
from headstart.data.inspect import inspect_data, odd_characters
from headstart.data.overlap import text_key

LONG = " ".join(f"word{n}" for n in range(40))


def dataset(*pairs):
    return Dataset("d", [text for text, _ in pairs], [label for _, label in pairs], ("no", "yes"))


def splits_of(train, validation=(), test=()):
    return Splits(dataset(*train), dataset(*validation), dataset(*test))


def part(inspection, name):
    return next(part for part in inspection.parts if part.name == name)


def overlap(inspection, name, other):
    return next(o for o in inspection.overlaps if (o.part, o.other) == (name, other))


def test_what_would_be_cut_is_counted_in_texts_and_words():
    splits = splits_of([("one two three four", 1), ("one", 0), ("a b c", 0)])
    inspection = inspect_data(splits, length=2)
    assert (part(inspection, "train").cut_documents, part(inspection, "train").cut_tokens) == (2, 3)
    assert any(
        "longer than 2 words: train 2 of 3 (3 words, 37.5%" in w for w in inspection.warnings
    )


def test_repeated_and_nearly_repeated_texts_are_counted():
    near = LONG.replace("word20", "other")
    train = part(inspect_data(splits_of([(LONG, 1), (LONG.upper(), 1), (near, 1)])), "train")
    assert (train.duplicates, train.near_duplicates) == (1, 1)


def test_overlap_between_parts_is_counted_with_an_example():
    near = LONG.replace("word20", "other")
    inspection = inspect_data(splits_of([(LONG, 1), ("same", 0)], [], [("Same", 0), (near, 1)]))
    found = overlap(inspection, "test", "train")
    assert (found.counts["equal"], found.counts["similar"], found.texts) == (1, 1, 2)
    assert (found.examples[0].text, found.examples[0].other) == ("Same", "same")
    assert "2 of 2 test texts are also in train (1 equal, 1 nearly equal)" in inspection.warnings[0]


def test_texts_inside_longer_documents_of_the_corpus_are_counted(write):
    splits = splits_of([("a", 1), ("b", 0)], [("short one", 1)], [(LONG, 1), ("c", 0)])
    others = " ".join(f"other{n}" for n in range(40))
    corpus = read_corpus(write("a.txt", f"{LONG.upper()} {others}\na short one\nc\n"))
    inspection = inspect_data(splits, corpus)
    found = overlap(inspection, "test", "corpus")
    assert found.counts == {"equal": 1, "similar": 0, "inside": 1, "contains": 0}
    assert overlap(inspection, "validation", "corpus").counts["inside"] == 0
    assert any("1 inside a longer text" in warning for warning in inspection.warnings)


def test_a_corpus_without_held_out_texts_has_none_inside(write):
    splits = splits_of([("a", 1)], [], [(LONG, 1)])
    corpus = read_corpus(write("a.txt", f"so it was: {LONG} {LONG}\nother\n")).without([LONG])
    inspection = inspect_data(splits, corpus)
    assert overlap(inspection, "test", "corpus").counts["inside"] == 0
    assert part(inspection, "corpus").dropped == {"held-out": 1}
    assert any("they overlap with a held-out text: 1" in warning for warning in inspection.warnings)


def test_the_same_text_with_several_labels_is_found_across_parts():
    inspection = inspect_data(splits_of([("hm", 1)], [("Hm", 0)]))
    assert inspection.conflicts == 1
    assert inspection.conflict_examples == {"hm": ["yes", "no"]}
    assert any("several labels" in warning for warning in inspection.warnings)


def test_what_a_person_should_know_is_a_warning(write):
    train = dataset(*[(f"text {n}", 0) for n in range(30)], ("rare one", 1)).pick(
        range(31), empty=3
    )
    corpus = read_corpus(write("a.txt", "ONE\none\n\none\nnew\n"))
    inspection = inspect_data(Splits(train, dataset(("one", 0)), None), corpus)
    for words in (
        "class 'yes' is less than a tenth",
        "no test part",
        "train: rows dropped because they have no text: 3",
        "1 of 1 validation texts are also in corpus (1 equal): pretraining would see",
    ):
        assert any(words in warning for warning in inspection.warnings), words
    found = part(inspection, "corpus")
    assert (found.documents, found.tokens, found.duplicates) == (4, 4, 2)
    assert found.dropped == {"empty": 1}


def test_several_labels_of_a_text_are_counted_one_by_one():
    part = Dataset("d", ["one", "two"], [0, 1], ("a", "a|b"), several_labels=True)
    report = inspect_data(Splits(part, part, None)).parts[0]
    assert (report.labels, report.labelled) == ({"a": 2, "b": 1}, 2)


def test_tags_are_counted_by_word_and_are_not_classes_of_sentences():
    words = [["Ada", "sleeps", "here"]] * 20 + [["nothing", "at", "all"]]
    tags = [[1, 0, 0]] * 20 + [[0, 0, 0]]
    part = Sentences("d", words, tags, ("O", "B-PER"))
    found = inspect_data(Splits(part, part, None))
    assert found.parts[0].labels == {"O": 43, "B-PER": 20}
    assert not any("class" in warning for warning in found.warnings)


def test_texts_inside_of_texts_of_other_parts_are_found():
    inside = splits_of([(f"He said: {LONG} and left", 1)], [], [(LONG, 1)])
    found = overlap(inspect_data(inside), "test", "train")
    assert found.counts == {"equal": 0, "similar": 0, "inside": 1, "contains": 0}
    around = splits_of([(LONG[:100], 1)], [], [(LONG, 1)])
    assert overlap(inspect_data(around), "test", "train").counts["contains"] == 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("caf\ufffd", "replacement"),
        ("cafÃ©", "doubly"),
        ("it is itâ€™s", "doubly"),
        ("l?amour", "question marks"),
        ("a<br />b", "HTML"),
        ("Tom &amp; Jerry", "HTML"),
        ("a\x96b", "control"),
        ("a\u200bb", "invisible"),
        ("\ue123", "private"),
        ("e\u0301te\u0301", "letters stored as letter + accent"),
    ],
)
def test_odd_characters_are_found(text, word):
    assert [kind.startswith(word) for kind in odd_characters(text)] == [True]


@pytest.mark.parametrize(
    "text",
    ["Why?No space.", "C'est l'été. Vraiment ?", "a < b & c > d", "Ça, Âme, âge", "👩‍👩‍👧 مى‌خواهم"],
)
def test_ordinary_text_has_no_odd_characters(text):
    assert odd_characters(text) == {}


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, 1))))
def test_every_text_of_a_repeated_part_is_overlap(pairs):
    inspection = inspect_data(splits_of(pairs, pairs))
    assert part(inspection, "train").documents == len(pairs)
    found = overlap(inspection, "validation", "train")
    assert (found.counts["equal"], found.counts["similar"]) == (
        len({text_key(text) for text, _ in pairs}),
        0,
    )
