"""Splits and budgets depend on the seed and the set of (text, label) pairs alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.dataset import Dataset, Splits
from headstart.data.overlap import text_key
from headstart.data.splits import drop_overlapping, split, take_budget
from headstart.errors import HeadstartError

NAMES = ("bad", "good", "unsure")
PAIRS = st.sets(
    st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, len(NAMES) - 1)),
    min_size=1,
    max_size=60,
)


def dataset_of(pairs):
    texts, labels = zip(*pairs, strict=True) if pairs else ((), ())
    return Dataset("d", list(texts), list(labels), NAMES)


def numbered(count, classes=2):
    return dataset_of([(f"text {n} of many {n * n}", n % classes) for n in range(count)])


def pairs_of(dataset):
    return list(zip(dataset.texts, dataset.labels, strict=True))


@settings(deadline=None)
@given(PAIRS, st.integers(0, 5), st.randoms())
def test_another_order_and_repeated_rows_give_the_same_parts(pairs, seed, chance):
    ordered = sorted(pairs)
    shuffled = list(ordered)
    chance.shuffle(shuffled)
    one, other = split(dataset_of(ordered), seed), split(dataset_of(shuffled * 2), seed)
    assert {name: pairs_of(part) for name, part in one.parts().items()} == {
        name: pairs_of(part) for name, part in other.parts().items()
    }


@settings(deadline=None)
@given(PAIRS, st.integers(0, 5))
def test_no_text_is_in_two_parts_and_every_row_is_accounted_for(pairs, seed):
    dataset = dataset_of(sorted(pairs))
    parts = split(dataset, seed).parts().values()
    keys = [text_key(text) for part in parts for text in part.texts]
    assert len(keys) == len(set(keys))
    dropped = sum(count for part in parts for count in part.dropped.values())
    assert len(keys) + dropped == len(dataset)


@settings(deadline=None)
@given(PAIRS, st.integers(0, 5), st.data())
def test_a_smaller_budget_is_within_every_larger_one(pairs, seed, data):
    dataset = dataset_of(sorted(pairs))
    available = len(take_budget(dataset, "all", seed))
    if available < len(NAMES):
        return
    small = data.draw(st.integers(len(NAMES), available))
    large = data.draw(st.integers(small, available))
    chosen = pairs_of(take_budget(dataset, str(large), seed))
    assert pairs_of(take_budget(dataset, str(small), seed)) == chosen[:small]
    assert len(chosen) == large


def test_the_chosen_rows_are_the_same_on_every_machine():
    chosen = take_budget(numbered(100), "4", seed=7)
    assert chosen.texts == [
        "text 68 of many 4624",
        "text 95 of many 9025",
        "text 19 of many 361",
        "text 2 of many 4",
    ]


def test_budgets_and_parts_have_every_class_in_its_share():
    dataset = dataset_of([(f"text {n}", int(n % 10 == 0)) for n in range(1000)] + [("rare", 2)])
    for budget, rows, rare in (("3", 3, 1), ("10%", 100, 10), ("all", 1001, 100)):
        counts = take_budget(dataset, budget, 0).label_counts()
        assert sum(counts.values()) == rows
        assert abs(counts["good"] - rare) <= 1
        assert counts["unsure"] == 1
    pairs = [(f"text {n} {word}", label) for n in range(3) for label, word in enumerate(NAMES)]
    for part in split(dataset_of(pairs), 0).parts().values():
        assert all(part.label_counts().values())


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("many", "not a label budget"),
        ("200%", "not a label budget"),
        ("51", "only 50 different texts"),
        ("2", "too small for 3 classes"),
    ],
)
def test_an_impossible_budget_is_an_error(budget, message):
    with pytest.raises(HeadstartError, match=message):
        take_budget(numbered(50, classes=3), budget, 0)


def test_dropping_overlap_keeps_the_test_part_whole():
    long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    splits = Splits(
        train=dataset_of([(long + " fifteen", 0), ("own", 1), ("shared", 1)]),
        validation=dataset_of([("shared", 1), ("seen by test", 0)]),
        test=dataset_of([(long, 0), ("Seen by test", 0)]),
    )
    dropped = drop_overlapping(splits)
    assert dropped.train.texts == ["own"]
    assert dropped.validation.texts == ["shared"]
    assert dropped.test == splits.test
    assert (dropped.train.dropped, dropped.validation.dropped) == ({"overlap": 2}, {"overlap": 1})
