"""Data by name: embedded data needs no network; the Hub without a network gives one message."""

from hashlib import blake2b

import datasets
import pytest

from headstart.data.corpus import read_corpus
from headstart.data.readers import open_rows
from headstart.data.sources import Source
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError


def test_rotten_tomatoes_has_8530_sentences_in_balanced_parts_that_never_change():
    splits = read_dataset("rotten-tomatoes")
    counts = {name: part.label_counts() for name, part in splits.parts().items()}
    assert counts["validation"] == counts["test"] == {"negative": 426, "positive": 426}
    dropped = sum(splits.train.dropped.values())
    assert sum(map(len, splits.parts().values())) + dropped == 8530
    joined = b"".join(text.encode() + b"\0" for text in splits.test.texts)
    assert blake2b(joined, digest_size=8).hexdigest() == "5769378b4f395eed"


def test_imdb_is_a_corpus_of_25000_reviews_without_line_break_tags():
    texts = list(read_corpus("imdb"))
    assert len(texts) == 25_000
    assert not any("<br" in text for text in texts)


@pytest.fixture
def hub(monkeypatch):
    """A dataset of the Hub with this split, without a network."""

    def use(rows, features=None):
        split = datasets.IterableDataset.from_generator(rows, features=features)
        splits = {"train": split, "dev": split, "other": split}
        monkeypatch.setattr("headstart.data.readers.hub_revision", lambda name: "abc")
        monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: splits)

    return use


def test_a_streamed_dataset_gives_rows_class_names_and_parts(hub):
    label = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features({"text": datasets.Value("string"), "label": label})
    hub(lambda: ({"text": f"text {n}", "label": n % 2} for n in range(4)), features)
    splits = read_dataset("hub:owner/name")
    assert splits.train.label_counts() == {"neg": 2, "pos": 2}
    assert splits.train.texts == splits.validation.texts == [f"text {n}" for n in range(4)]
    assert splits.test is None


def test_a_connection_that_breaks_off_is_one_clear_message(hub):
    def rows():
        yield {"text": "a"}
        raise ConnectionError("gone")

    hub(rows)
    with pytest.raises(HeadstartError, match="gone") as error:
        list(open_rows(Source("hub:a", "hub")))
    assert error.value.where == "hub:a"


def test_without_a_network_or_the_extra_there_is_one_message(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HeadstartError, match="cannot be read from the Hugging Face Hub") as error:
        read_dataset("hub:owner/name")
    assert "rotten-tomatoes" in error.value.fix
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HeadstartError, match="datasets and huggingface_hub are not") as error:
        read_dataset("hub:owner/name")
    assert "headstart[hub]" in error.value.fix
