"""A run's answers to its validation rows, and the temperature that they give.

The temperature is fitted on rows that the weights were not trained on and kept in
`calibration.json`; whoever predicts with the run divides its scores by it.
"""

import json
import math
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from headstart.errors import HeadstartError
from headstart.evaluation.calibration import HIGHEST, LOWEST
from headstart.files import read_object, replacing, write_text
from headstart.tasks.task import Task

VALIDATION = "validation.safetensors"  # the best epoch's answers for the validation rows
CALIBRATION = "calibration.json"


def save_validation(task: Task[Any], answers: Any, part: Any, folder: Path) -> None:
    """Keep the answers for the validation rows, and the temperature that they give."""
    kept = task.kept(answers, part)
    with replacing(folder / VALIDATION) as temporary:
        save_file(kept, temporary)
    write_temperature(task.fit_temperature(kept), folder)


def write_temperature(temperature: float, folder: Path) -> None:
    """Keep the temperature of the run in `folder`."""
    write_text(folder / CALIBRATION, json.dumps({"temperature": temperature}) + "\n")


def read_temperature(task: Task[Any], folder: Path) -> float:
    """The temperature that was kept; an older run has only the answers that it is fitted on."""
    path, answers = folder / CALIBRATION, folder / VALIDATION
    if path.is_file():
        fix = "copy the run again"
        found = read_object(path, fix=fix).get("temperature")
        if isinstance(found, int | float) and math.isfinite(found) and LOWEST <= found <= HIGHEST:
            return float(found)
        raise HeadstartError(f"{CALIBRATION} is damaged", where=path, fix=fix)
    if not answers.is_file():
        return 1.0
    try:
        return task.fit_temperature(load_file(answers))
    except (SafetensorError, KeyError, ValueError):
        raise HeadstartError(
            f"{VALIDATION} is damaged: the probabilities cannot be calibrated",
            where=answers,
            fix="copy the run again",
        ) from None
