"""The inspection of data finds problems and describes them in sentences."""

from headstart.data.corpus import read_corpus
from headstart.data.dataset import Dataset, Sentences, Splits
from headstart.data.inspect import inspect_data

LONG = " ".join(f"word{n}" for n in range(40))
NEAR = LONG.replace("word20", "other")


def dataset(*pairs):
    return Dataset("d", [text for text, _ in pairs], [label for _, label in pairs], ("no", "yes"))


def splits_of(train, validation=(), test=()):
    return Splits(dataset(*train), dataset(*validation), dataset(*test))


def overlap(inspection, part, other):
    (found,) = [o for o in inspection.overlaps if (o["part"], o["other"]) == (part, other)]
    return found


def test_sizes_and_repeated_texts_are_counted():
    train = inspect_data(splits_of([(LONG, 1), (LONG.upper(), 1), (NEAR, 1)])).parts[0]
    assert (train["documents"], train["words"], train["percentiles"]["max"]) == (3, 120, 40)
    assert train["duplicates"] == 1


def test_overlap_between_parts_is_counted_with_an_example():
    inside = f"He said: {LONG.replace('word', 'term')} and left"
    train = [(LONG, 1), ("same", 0), (inside, 1)]
    test = [("Same", 0), (NEAR, 1), (LONG.replace("word", "term"), 1)]
    inspection = inspect_data(splits_of(train, [], test))
    found = overlap(inspection, "test", "train")
    assert found["counts"] == {"equal": 1, "similar": 1, "inside": 1, "contains": 0}
    assert (found["texts"], "Same" in found["examples"]) == (3, True)
    assert "3 of 3 test texts are also in train" in inspection.warnings[0]


def test_texts_in_the_corpus_are_counted_and_held_out_ones_are_not_in_it(write):
    splits = splits_of([("a", 1), ("b", 0)], [("short one", 1)], [(LONG, 1), ("c", 0)])
    others = " ".join(f"other{n}" for n in range(40))
    corpus = read_corpus(write("a.txt", f"{LONG.upper()} {others}\na short one\nc\n"))
    inspection = inspect_data(splits, corpus)
    counts = {"equal": 1, "similar": 0, "inside": 1, "contains": 0}
    assert overlap(inspection, "test", "corpus")["counts"] == counts
    assert overlap(inspection, "validation", "corpus")["counts"]["inside"] == 0
    inspection = inspect_data(splits, corpus.without([LONG, "c"]))
    assert not any(overlap(inspection, "test", "corpus")["counts"].values())
    corpus_report = inspection.parts[-1]
    assert (corpus_report["dropped"], corpus_report["labels"]) == ({"held-out": 2}, None)


def test_what_a_person_should_know_is_a_warning(write):
    pairs = [*((f"text {n}", 0) for n in range(30)), ("rare one", 1)]
    train = dataset(*pairs).pick(range(31), empty=3)
    write("c/a.jpg", b"\xff\xd8")
    corpus = read_corpus(write("c/a.csv", "text\nONE\none\n\none\nnew\n").parent)
    splits = Splits(train, dataset(("one", 0), ("Text 1", 1)), None)
    inspection = inspect_data(splits, corpus)
    for words in (
        "class 'yes' is less than a tenth",
        "no test part",
        "train: dropped 3 rows because they have no text",
        "1 of 2 validation texts are also in corpus (1 equal): pretraining would see",
        "corpus: 2 repeated",
        "1 files of other kinds were not read",
    ):
        assert any(words in warning for warning in inspection.warnings), words


def test_several_labels_and_tags_are_counted_one_by_one():
    several = Dataset("d", ["one", "two"], [0, 1], ("a", "a|b"), several_labels=True)
    part = inspect_data(Splits(several, several, None)).parts[0]
    assert (part["labels"], part["labelled"]) == ({"a": 2, "b": 1}, 2)
    tagged = Sentences("d", [["Ada", "sleeps"]] * 20, [[1, 0]] * 20, ("O", "B-PER"))
    found = inspect_data(Splits(tagged, tagged, None))
    assert found.parts[0]["labels"] == {"O": 20, "B-PER": 20}
    assert not any("class" in warning for warning in found.warnings)
