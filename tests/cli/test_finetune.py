"""finetune, evaluate and predict as a user runs them."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from headstart.baselines import baselines
from headstart.tasks.classification import Classification
from tests.labelled import dataset, write_csv
from tests.runs import small_run

SMALL = ["--width", 16, "--layers", 1, "--heads", 2, "--vocab-size", 300, "--threads", 1]


@pytest.fixture(scope="module")
def files(tmp_path_factory, headstart):
    folder = tmp_path_factory.mktemp("files")
    write_csv(folder / "train.csv", dataset(120, 3))
    result = headstart(
        *("finetune", folder / "train.csv", "--out", folder / "run"),
        *SMALL,
        *("--epochs", 3, "--learning-rate", 0.01, "--length", 24, "--long", "truncate"),
    )
    assert result.returncode == 0, result.stderr
    return folder, result


def test_finetune_shows_a_table_of_epochs_and_what_was_cut(files):
    _, result = files
    assert "epoch 3  train loss" in result.stderr
    assert "not read (--length, or --long windows)" in result.stderr
    assert "headstart evaluate" in result.stdout


def test_without_a_base_the_network_starts_from_scratch_with_a_hint(files):
    _, result = files
    assert "starts from scratch" in result.stderr
    assert "headstart pretrain" in result.stderr


@pytest.mark.parametrize("dash", [[], ["-"]])
def test_texts_are_read_from_standard_input(files, headstart, dash):
    lines = "the old judge reads the law .\n\nthe small cat chases the mouse .\n"
    result = headstart("predict", files[0] / "run", *dash, "--json", input=lines)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)["predictions"]
    assert [one["label"] for one in found] == ["person", "animal"]


def test_a_finished_run_has_its_plan_and_rejects_unknown_settings(files, headstart, tmp_path):
    out = ("--out", files[0] / "run")
    result = headstart("finetune", "--resume", "--dry-run", *out)
    assert result.returncode == 0, result.stderr
    (tmp_path / "more.toml").write_text("wdith = 32\n")
    result = headstart("finetune", "--resume", "--config", tmp_path / "more.toml", *out)
    assert result.returncode == 2
    assert "unknown setting wdith" in result.stderr


def test_a_linear_arm_takes_a_label_budget(files, headstart_json, tmp_path):
    options = ("--arm", "tfidf", "--labels", 40, "--out", tmp_path / "run")
    summary = headstart_json("finetune", files[0] / "train.csv", *options, "--no-baselines")
    assert summary["train_rows"] == 40


def test_an_output_in_the_home_folder_is_written_there(files, headstart, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in.csv").write_text("text\nthe cat sits .\n")
    arguments = ["predict", files[0] / "run", "--input", tmp_path / "in.csv", "--output=~/out.csv"]
    result = headstart(*arguments)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.csv").is_file()


def test_empty_standard_input_is_one_message(files, headstart):
    result = headstart("predict", files[0] / "run", input="\n")
    assert result.returncode == 2
    assert "standard input has no text" in result.stderr


def test_a_folder_of_runs_as_a_base_names_the_runs_inside(files, headstart, tmp_path):
    shutil.copytree(files[0] / "run", tmp_path / "bases" / "causal")
    result = headstart("finetune", files[0] / "train.csv", "--base", tmp_path / "bases")
    assert result.returncode == 2
    assert str(tmp_path / "bases" / "causal") in result.stderr


def test_finetune_from_a_base_shows_the_swap(files, headstart, tmp_path):
    folder, _ = files
    train, run = folder / "train.csv", folder / "run"
    result = headstart(
        "finetune", train, "--base", run, "--out", tmp_path / "b", "--epochs", 1, "--threads", 1
    )
    assert "kept" in result.stderr
    assert "dropped" in result.stderr


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """Two bases of one corpus; the pretraining of the second was told of the dataset."""
    folder = tmp_path_factory.mktemp("bases")
    train = write_csv(folder / "train.csv", dataset(120, 3))
    told = {"told": str(train), "untold": None}
    return train, {
        name: small_run(folder / name, steps=3, task_text=text) for name, text in told.items()
    }


def test_a_base_that_may_have_read_the_test_texts_is_noted(bases, headstart, tmp_path):
    train, base = bases
    how = ("--epochs", 1, "--threads", 1, "--out", tmp_path / "run")
    shown = " ".join(headstart("finetune", train, "--base", base["untold"], *how).stderr.split())
    assert "which may contain validation or test texts" in shown
    assert f"headstart pretrain --task-text {train} removes them" in shown


def test_resuming_with_another_share_of_tokens_is_refused(files, headstart):
    run = files[0] / "run"
    result = headstart("finetune", "--resume", "--out", run, "--token-dropout", 0)
    assert result.returncode == 2
    assert "token_dropout" in result.stderr


def test_a_base_whose_corpus_left_the_test_texts_out_is_not_noted(bases, headstart, tmp_path):
    train, base = bases
    how = ("--epochs", 1, "--threads", 1, "--out", tmp_path / "run")
    result = headstart("finetune", train, "--base", base["told"], *how)
    assert result.returncode == 0
    assert "may contain validation or test texts" not in result.stderr


def test_evaluate_prints_the_accuracy_with_its_interval(files, headstart):
    result = headstart("evaluate", files[0] / "run")
    assert "accuracy" in result.stdout
    assert "calibration error" in result.stdout
    assert "true ↓" in result.stdout


def test_evaluate_as_json_is_one_document(files, headstart_json):
    assert headstart_json("evaluate", files[0] / "run")["labels"] == ["animal", "person"]


def test_predict_answers_texts_and_explains(files, headstart, headstart_json):
    run, text = files[0] / "run", "the old judge reads the law ."
    assert "person" in headstart("predict", run, text).stdout
    found = headstart_json("predict", run, text, "--explain")["predictions"][0]
    assert found["explanation"]["method"] == "occlusion"
    assert len(found["explanation"]["effects"]) == 7
    assert "method: occlusion" in headstart("predict", run, text, "--explain").stdout


def test_predict_reports_bad_rows_of_a_file_and_keeps_them(files, headstart, tmp_path):
    (tmp_path / "in.csv").write_text("text,n\nthe cat sits .,1\nbroken\nthe judge sits .,3\n")
    out = tmp_path / "out.jsonl"
    result = headstart("predict", files[0] / "run", "--input", tmp_path / "in.csv", "--output", out)
    assert result.returncode == 0, result.stderr
    assert "1 rows could not be predicted" in result.stderr
    assert "row 2" in result.stderr
    assert [json.loads(line)["row"] for line in out.open()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "RUN", ""], "the text is empty"),
        (["predict", "RUN", "--input", "x.csv"], "--input needs --output"),
        (["evaluate", "RUN", "rotten-tomatoes"], "other labels than the run"),
        (["finetune", "--out", "x"], "no dataset was given"),
        (["finetune", "TRAIN", "--out", "x", "--track", "w"], "unknown tracker"),
        (["finetune", "ONE", "--out", "x"], "there is one class only"),
        (["finetune", "TRAIN", "--base", "missing", "--out", "x"], "there is no such run"),
        (["finetune", "TRAIN", "--out", "RUN"], "there is a run in this folder"),
    ],
)
def test_bad_input_is_one_clear_message_and_code_2(files, headstart, arguments, message):
    folder, _ = files
    one = dataset(40, 3)
    write_csv(folder / "one.csv", one.pick([n for n in range(40) if one.labels[n] == 0]))
    places = {
        "RUN": folder / "run",
        "TRAIN": folder / "train.csv",
        "ONE": folder / "one.csv",
        "x": folder / "x",
    }
    result = headstart(*(places.get(word, word) for word in arguments))
    assert result.returncode == 2, result.stderr
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert not (folder / "x").exists()


@pytest.fixture(scope="module")
def bracketed(tmp_path_factory, headstart):
    """A run whose labels look like markup."""
    folder = tmp_path_factory.mktemp("brackets")
    data = dataset(120)
    data = replace(data, label_names=("[neg]", "[/]"))
    write_csv(folder / "train.csv", data)
    arguments = ["finetune", folder / "train.csv", "--out", folder / "run"]
    result = headstart(*arguments, "--epochs", 2, *SMALL)
    assert result.returncode == 0, result.stderr
    assert "[neg]" in result.stderr
    return folder / "run"


def test_labels_that_look_like_markup_are_shown_as_they_are(bracketed, headstart):
    shown = headstart("evaluate", bracketed)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("[neg]") >= 2  # in the confusion matrix and in the table of classes
    assert shown.stdout.count("[/]") >= 2
    for text in ("the old judge reads [/] .", "the [bold]cat sits :cat: ."):
        found = headstart("predict", bracketed, text, "--explain")
        assert found.returncode == 0, found.stderr
        assert "[neg]" in found.stdout or "[/]" in found.stdout
        assert text in found.stdout


def test_predict_refuses_to_overwrite_its_input(files, headstart, tmp_path):
    (tmp_path / "in.csv").write_text("text\nthe cat sits .\n")
    arguments = ["predict", files[0] / "run", "--input", tmp_path / "in.csv"]
    result = headstart(*arguments, "--output", tmp_path / "in.csv")
    assert result.returncode == 2
    assert "would overwrite the input" in result.stderr
    assert (tmp_path / "in.csv").read_text() == "text\nthe cat sits .\n"


def test_finetune_and_evaluate_show_baselines_beside_their_numbers(files, headstart):
    folder, result = files
    assert "majority class" in result.stdout
    assert "TF-IDF" in result.stdout
    shown = headstart("evaluate", folder / "run").stdout
    assert "majority class" in shown
    assert "TF-IDF" in shown
    assert "has not ended" not in shown
    assert "TF-IDF" not in headstart("evaluate", folder / "run", "--no-baselines").stdout


def test_finetune_reads_its_dataset_once_and_fits_baselines_to_all_rows(
    headstart_json, monkeypatch, tmp_path
):
    write_csv(tmp_path / "train.csv", dataset(120, 3))
    read, calls = Classification.read, []

    def counted(sources, **options):
        calls.append(sources)
        return read(sources, **options)

    monkeypatch.setattr(Classification, "read", counted)
    monkeypatch.setattr(baselines, "MAX_CHARACTERS", 10)
    options = ["--out", tmp_path / "run", "--epochs", 1]
    summary = headstart_json("finetune", tmp_path / "train.csv", *options, *SMALL)
    assert len(calls) == 1
    linear = summary["baselines"][1]
    assert (linear["name"], linear["about"]) == ("TF-IDF", "")


def test_baselines_are_fitted_to_the_rows_that_trained_the_run(files, headstart_json):
    found = headstart_json("evaluate", files[0] / "run")
    assert [one["name"] for one in found["baselines"]] == ["majority class", "TF-IDF"]
    for one in found["baselines"]:
        metrics = one["metrics"]["accuracy"]
        assert metrics["low"] <= metrics["value"] <= metrics["high"]
    f1 = found["intervals"]["macro_f1"]
    assert f1["low"] <= found["macro_f1"] <= f1["high"]


def test_a_dataset_that_is_gone_leaves_the_numbers_and_the_reason(files, headstart, tmp_path):
    folder, _ = files
    write_csv(tmp_path / "other.csv", dataset(30, 7))
    (folder / "train.csv").rename(folder / "moved.csv")
    try:
        shown = headstart("evaluate", folder / "run", tmp_path / "other.csv")
    finally:
        (folder / "moved.csv").rename(folder / "train.csv")
    assert shown.returncode == 0, shown.stderr
    assert "no baselines: there is no file or folder" in " ".join(shown.stderr.split())


def test_an_unfinished_run_is_called_that(files, headstart, tmp_path):
    shutil.copytree(files[0] / "run", tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    shown = headstart("evaluate", tmp_path / "run", "--no-baselines").stdout
    assert "the training has not ended" in " ".join(shown.split())


def test_without_a_test_part_the_hint_says_what_evaluate_needs(files, headstart, tmp_path):
    write_csv(tmp_path / "valid.csv", dataset(30, 7))
    arguments = ["finetune", files[0] / "train.csv", "--validation", tmp_path / "valid.csv"]
    options = ["--out", tmp_path / "run", "--epochs", 1, "--no-baselines"]
    result = headstart(*arguments, *options, *SMALL)
    assert result.returncode == 0, result.stderr
    assert f"headstart evaluate {tmp_path / 'run'} FILE" in " ".join(result.stdout.split())


def test_a_dry_run_says_how_long_it_takes_and_writes_nothing(files, headstart, headstart_json):
    folder, _ = files
    arguments = ["finetune", folder / "train.csv", "--out", folder / "dry"]
    result = headstart(*arguments, "--dry-run", *SMALL)
    assert result.returncode == 0, result.stderr
    assert "5 epochs of 6 steps" in result.stdout
    plan = headstart_json(*arguments, "--dry-run", *SMALL)
    assert plan["seconds"] > 0
    assert (plan["epochs"], plan["steps"]) == (5, 30)
    assert not (folder / "dry").exists()
    assert (
        "; 1 epoch of 6 steps" in headstart(*arguments, "--dry-run", "--epochs", 1, *SMALL).stdout
    )


def test_minutes_in_which_no_epoch_fits_are_refused_with_what_would(files, headstart):
    folder, _ = files
    arguments = ["finetune", folder / "train.csv", "--out", folder / "short"]
    result = headstart(*arguments, "--minutes", 1e-6, *SMALL)
    assert result.returncode == 2
    assert "one epoch takes about" in result.stderr
    assert "give --minutes" in result.stderr
    assert not (folder / "short").exists()


@pytest.mark.parametrize("command", [["predict", "RUN", "the cat sits ."], ["evaluate", "RUN"]])
def test_threads_are_chosen_for_predict_and_evaluate(files, headstart, command):
    words = [files[0] / "run" if word == "RUN" else word for word in command]
    before = torch.get_num_threads()
    assert headstart(*words, "--threads", 1).returncode == 0
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
    refused = headstart(*words, "--threads", 0)
    assert refused.returncode == 2
    assert "--threads" in refused.stderr


def test_a_study_in_place_of_a_run_names_the_runs_inside(files, headstart, tmp_path):
    (tmp_path / "jobs").mkdir()
    assert "have not ended" in headstart("predict", tmp_path, "text").stderr
    shutil.copytree(files[0] / "run", tmp_path / "best")
    result = headstart("predict", tmp_path, "text")
    assert result.returncode == 2
    assert f"name a run inside it: {tmp_path / 'best'}" in " ".join(result.stderr.split())
