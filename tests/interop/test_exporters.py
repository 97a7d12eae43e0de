"""An export is checked in a temporary folder, and saved only if it equals the run."""

import pytest
from huggingface_hub import ModelCard

from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.interop.export import export_run
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun
from tests.baselines.saved import classifier_run

TINY = {"width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 3, vocab_size=300)
    chosen = preset("small", vocab_size=tokenizer.vocab_size, **TINY)
    folder = tmp_path_factory.mktemp("base") / "run"
    NetworkRun(folder, build_model(chosen.base, chosen.language_modeling), tokenizer).save(folder)
    return folder


def test_the_card_names_what_is_public_and_no_folder_of_a_person(run, tmp_path):
    pytest.importorskip("transformers")
    recipe = 'corpus = ["imdb", "/home/me/letters.txt"]\n'
    for base, shown in [("hf:owner/name@abc", True), ("hf:home/me/model", False)]:
        (run / "config.toml").write_text(recipe + f'base = "{base}"\n')
        export_run(run, "huggingface", tmp_path / base[3:7])
        card = ModelCard.load(tmp_path / base[3:7] / "README.md")
        assert card.data.base_model == ("owner/name" if shown else None)
        assert card.data.datasets == ["imdb"]
        assert "home/me" not in card.content
    (run / "config.toml").unlink()


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
    classifier_run("tfidf").save(tmp_path / "best")
    found = headstart("export", tmp_path / "best", "--to", "onnx", "--out", tmp_path / "out")
    assert found.returncode == 2
    assert "it is not a network" in " ".join(found.stderr.split())
    assert not (tmp_path / "out").exists()
