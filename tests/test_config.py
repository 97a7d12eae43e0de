"""Settings: declared once, checked together, saved and read back."""

import pytest

from headstart.config import FinetuneConfig, PretrainConfig, StudyConfig, is_run
from headstart.errors import HeadstartError


@pytest.mark.parametrize("kind", [PretrainConfig, FinetuneConfig, StudyConfig])
def test_every_setting_has_a_help_text_and_a_valid_default(kind):
    for one in kind.settings():
        assert one.help
        assert one.problem(one.default) is None


def test_all_problems_are_one_message():
    with pytest.raises(HeadstartError) as error:
        FinetuneConfig.create(dataset=["x"], epochs=0, batch_size="many", pooling="middle")
    for name in ("epochs", "batch_size", "pooling"):
        assert name in error.value.what
    assert error.value.code == "config"


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"average": 2.0},
        {"seed": -1},
        {"seed": 2**31},
        {"epochs": True},
        {"epochs": 2.5},
        {"text_column": "\ud800"},
        {"dataset": "x.csv"},
        {"fresh": True},
        {"freeze": True},
        {"base": "runs/x", "width": 8},
        {"base": "runs/x", "objective": "causal"},
        {"labels": "100", "task": "tagging"},
        {"pooling": "max", "task": "spans"},
        {"task": "ranking"},
    ],
)
def test_a_wrong_setting_is_rejected(wrong):
    with pytest.raises(HeadstartError) as error:
        FinetuneConfig.create(**{"dataset": ["x"], **wrong})
    assert error.value.fix


def test_an_unknown_setting_is_rejected_with_the_known_ones():
    with pytest.raises(HeadstartError, match="unknown setting speed") as error:
        PretrainConfig.create(corpus=["a"], speed=9)
    assert "learning_rate" in error.value.fix


def test_the_preset_lab_brings_the_labs_settings_and_given_ones_win():
    lab = FinetuneConfig.create(dataset=["x"], preset="lab")
    assert (lab.pooling, lab.batch_size, lab.epochs, lab.head_init) == ("last", 8, 15, "random")
    assert (lab.learning_rate, lab.schedule, lab.weight_decay) == (1e-4, "constant", 0.0)
    assert FinetuneConfig.create(dataset=["x"], preset="lab", epochs=2).epochs == 2


def test_a_config_survives_its_file(tmp_path):
    config = PretrainConfig.create(
        corpus=['a "quoted" näme.txt', "b\\c", "del\x7f \U0001f600"], minutes=2.5, threads=3
    )
    config.save(tmp_path)
    assert is_run(tmp_path)
    assert PretrainConfig.load(tmp_path) == config


@pytest.mark.parametrize("content", ["speed = 9\n", "epochs = 'many'\n", "epochs = \n", "\x00"])
def test_a_bad_file_is_one_message_with_its_place(tmp_path, content):
    (tmp_path / "config.toml").write_text(content)
    with pytest.raises(HeadstartError) as error:
        FinetuneConfig.load(tmp_path)
    assert str(tmp_path) in error.value.where


def test_resuming_with_another_value_names_both(tmp_path):
    saved = PretrainConfig.create(corpus=["x"], steps=5, threads=2, precision="fp32")
    saved.save(tmp_path)
    same = PretrainConfig.create(corpus=["x"], steps=5, save_seconds=1.0)
    resumed = same.resumed(tmp_path)
    assert resumed == saved.replace(save_seconds=1.0)  # what was not given is the run's
    with pytest.raises(HeadstartError, match=r"learning_rate: 0\.002 in the run, 0\.1 now"):
        same.replace(learning_rate=0.1).resumed(tmp_path)


def test_settings_of_whole_texts_are_rejected_for_tags_unless_a_preset_has_them():
    with pytest.raises(HeadstartError, match="token_dropout is for whole texts, not for tagging"):
        FinetuneConfig.create(dataset=["x"], task="tagging", token_dropout=0.3)
    made = FinetuneConfig.create(dataset=["x"], task="tagging", preset="lab")
    assert (made.pooling, made.token_dropout, made.epochs) == (None, None, 15)
