"""Names on the Hub: read like files where there is a network, one message where there is none."""

import datasets
import pytest

from headstart.data.read import read_dataset
from headstart.data.readers import hub_parts, hub_table
from headstart.errors import HeadstartError


@pytest.fixture
def split():
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    table = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    return table.to_iterable_dataset()


def test_a_streamed_split_gives_rows_and_class_names(split):
    table = hub_table(split, "found", "hub:a")
    assert table.names == ["text", "label"]
    assert table.label_names == {"label": ["neg", "pos"]}
    cells = [row.columns for row in table.records("label", [])]
    assert cells == [{"text": "a", "label": 1}, {"text": "b", "label": 0}]


def test_validation_is_found_under_its_other_names(split):
    assert hub_parts({"train": split, "dev": split}) == {"train": split, "validation": split}


def test_without_a_network_there_is_one_clear_message(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HeadstartError, match="cannot be read from the Hugging Face Hub") as error:
        read_dataset("hub:owner/name")
    assert "rotten-tomatoes" in error.value.fix


def test_without_the_extra_there_is_one_message(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HeadstartError, match="datasets and huggingface_hub are not") as error:
        read_dataset("hub:owner/name")
    assert "headstart[hub]" in error.value.fix


def test_a_connection_that_breaks_off_is_one_clear_message():
    def rows():
        yield {"text": "a"}
        raise ConnectionError("gone")

    with pytest.raises(HeadstartError, match="gone") as error:
        hub_table(rows(), "found", "hub:a")
    assert error.value.where == "hub:a"
