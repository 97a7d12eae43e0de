"""An export is written beside, checked, and kept only if it computes what the run computes."""

import sys
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard

from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.interop import export
from headstart.interop.export import Exported, OutputDifference, export_run
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun
from tests.labelled import dataset, write_csv
from tests.study.small_study import run_config, small_config

TINY = {"width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 3, vocab_size=300)
    chosen = preset("small", vocab_size=tokenizer.vocab_size, **TINY)
    folder = tmp_path_factory.mktemp("base") / "run"
    NetworkRun(folder, build_model(chosen.base, chosen.language_modeling), tokenizer).save(folder)
    return folder


@pytest.fixture
def exporter(monkeypatch):
    """One that writes a number; `made.difference` is how far it is from the run."""
    made = SimpleNamespace(difference=0.0)

    def write(run, folder, *, int8):
        (folder / "count.txt").write_text(str(len(list(run.model.parameters()))))
        compared = [OutputDifference("everything", made.difference, 0.1)]
        said = {"model": "a number", "library": "none", "pipeline": "other", "usage": "open()"}
        return Exported(**said, comparisons=compared)

    made.export = write
    monkeypatch.setitem(sys.modules, "count_exporter", made)
    monkeypatch.setitem(export.EXPORTERS, "count", "count_exporter")
    return made


def test_the_card_names_what_is_public_and_no_folder_of_a_person(run, exporter, tmp_path):
    recipe = 'corpus = ["imdb", "/home/me/letters.txt"]\n'
    for base, shown in [("hf:owner/name@abc", True), ("hf:home/me/model", False)]:
        (run / "config.toml").write_text(recipe + f'base = "{base}"\n')
        export_run(run, "count", tmp_path / base[3:7])
        card = ModelCard.load(tmp_path / base[3:7] / "README.md")
        assert card.data.base_model == ("owner/name" if shown else None)
        assert card.data.datasets == ["imdb"]
        assert "home/me" not in card.content
    (run / "config.toml").unlink()


@pytest.mark.parametrize("difference", [1.0, float("nan")])
def test_a_failed_check_leaves_nothing_behind(run, exporter, tmp_path, difference):
    exporter.difference = difference
    with pytest.raises(HeadstartError, match="does not compute what the run computes"):
        export_run(run, "count", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_or_belongs_to_the_run_is_left_alone(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for out in (tmp_path, run / "inside"):
        with pytest.raises(HeadstartError) as error:
            export_run(run, "onnx", out)
        assert error.value.where == str(out)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert not (run / "inside").exists()


def test_an_unknown_exporter_is_an_error_that_names_the_known_ones(run, tmp_path):
    with pytest.raises(HeadstartError) as error:
        export_run(run, "paper", tmp_path / "out")
    assert "huggingface" in error.value.fix


def test_a_classifier_without_a_network_says_so(tmp_path, headstart):
    """A study may recommend one."""
    write_csv(tmp_path / "rows.csv", dataset(60))
    config = small_config(tmp_path, corpus=[], labels=["20"], arms=["tfidf"], seeds=1)
    run_config(config, tmp_path / "study")
    found = headstart("export", tmp_path / "study/best", "--to", "onnx", "--out", tmp_path / "out")
    assert found.returncode == 2
    assert "it is not a network" in " ".join(found.stderr.split())
    assert not (tmp_path / "out").exists()
