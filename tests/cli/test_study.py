"""`headstart compare` and `headstart report` as a user runs them."""

import json
from pathlib import Path

import pytest

from tests.corpora import write_corpus
from tests.labelled import dataset, write_csv
from tests.studies.fake_study import fake_study

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
def test_compare_says_its_plan_its_trainings_its_verdict_and_where_the_report_is(headstart, data):
    out = data / "study"
    options = ["--corpus", data / "corpus.txt", "--labels", "20", "--seeds", 2, "--epochs", 2]
    options += ["--arms", "tfidf,scratch,pretrained", "--tokens", 4096, *TINY, "--out", out]
    result = headstart("compare", data / "data.csv", *options)
    assert result.returncode == 0, result.stderr
    assert "plan: tfidf, scratch, pretrained × 2 seeds × 20 labels = 6 trainings" in result.stderr
    assert "tfidf, 20 labels, seed 0: validation" in result.stderr
    assert f"report: {out / 'report.html'}" in result.stdout
    assert "retraining" in result.stdout
    again = headstart("compare", data / "data.csv", *options, "--json")
    assert json.loads(again.stdout)["report"] == str(out / "report.html")
    assert "resumed: 6 of 6 trainings are finished" in again.stderr


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        (
            "--arms",
            "scratch,wizard",
            "unknown arm 'wizard'; there are trivial, tfidf, linear, nb, cooccurrence",
        ),
        ("--objective", "prefix", "unknown objective 'prefix'; there are causal, masked"),
        ("--labels", "many", "'many' is not a label budget"),
        ("--labels", "5000", "a budget of 5,000 labels"),
        ("--arms", "tfidf,stack", "a stack joins two or more of"),
        ("--arms", "stack,trivial", "a stack cannot join trivial"),
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


def test_without_a_corpus_the_plan_says_what_is_pretrained_on(headstart, data, tmp_path):
    out = tmp_path / "study"
    result = headstart("compare", data / "data.csv", "--out", out, "--dry-run", *TINY)
    assert result.returncode == 0, result.stderr
    assert "pretraining on the training texts (no --corpus)" in result.stderr
    assert not out.exists()


def test_json_names_the_files_written(headstart_json, tmp_path):
    written = headstart_json("report", fake_study(tmp_path))
    assert written["report"] == str(tmp_path / "report.html")
    for path in (written["report"], *written["figures"], *written["tables"]):
        assert Path(path).is_file()
    assert written["verdict"]


def test_the_page_prints_the_verdict_and_the_path(headstart, tmp_path):
    result = headstart("report", fake_study(tmp_path))
    assert "pretraining adds" in result.stdout.splitlines()[0]
    assert result.stdout.rstrip().endswith("report.html")


def test_a_folder_that_is_no_study_is_one_message_and_code_2(headstart, tmp_path):
    result = headstart("report", tmp_path)
    assert result.returncode == 2
    assert "this folder has no study.json" in result.stderr
    assert "Traceback" not in result.stderr
