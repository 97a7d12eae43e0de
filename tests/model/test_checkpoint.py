"""A saved model comes back bit for bit, or says why it cannot."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model, save_model
from tests.model.networks import KINDS, tiny


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(KINDS), head=st.sampled_from([None, "language_modeling", "classification"])
)
def test_a_loaded_model_is_bit_equal_to_the_saved_one(kind, head, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    model = tiny(*kind, head=head)
    save_model(model, folder)
    loaded = load_model(folder)
    assert loaded.base.config == model.base.config
    assert loaded.head_config == model.head_config
    saved, back = model.state_dict(), loaded.state_dict()
    assert saved.keys() == back.keys()
    assert all(torch.equal(saved[name], back[name]) for name in saved)


def test_a_tied_output_layer_is_still_tied_after_loading(tmp_path):
    save_model(tiny("small", head="language_modeling"), tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.head.output.weight is loaded.base.embedding.weight


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["base"].update(changes)
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 50_001}, r"\(30, 16\) in the file, \(50001, 16\) in the config"),
        ({"layers": 3}, r"base\.blocks\.2\.attention\.output\.bias is missing"),
        ({"layers": 1}, r"base\.blocks\.1\.attention.* is not expected"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_named(tmp_path, changes, message):
    save_model(tiny("lab"), tmp_path)
    change_config(tmp_path, **changes)
    with pytest.raises(HeadstartError, match=message):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 1_000_000_000},
        {"width": "wide"},
        {"layers": -1},
        {"dropout": float("nan")},
        {"vocab_size": 1_000_000, "width": 16_384, "feed_forward_width": 131_072},
    ],
)
def test_a_hostile_config_is_rejected_before_memory_is_allocated(tmp_path, changes, monkeypatch):
    save_model(tiny("lab"), tmp_path)
    change_config(tmp_path, **changes)
    allocated = []
    monkeypatch.setattr(torch.nn.init, "uniform_", lambda weight, *_: allocated.append(weight))
    with pytest.raises(HeadstartError) as error:
        load_model(tmp_path)
    assert str(tmp_path) in error.value.where
    assert all(weight.is_meta for weight in allocated)


@pytest.mark.parametrize("kept", [0, 100, 2000, "bf16"])
def test_weights_cut_short_or_of_another_type_are_rejected(tmp_path, kept):
    save_model(tiny("lab"), tmp_path)
    path = tmp_path / "model.safetensors"
    if kept == "bf16":
        save_file({"base.embedding.weight": torch.ones(2, dtype=torch.bfloat16)}, path)
    else:
        path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(HeadstartError, match="is damaged"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"architectures": ["BertModel"]}', "not Headstart's"),
        ('{"format": 99, "base": {}, "head": null}', "has format 99; this version reads 1"),
        ('{"format": 1, "base": {}, "head": null}', "vocab_size is missing"),
    ],
)
def test_a_foreign_config_is_rejected(tmp_path, text, message):
    save_model(tiny("lab"), tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(HeadstartError, match=message):
        load_model(tmp_path)


def test_a_folder_without_a_model_is_rejected(tmp_path):
    with pytest.raises(HeadstartError, match=r"config\.json is missing"):
        load_model(tmp_path)
