"""Evaluation uses only rows that were not used for training or selection."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from headstart.config import FinetuneConfig
from headstart.data.dataset import Dataset
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import at_temperature, fit_temperature
from headstart.run import ROWS, NetworkRun, evaluation_rows, write_task
from tests.labelled import dataset, splits, write_csv


def test_the_document_has_all_that_was_asked_for(run):
    found = run.evaluate(dataset(60, 8, wrong=0.2))
    assert found["rows"] == 60
    accuracy = found["intervals"]["accuracy"]
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert sum(map(sum, found["confusion"])) == 60
    assert [row["name"] for row in found["classes"]] == ["animal", "person"]
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


def test_another_spelling_of_the_path_excludes_the_training_rows(run, run_folder):
    recipe = FinetuneConfig.load(run_folder)
    other = str(run_folder / ".." / "train.csv")
    part, _ = evaluation_rows(recipe, run.task, other)
    found = run.evaluate(part)
    own = read_dataset(recipe.dataset)
    assert found["seen_rows"] == len(own.train) + len(own.validation)
    assert found["rows"] == len(part) - found["seen_rows"]
    text_of = dict(zip(part.rows, part.texts, strict=True))  # mistakes name rows of the file
    assert all(text_of[one["row"]] == one["text"] for one in found["mistakes"])


def test_rows_that_were_all_seen_are_rejected(run, run_folder):
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


@pytest.fixture
def opened(run, run_folder, tmp_path):
    """The run with a temperature far from 1."""
    folder = shutil.copytree(run_folder, tmp_path / "run")
    write_task(run.task, run.encoding, folder, 2.5)
    return NetworkRun.open(folder)


def logits(run, texts):
    return run.scores(run.task.unlabelled(texts))


def test_a_finetuning_keeps_the_temperature_of_its_validation(run, run_folder):
    part = splits(rows=120, wrong=0.1).train
    assert run.temperature == json.loads((run_folder / "task.json").read_text())["temperature"]
    assert run.temperature != 1.0
    assert run.task.fit_temperature(logits(run, part.texts), part) == fit_temperature(
        logits(run, part.texts), part.labels
    )


def test_predictions_and_evaluations_are_calibrated(opened):
    part = dataset(40, 8, wrong=0.2)
    predicted = [list(one["probabilities"].values()) for one in opened.predict(part.texts)]
    assert np.array_equal(predicted, at_temperature(logits(opened, part.texts), 2.5))
    losses = [-np.log(p[label]) for p, label in zip(predicted, part.labels, strict=True)]
    found = opened.evaluate(part)
    assert found["loss"] == pytest.approx(np.mean(losses))
    assert found["calibration"]["log_loss_after"] == pytest.approx(found["loss"])
    assert found["calibration"]["temperature"] == 2.5
