"""Evaluation: the numbers, on rows that nothing was chosen by."""

import copy
from dataclasses import replace

import pytest
import torch

from headstart.config import FinetuneConfig
from headstart.data.dataset import Dataset
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError
from headstart.run import ROWS, evaluation_rows
from tests.labelled import dataset, write_csv


def test_the_document_has_all_that_was_asked_for(run):
    found = run.evaluate(dataset(60, 8, wrong=0.2))
    assert found["rows"] == 60
    accuracy = found["intervals"]["accuracy"]
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert {"temperature", "calibration_error_before", "calibration_error_after"} <= set(
        found["calibration"]
    )
    assert sum(map(sum, found["confusion"])) == 60
    assert [row["name"] for row in found["classes"]] == ["animal", "person"]
    assert 1 <= len(found["mistakes"]) <= 10
    assert found["mistakes"][0]["confidence"] >= found["mistakes"][-1]["confidence"]
    assert all(mistake["true"] != mistake["predicted"] for mistake in found["mistakes"])


def test_the_runs_own_dataset_is_judged_by_its_test_part(run, run_folder):
    recipe = FinetuneConfig.load(run_folder)
    part, which = evaluation_rows(recipe, run.task, None)
    assert part == read_dataset(recipe.dataset).test
    assert "the test part" in which


def test_of_another_dataset_the_test_part_is_read_or_all_rows(run, run_folder, tmp_path):
    config, path = FinetuneConfig.load(run_folder), tmp_path / "folder"
    path.mkdir()
    write_csv(path / "train.csv", dataset(30, 6))
    test = str(write_csv(path / "test.csv", dataset(20, 7)))
    for settings, given, wanted in [
        (config, str(path), f"the test part of {path}"),
        (config, test, test),
        (config.replace(test=test), None, f"the test file {test}"),
    ]:
        part, which = evaluation_rows(settings, run.task, given)
        assert (len(part), which) == (20, wanted)


def test_other_labels_than_the_runs_are_an_error_that_names_both(run, run_folder, tmp_path):
    other = dataset(30, 7)
    renamed = Dataset("other", other.texts, other.labels, ("good", "bad"))
    path = write_csv(tmp_path / "other.csv", renamed)
    with pytest.raises(HeadstartError, match=r"'good'.*'animal', 'person'") as error:
        evaluation_rows(FinetuneConfig.load(run_folder), run.task, str(path))
    assert "row 1" in error.value.where
    with pytest.raises(HeadstartError, match=r"'negative'.*'animal'"):
        evaluation_rows(FinetuneConfig.load(run_folder), run.task, "rotten-tomatoes")


def test_another_spelling_of_the_path_judges_no_row_that_was_trained_on(run, run_folder):
    recipe = FinetuneConfig.load(run_folder)
    other = str(run_folder / ".." / "train.csv")
    part, _ = evaluation_rows(recipe, run.task, other)
    found = run.evaluate(part)
    own = read_dataset(recipe.dataset)
    assert found["seen_rows"] == len(own.train) + len(own.validation)
    assert found["rows"] == len(part) - found["seen_rows"]
    text_of = dict(zip(part.rows, part.texts, strict=True))  # mistakes name rows of the file
    assert all(text_of[one["row"]] == one["text"] for one in found["mistakes"])


def test_rows_that_were_all_seen_are_refused(run, run_folder):
    train = read_dataset(FinetuneConfig.load(run_folder).dataset).train
    with pytest.raises(HeadstartError) as error:
        run.evaluate(train)
    assert error.value.code == "seen-rows"


def test_a_run_without_fingerprints_says_that_it_does_not_know(run, tmp_path):
    bare = replace(run, folder=tmp_path)
    assert bare.evaluate(dataset(20, 8))["seen_rows"] is None
    (tmp_path / ROWS).write_bytes(b"damaged")
    with pytest.raises(HeadstartError, match=f"{ROWS} is damaged"):
        bare.evaluate(dataset(20, 8))


def test_certainty_about_every_row_is_noted(run):
    assert run.evaluate(dataset(20, 8))["notes"] == []
    certain = copy.deepcopy(run.model)
    with torch.no_grad():
        certain.head.output.weight *= 10_000
    (note,) = replace(run, model=certain).evaluate(dataset(20, 8))["notes"]
    assert "99.99 %" in note
