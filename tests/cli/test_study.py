"""`headstart compare` and `headstart report` as a user runs them."""

import json
import os
import signal
from pathlib import Path

import pytest

from headstart.cli.console import program
from tests.corpora import write_corpus
from tests.forked import start
from tests.labelled import dataset, write_csv
from tests.study.fake_study import Recipe, fake_study

TINY = [
    "--vocab-size",
    "300",
    "--width",
    "16",
    "--layers",
    "2",
    "--heads",
    "2",
    "--feed-forward-width",
    "32",
    "--threads",
    "1",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_csv(folder / "data.csv", dataset(120))
    write_corpus(folder / "corpus.txt", documents=200)
    return folder


@pytest.mark.slow
def test_compare_ends_with_the_recommendation_the_verdict_and_the_report(headstart, data):
    """The output is short: no line per epoch, and a short verdict."""
    out = data / "study"
    options = ["--corpus", data / "corpus.txt", "--labels", "20", "--seeds", 2, "--epochs", 2]
    options += ["--arms", "tfidf,scratch,pretrained", "--tokens", 4096, *TINY, "--out", out]
    result = headstart("compare", data / "data.csv", *options)
    assert result.returncode == 0, result.stderr
    planned = "plan: tfidf, scratch, pretrained × 2 seeds × 5 folds × 20 labels = 30 trainings"
    assert planned in result.stderr
    assert "epoch 1" not in result.stderr
    *sentences, command, report = result.stdout.splitlines()
    assert command.startswith("next: headstart predict ")
    assert report == f"report: {out / 'report.html'}"
    again = headstart("compare", data / "data.csv", *options, "--json")
    written = json.loads(again.stdout)
    assert written["report"] == str(out / "report.html")
    assert sentences == [*written["recommendation"], *written["verdict"]]
    assert "resumed: 30 of 30 trainings are finished" in again.stderr


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        (
            "--arms",
            "scratch,wizard",
            "unknown arm 'wizard'; the arms are trivial, tfidf, linear, nb, cooc-lr",
        ),
        ("--objectives", "prefix", "--objectives is 'prefix'; choose causal, masked"),
        ("--labels", "many", "'many' is not a label budget"),
        ("--labels", "5000", "a budget of 5,000 labels"),
        ("--arms", "tfidf,stack", "a stack combines two or more of"),
        ("--preset", "huge", "--preset is 'huge'; choose small"),
    ],
)
def test_a_wrong_wish_is_named_with_what_there_is_and_nothing_is_written(
    headstart, data, tmp_path, option, value, named
):
    out = tmp_path / "study"
    result = headstart(
        "compare", data / "data.csv", "--corpus", data / "corpus.txt", option, value, "--out", out
    )
    assert result.returncode == 2, result.stderr
    assert named in " ".join(result.stderr.split())
    assert not out.exists()


def test_report_names_the_recommendation_the_verdict_and_the_files(
    headstart, headstart_json, tmp_path
):
    written = headstart_json("report", fake_study(tmp_path))
    assert Path(written["report"]).is_file()
    lines = headstart("report", tmp_path).stdout.splitlines()
    assert lines[0].startswith("Take ")
    assert set(written["verdict"]) < set(lines)
    assert lines[-1] == f"report: {tmp_path / 'report.html'}"


def test_labels_estimates_for_every_arm(headstart, headstart_json, tmp_path):
    fake_study(tmp_path, Recipe(test_rows=300))
    document = headstart_json("labels", tmp_path, "--target", 0.75)
    assert document["budgets"] == [100, 400, 1600]
    assert {one["arm"] for one in document["arms"]} >= {"scratch", "cooc-init", "pretrained"}
    shown = headstart("labels", tmp_path, "--target", 0.75).stdout
    assert "75 %" in shown
    assert "pretrained" in shown


def test_a_terminated_study_is_saved_and_says_how_to_resume(data, tmp_path):
    words = ["compare", data / "data.csv", "--arms", "tfidf", "--seeds", 20, "--jobs", 1]
    process = start([*words, "--threads", 1, "--out", tmp_path / "study"])
    process.wait_for_lines(tmp_path / "study" / "progress.jsonl", 5)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == 130, process.messages
    assert "finished trainings are saved. Resume: headstart compare" in process.messages


def test_the_next_command_starts_the_program_that_was_typed(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)  # it is not on the PATH
    monkeypatch.setattr("sys.argv", [".venv/bin/headstart"])
    assert program() == ".venv/bin/headstart"
    monkeypatch.setattr("sys.argv", ["headstart/__main__.py"])
    assert program() == "python -m headstart"


def test_labels_without_an_estimate_are_one_line(headstart, tmp_path):
    """The reason is printed once, not once per arm."""
    fake_study(tmp_path, Recipe(test_rows=50, budgets=(100, 400)))
    (shown,) = headstart("labels", tmp_path, "--target", 0.75).stdout.splitlines()
    assert "at least 3 label budgets" in shown
    assert "write 0.85 for 85 %" in headstart("labels", tmp_path, "--target", 85).stderr
    result = headstart("report", tmp_path / "nothing")
    assert result.returncode == 2
    assert "study.json is missing or damaged" in result.stderr
