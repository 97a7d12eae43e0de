"""The temperature that validation gives is a part of the run, and everyone who predicts uses it."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from headstart.errors import HeadstartError
from headstart.evaluation.calibration import at_temperature, fit_temperature
from headstart.run import CALIBRATION, VALIDATION, NetworkRun, write_temperature
from tests.labelled import dataset


@pytest.fixture
def copied(run_folder, tmp_path):
    """The run with a temperature that nobody could miss."""
    folder = shutil.copytree(run_folder, tmp_path / "run")
    write_temperature(2.5, folder)
    return folder


def test_a_finetuning_keeps_the_temperature_of_its_validation(run, run_folder):
    answers = load_file(run_folder / VALIDATION)
    assert run.temperature == fit_temperature(answers["logits"], answers["labels"])
    assert (run_folder / CALIBRATION).is_file()


def logits(run, texts):
    return run.scores(run.task.unlabelled(texts)).values


def test_predictions_are_calibrated(copied):
    opened, texts = NetworkRun.open(copied), dataset(6, 4).texts
    said = [list(answer["probabilities"].values()) for answer in opened.predict(texts)]
    assert np.array_equal(said, at_temperature(logits(opened, texts), 2.5))


def test_an_evaluation_measures_the_probabilities_that_predict_gives(copied):
    part = dataset(40, 8, wrong=0.2)
    found = NetworkRun.open(copied).evaluate(part)
    own = [answer["probabilities"] for answer in NetworkRun.open(copied).predict(part.texts)]
    names = part.label_names
    losses = [-np.log(p[names[label]]) for p, label in zip(own, part.labels, strict=True)]
    assert found["loss"] == pytest.approx(np.mean(losses))
    assert found["calibration"]["log_loss_after"] == pytest.approx(found["loss"])
    assert found["calibration"]["temperature"] == 2.5


def test_a_run_without_a_temperature_has_1(copied):
    (copied / CALIBRATION).unlink()
    assert NetworkRun.open(copied).temperature == 1.0


@pytest.mark.parametrize("content", ["{}", '{"temperature": "hot"}', '{"temperature": 0}', "["])
def test_a_damaged_temperature_is_said(copied, content):
    (copied / CALIBRATION).write_text(content)
    with pytest.raises(HeadstartError, match=f"{CALIBRATION} is .*damaged"):
        NetworkRun.open(copied)
