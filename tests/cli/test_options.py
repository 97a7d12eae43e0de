"""Settings on the command line: text becomes values, files have less priority than options."""

import pytest
import typer
from typer.testing import CliRunner

from headstart.cli.options import from_config
from headstart.config import FinetuneConfig, PretrainConfig, StudyConfig
from headstart.errors import HeadstartError


def given(config, *arguments):
    """The settings that a command receives for these arguments."""
    received = {}

    @from_config(config)
    def command(given) -> None:
        received.update(given)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None:
        raise result.exception
    return received


def test_only_what_was_given_is_passed_on():
    assert given(FinetuneConfig, "a.csv", "--epochs", 2) == {"dataset": ["a.csv"], "epochs": 2}
    assert given(FinetuneConfig) == {}


@pytest.mark.parametrize(
    ("written", "amount"), [("500000", 500_000), ("0.5M", 500_000), ("2000k", 2_000_000)]
)
def test_amounts_are_read_with_and_without_a_unit(written, amount):
    assert given(PretrainConfig, "--tokens", written)["tokens"] == amount


def test_lists_are_separated_by_commas_or_repeated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.txt").write_text("a file whose name has a comma")
    found = given(StudyConfig, "--arms", "tfidf, scratch", "--arms", "nb", "--corpus", "a,b.txt")
    assert found == {"arms": ["tfidf", "scratch", "nb"], "corpus": ["a,b.txt"]}


def test_options_have_priority_over_a_file(tmp_path):
    FinetuneConfig.create(dataset=["a.csv"], epochs=7, drop_overlap=True).save(tmp_path)
    found = given(FinetuneConfig, "--config", tmp_path / "config.toml", "--epochs", 2, "b.csv")
    assert (found["dataset"], found["epochs"], found["drop_overlap"]) == (["b.csv"], 2, True)


def test_a_bad_value_of_a_file_is_rejected_unless_an_option_replaces_it(tmp_path):
    (tmp_path / "mine.toml").write_text("epochs = 0\n")
    with pytest.raises(HeadstartError, match="--epochs is 0; it must be at least 1"):
        given(FinetuneConfig, "--config", tmp_path / "mine.toml")
    assert given(FinetuneConfig, "--config", tmp_path / "mine.toml", "--epochs", 2)["epochs"] == 2
