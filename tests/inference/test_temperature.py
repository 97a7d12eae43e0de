"""The temperature that validation gives is a part of the run, and everyone who predicts uses it."""

import json
import shutil

import numpy as np
import pytest

from headstart.evaluation.calibration import at_temperature, fit_temperature
from headstart.run import NetworkRun, write_task
from tests.labelled import dataset, splits


@pytest.fixture
def opened(run, run_folder, tmp_path):
    """The run with a temperature that nobody could miss."""
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
