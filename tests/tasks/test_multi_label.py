"""Multi-label: every label is predicted independently."""

import csv
from dataclasses import replace

import pytest

from headstart.data.readers import list_labels, name_label
from headstart.errors import HeadstartError
from headstart.estimators import HeadstartClassifier
from headstart.run import NetworkRun, evaluation_rows
from headstart.tasks.classification import MultiLabel
from headstart.training.finetune import finetune
from tests.labelled import config, write_labels


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    path = write_labels(folder / "rows.jsonl")
    settings = config(dataset=[str(path)], task="multi-label", epochs=8)
    summary = finetune(settings, folder / "run").summary
    return NetworkRun.open(folder / "run"), summary, settings


def test_it_learns_every_label(run):
    opened, summary, settings = run
    assert opened.labels == ("bird", "cat", "dog")
    assert summary["validation"]["micro_f1"] > 0.9
    part, _ = evaluation_rows(settings, opened.task, None)
    found = opened.evaluate(part)
    assert found["micro_f1"] > 0.9
    assert [row["name"] for row in found["classes"]] == ["bird", "cat", "dog"]


def test_a_text_may_have_all_labels_or_none(run):
    answers = run[0].predict(["1 we saw cat and dog and bird", "2 we saw nothing"])
    assert [answer["labels"] for answer in answers] == [["bird", "cat", "dog"], []]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("b|a", "a|b"),
        ("b; a ;", "a|b"),
        ("a, b, a", "a|b"),
        (["b", "a"], "a|b"),
        (None, ""),
        ([], ""),
    ],
)
def test_labels_are_written_in_many_ways(value, name):
    names = [name_label(one) for one in list_labels(value)]
    assert "|".join(sorted(set(names))) == name


def test_labels_with_spaces_stay_apart(run, tmp_path):
    opened = run[0]
    task = MultiLabel(("big cat", "dog", "small bird"))
    spaced = replace(opened, task=task, folder=tmp_path)
    text = "1 we saw cat and dog and bird"
    assert spaced.predict([text])[0]["labels"] == ["big cat", "dog", "small bird"]
    (tmp_path / "in.csv").write_text(f"text\n{text}\n2 we saw nothing\n")
    spaced.predict_file(tmp_path / "in.csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["labels"] for row in rows] == ["big cat|dog|small bird", ""]


def test_the_classifier_of_one_class_per_text_rejects_it(run):
    with pytest.raises(HeadstartError, match="does not classify texts"):
        HeadstartClassifier.from_run(run[0].folder)
