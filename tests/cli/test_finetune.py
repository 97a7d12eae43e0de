"""finetune, evaluate and predict as a user runs them."""

import io
import json
import shutil
import sys
from dataclasses import replace

import pytest

from tests.labelled import dataset, write_csv

SMALL = ["--width", 16, "--layers", 1, "--heads", 2, "--vocab-size", 300, "--threads", 1]


BRACKETS = ("[neg]", "[/]")


def named(rows, seed, names=BRACKETS):
    return replace(dataset(rows, seed), label_names=names)


def words_of(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def files(tmp_path_factory, headstart):
    """A run whose labels look like markup, with its dataset and the output of its training."""
    folder = tmp_path_factory.mktemp("files")
    write_csv(folder / "train.csv", named(120, 3))
    result = headstart(
        *("finetune", folder / "train.csv", "--out", folder / "run"),
        *SMALL,
        *("--epochs", 3, "--learning-rate", 0.01, "--length", 24, "--long", "truncate"),
    )
    assert result.returncode == 0, result.stderr
    return folder, result


def test_finetune_shows_epochs_what_was_cut_baselines_and_what_comes_next(files):
    _, result = files
    for shown in ("starts from scratch", "[neg]", "epoch 3  train loss", "--length"):
        assert shown in result.stderr
    assert "TF-IDF" in result.stdout


def test_evaluate_shows_intervals_confusion_and_baselines(files, headstart, headstart_json):
    run = files[0] / "run"
    shown = headstart("evaluate", run).stdout
    for word in ("accuracy", "calibration error", "TF-IDF", "[neg]"):
        assert word in shown
    found = headstart_json("evaluate", run)
    assert found["labels"] == ["[/]", "[neg]"]
    compared = [one["metrics"]["accuracy"] for one in found["baselines"]]
    for one in [*compared, *found["intervals"].values()]:
        assert one["low"] <= one["value"] <= one["high"]
    assert not headstart_json("evaluate", run, "--no-baselines")["baselines"]


def test_predict_reads_texts_from_arguments_and_standard_input(
    files, headstart, headstart_json, monkeypatch
):
    run, text = files[0] / "run", "the old judge reads the law ."
    shown = headstart("predict", run, text, "the [bold]cat sits :cat: .", "--explain").stdout
    assert "[/]" in shown
    assert "the [bold]cat sits :cat: ." in shown
    assert "log-odds" in shown
    (found,) = headstart_json("predict", run, text, "--explain")["predictions"]
    assert found["explanation"]["method"] == "occlusion"
    assert len(found["explanation"]["effects"]) == 7
    lines = "the old judge reads the law .\n\nthe small cat chases the mouse .\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    labels = [one["label"] for one in headstart_json("predict", run, "-")["predictions"]]
    assert labels == ["[/]", "[neg]"]


def test_predict_reports_bad_rows_of_a_file_and_keeps_them(files, headstart, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in.csv").write_text("text,n\nthe cat sits .,1\nbroken\nthe judge sits .,3\n")
    source = ["predict", files[0] / "run", "--input", tmp_path / "in.csv"]
    result = headstart(*source, "--output=~/out.jsonl")
    assert result.returncode == 0, result.stderr
    assert "1 rows could not be predicted" in result.stderr
    assert "row 2" in result.stderr
    assert [json.loads(line)["row"] for line in (tmp_path / "out.jsonl").open()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "RUN", ""], "the text is empty"),
        (["predict", "RUN", "--input", "x.csv"], "--input needs --output"),
        (["predict", "RUN", "--input", "TRAIN", "--output", "TRAIN"], "overwrite the input"),
        (["predict", "STUDY", "a text"], "its folder best"),
        (["evaluate", "RUN", "rotten-tomatoes"], "--label-column"),
        (["finetune", "--out", "x"], "no dataset was given"),
        (["finetune", "ONE", "--out", "x"], "there is one class only"),
        (["finetune", "TRAIN", "--base", "missing", "--out", "x"], "there is no such run"),
        (["finetune", "TRAIN", "--base", "STUDY", "--out", "x"], "its folder best"),
        (["finetune", "TRAIN", "--out", "RUN"], "there is a run in this folder"),
        (["finetune", "--resume", "--out", "RUN", "--token-dropout", 0], "token_dropout"),
        (["finetune", "--resume", "--out", "RUN", "--config", "TOML"], "unknown setting wdith"),
    ],
)
def test_bad_input_is_one_clear_message_and_code_2(files, headstart, arguments, message):
    folder, _ = files
    one = dataset(40, 3)
    write_csv(folder / "one.csv", one.pick([n for n in range(40) if one.labels[n] == 0]))
    (folder / "more.toml").write_text("wdith = 32\n")
    (folder / "study" / "jobs").mkdir(parents=True, exist_ok=True)
    shutil.copytree(folder / "run", folder / "study" / "best", dirs_exist_ok=True)
    places = {
        "RUN": folder / "run",
        "TRAIN": folder / "train.csv",
        "ONE": folder / "one.csv",
        "STUDY": folder / "study",
        "TOML": folder / "more.toml",
        "x": folder / "x",
    }
    result = headstart(*(places.get(word, word) for word in arguments))
    assert result.returncode == 2, result.stderr
    assert message in words_of(result.stderr)
    assert "Traceback" not in result.stderr
    assert not (folder / "x").exists()


def test_a_dry_run_says_how_long_it_takes_and_writes_nothing(files, headstart, headstart_json):
    folder, _ = files
    arguments = ["finetune", folder / "train.csv", "--out", folder / "dry", "--dry-run", *SMALL]
    plan = headstart_json(*arguments)
    assert plan["seconds"] > 0
    assert (plan["epochs"], plan["steps"]) == (5, 30)
    assert "6 steps: " in headstart(*arguments, "--epochs", 1).stdout
    assert not (folder / "dry").exists()
    assert headstart("finetune", "--resume", "--dry-run", "--out", folder / "run").returncode == 0
