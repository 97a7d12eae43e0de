"""Stored files are checked when they are read: a damaged run gives one message."""

import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from headstart.errors import HeadstartError
from headstart.model.checkpoint import save_model
from headstart.run import NetworkRun
from headstart.training.corpus import prepare_corpus
from headstart.training.finetune import finetune
from headstart.training.initialization import cooccurrence_vectors
from headstart.training.trainer import Interrupted
from tests.callbacks import StopAt
from tests.labelled import config, splits
from tests.runs import small_config


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    finetune(config(epochs=1), folder, splits=splits())
    return folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Interrupted):
        finetune(config(), folder, splits=splits(), callbacks=[StopAt(7)])
    return folder


@pytest.fixture
def copied(tmp_path):
    return lambda run: shutil.copytree(run, tmp_path / "copy")


@pytest.mark.parametrize("number", [float("nan")])
def test_weights_that_are_no_numbers_are_rejected(trained, copied, number):
    run = copied(trained)
    weights = load_file(run / "model.safetensors")
    weights["base.embedding.weight"][3, 1] = number
    save_file(weights, run / "model.safetensors")
    with pytest.raises(HeadstartError, match=r"NaN or infinite.*embedding") as told:
        NetworkRun.open(run)
    assert told.value.fix


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": ["a", "b", "c"]}, "do not belong together"),
        ({"labels": ["a"]}, "classes is 1"),
        ({"task": "tagging"}, "do not belong together"),
        ({"task": "flying"}, "flying"),
        ({"task": 3}, "damaged"),
        ({"labels": [1, 2]}, "damaged"),
        ({"length": "long"}, "damaged"),
        ({"length": 10**12}, "damaged"),
        ({"long": "maybe"}, "damaged"),
        ({"temperature": 0}, "damaged"),
    ],
)
def test_a_task_that_does_not_belong_to_the_weights_is_rejected(trained, copied, values, message):
    run = copied(trained)
    change(run / "task.json", **values)
    with pytest.raises(HeadstartError, match=message):
        NetworkRun.open(run)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("identity.json", b"{"),
        ("identity.json", b"3"),
        ("metrics.jsonl", b"[" * 100_000),
        ("metrics.jsonl", b'{"step": "x"}\n'),
        ("step-*.safetensors", b""),
        ("step-*.safetensors", b"\xff\xfe"),
    ],
)
def test_a_run_with_a_damaged_file_is_not_resumed(stopped, copied, name, content):
    run = copied(stopped)
    paths = [*run.glob(f"checkpoints/{name}"), *run.glob(name)]
    for path in paths:
        path.write_bytes(content)
    assert paths
    with pytest.raises(HeadstartError) as told:
        finetune(config(), run, splits=splits(), resume=True)
    assert told.value.where
    assert told.value.fix


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff", b'{"validation": {"accuracy": "x"}}', b'{"epochs": [3]}']
)
def test_a_damaged_summary_is_said(trained, copied, content):
    run = copied(trained)
    (run / "summary.json").write_bytes(content)
    with pytest.raises(HeadstartError, match=r"summary\.json is missing or damaged") as told:
        finetune(config(epochs=1), run, splits=splits(), resume=True)
    assert told.value.fix


def flipped(path):
    """Flip one bit of the last number of a file, which stays a valid file."""
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["model.safetensors", "rows.safetensors"])
def test_one_flipped_bit_is_found(trained, copied, name):
    run = copied(trained)
    flipped(run / name)
    with pytest.raises(HeadstartError, match=f"{name} is damaged"):
        NetworkRun.open(run).evaluate(splits().test)


def test_the_same_weights_are_the_same_bytes(trained, tmp_path):
    """The library that writes them shuffles its metadata."""
    run = NetworkRun.open(trained)
    for number in range(8):
        save_model(run.model, tmp_path / str(number))
    contents = {path.read_bytes() for path in tmp_path.rglob("model.safetensors")}
    assert len(contents) == 1


def test_a_damaged_tokenizer_or_damaged_vectors_in_the_cache_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    config = small_config(tmp_path)
    vectors = cooccurrence_vectors(prepare_corpus(config), width=8, power=1.0)
    (tokenizer,) = (tmp_path / "cache" / "tokenizers").glob("*.json")
    (kept,) = (tmp_path / "cache" / "cooccurrences").glob("*.safetensors")
    whole = tokenizer.read_bytes()
    tokenizer.write_bytes(whole.replace(b'"cat"', b'"kat"') if b'"cat"' in whole else whole[:-9])
    flipped(kept)
    again = prepare_corpus(config)
    assert tokenizer.read_bytes() == whole
    np.testing.assert_array_equal(cooccurrence_vectors(again, width=8, power=1.0), vectors)
