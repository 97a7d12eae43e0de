"""What a study keeps can be made again from its recipe."""

import pytest

from headstart.config import PRESET_SETTINGS, FinetuneConfig
from headstart.errors import HeadstartError
from headstart.run import NetworkRun
from headstart.studies.run import StudyRun
from headstart.training.finetune import finetune
from tests.fault_cases import SIZES, named
from tests.labelled import dataset, write_csv
from tests.studies.small_study import small_recipe


def test_the_recipe_of_the_best_network_gives_the_same_weights_and_it_has_a_card(
    headstart, tmp_path
):
    write_csv(tmp_path / "d.csv", dataset(80, sentences=1))
    options = SIZES | {"labels": 20, "seeds": 2, "epochs": 1, "jobs": 1, "arms": "scratch"}
    result = headstart("compare", tmp_path / "d.csv", "--out", tmp_path / "study", *named(options))
    assert result.returncode == 0, result.stderr
    best = tmp_path / "study" / "best"
    recipe = FinetuneConfig.load(best)
    assert recipe.labels == "20"
    finetune(recipe, tmp_path / "again")
    weights = [(folder / "model.safetensors").read_bytes() for folder in (best, tmp_path / "again")]
    assert weights[0] == weights[1]
    assert NetworkRun.open(best).labels == ("animal", "person")
    assert "## Evaluation" in (best / "README.md").read_text(encoding="utf-8")


def test_a_folder_for_the_tokenizer_without_one_is_filled(headstart, tmp_path):
    """A disk may refuse between the two."""
    write_csv(tmp_path / "d.csv", dataset(80, sentences=1))
    (tmp_path / "study" / "tokenizer").mkdir(parents=True)
    options = SIZES | {"labels": 20, "seeds": 2, "epochs": 1, "jobs": 1, "arms": "scratch,tfidf"}
    result = headstart("compare", tmp_path / "d.csv", "--out", tmp_path / "study", *named(options))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "study" / "tokenizer" / "tokenizer.json").is_file()


def test_a_study_does_not_go_on_under_another_protocol_of_its_preset(tmp_path, monkeypatch):
    recipe = small_recipe(tmp_path, arms=["tfidf"], preset="lab")
    StudyRun(recipe, tmp_path / "out").run()
    monkeypatch.setitem(PRESET_SETTINGS["lab"]["finetune"], "batch_size", 16)
    with pytest.raises(HeadstartError, match="the preset's protocol is not the one"):
        StudyRun(recipe, tmp_path / "out")
