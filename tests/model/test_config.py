"""Settings are checked as soon as they are made."""

import pytest

from headstart.errors import HeadstartError
from headstart.model.config import BaseConfig
from headstart.model.heads import head_from_dict
from headstart.model.presets import PRESETS, preset

SIZES = {"vocab_size": 10, "width": 8, "layers": 1, "heads": 2, "feed_forward_width": 8}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 3}, "width 8 is not divisible by 3 heads"),
        ({"width": -8}, "width is -8; it must be at least 1"),
        ({"layers": 0}, "layers is 0; it must be at least 1"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"layers": True}, "layers is True"),
        ({"norm": "batch"}, "norm is 'batch'; choose layer, rms"),
        ({"dropout": 1.0}, "dropout is 1; it must be below 1"),
        ({"dropout": float("nan")}, "dropout is nan"),
        ({"heads": 8}, "rotary positions need an even head width"),
        ({"width": 7, "heads": 1, "positions": "sinusoidal"}, "an even width, not 7"),
    ],
)
def test_a_wrong_size_is_rejected_with_its_value(change, message):
    with pytest.raises(HeadstartError, match=message):
        BaseConfig(**{**SIZES, **change})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 1_000_000_000),
        ("vocab_size", 1e9),
        ("vocab_size", 10**400),
        ("vocab_size", "x" * 100_000),
        ("width", -8),
        ("width", None),
        ("max_length", 2**40),
        ("dropout", float("nan")),
        ("norm_epsilon", float("inf")),
        ("rotary_base", -1.0),
        ("positions", ["rotary"]),
        ("biases", 1),
    ],
)
def test_a_hostile_value_of_a_file_is_one_short_message_with_the_file(name, value):
    with pytest.raises(HeadstartError, match=name) as error:
        BaseConfig.from_dict({**SIZES, name: value}, where="config.json")
    assert error.value.where == "config.json"
    assert len(error.value.what) < 600


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "classification", "classes": 2}, "pooling is missing"),
        ({"kind": "classification", "classes": 1, "pooling": "mean"}, "it must be at least 2"),
        ({"kind": "tail"}, "unknown head 'tail'; the heads are"),
    ],
)
def test_a_head_that_cannot_be_is_rejected(values, message):
    with pytest.raises(HeadstartError, match=message):
        head_from_dict(values)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_the_trip_through_a_file(name):
    base = preset(name).base
    assert BaseConfig.from_dict(vars(base)) == base


def test_a_width_takes_the_feed_forward_of_its_preset_with_it():
    assert preset("lab", width=64).base.feed_forward_width == 64
    assert preset("bert", width=128).base.feed_forward_width == 512
