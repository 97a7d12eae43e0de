"""An export is written beside, checked, and kept only if it computes what the run computes."""

import pytest

from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.interop import exporters
from headstart.interop.exporters import (
    Exporter,
    ExportOptions,
    OutputDifference,
    Written,
    export_run,
)
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun

TINY = {"width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 3, vocab_size=300)
    chosen = preset("small", vocab_size=tokenizer.vocab_size, **TINY)
    folder = tmp_path_factory.mktemp("base") / "run"
    NetworkRun(folder, build_model(chosen.base, chosen.language_modeling), tokenizer).save(folder)
    return folder


class Weights(Exporter):
    """Writes how many weights there are."""

    name = "count"
    difference = 0.0

    def write(self, run, folder, options):
        count = sum(parameter.numel() for parameter in run.model.parameters())
        (folder / "count.txt").write_text(str(count))
        return Written(model="a number", library="none", notes=["only a number"])

    def check(self, run, folder, options):
        return [OutputDifference("everything", self.difference, 0.1)]


@pytest.fixture
def exporter(monkeypatch):
    monkeypatch.setattr(exporters, "find_exporter", lambda name: Weights())


def test_the_card_names_what_is_public_and_no_folder_of_a_person(run, exporter, tmp_path):
    recipe = 'corpus = ["imdb", "/home/me/letters.txt"]\n'
    for base, shown in [("hf:owner/name@abc", True), ("hf:home/me/model", False)]:
        (run / "config.toml").write_text(recipe + f'base = "{base}"\n')
        export_run(run, "count", tmp_path / base[3:7])
        card = (tmp_path / base[3:7] / "README.md").read_text()
        assert ("base_model: 'owner/name'" in card) == shown
        assert "datasets:\n- 'imdb'" in card
        assert "home/me" not in card
    (run / "config.toml").unlink()


@pytest.mark.parametrize("difference", [1.0, float("nan")])
def test_a_failed_check_leaves_nothing_behind(run, exporter, tmp_path, difference, monkeypatch):
    monkeypatch.setattr(Weights, "difference", difference)
    with pytest.raises(HeadstartError, match="does not compute what the run computes"):
        export_run(run, "count", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_is_left_alone(run, exporter, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(HeadstartError, match="something in this folder"):
        export_run(run, "count", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_folder_of_the_run_is_left_alone(run, exporter):
    with pytest.raises(HeadstartError, match="the run's own folder"):
        export_run(run, "count", run / "inside")
    assert not (run / "inside").exists()


def test_an_unknown_exporter_is_an_error_that_names_the_known_ones(run, tmp_path, headstart):
    result = headstart("export", run, "--to", "paper", "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "huggingface" in result.stderr


def test_a_causal_base_goes_out_as_llama(run, tmp_path):
    found = export_run(run, "huggingface", tmp_path / "out", ExportOptions())
    assert found["model"] == "LlamaForCausalLM"
    assert found["largest_difference"] < 1e-5
