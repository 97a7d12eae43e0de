"""A preset from outside the package is used like ours."""

import pytest

from headstart.errors import HeadstartError
from headstart.model.config import BaseConfig, LanguageModelingConfig
from headstart.model.presets import (
    Preset,
    PresetFactory,
    preset,
    preset_names,
    register_preset,
    unregister_preset,
)
from headstart.training.pretrain import pretrain
from tests.runs import small_recipe


def tiny(objective, sizes):
    values = {"vocab_size": 100, "width": 16, "layers": 1, "heads": 1, "feed_forward_width": 16}
    attention = "causal" if objective == "causal" else "bidirectional"
    base = BaseConfig(**{**values, **sizes}, attention=attention)
    return Preset("tiny", base, LanguageModelingConfig(), pooling="mean")


@pytest.fixture
def registered():
    register_preset("tiny", PresetFactory(tiny, objective="masked"))
    yield
    unregister_preset("tiny")


def test_it_is_found_by_its_name_with_its_usual_objective(registered):
    assert preset_names() == ["lab", "small", "bert", "gpt2", "tiny"]
    found = preset("tiny", width=32)
    assert (found.base.attention, found.base.width) == ("bidirectional", 32)


def test_a_base_is_pretrained_with_it(registered, tmp_path):
    summary = pretrain(small_recipe(tmp_path, preset="tiny", steps=3), tmp_path / "run")
    assert summary["steps"] == 3


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(HeadstartError, match="the presets are lab, small, bert, gpt2"):
        preset("tiny")
