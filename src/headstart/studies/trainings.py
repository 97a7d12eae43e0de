"""A finished training is one file: what it measured, and what it says of validation and test.

It is written whole or not at all, so what is there after a kill can be trusted, and a study that
is started again does only what is missing.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.studies.results import Measure, RunKey

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Outcome:
    """What one training came to. Probabilities are rows × classes, of its best epoch."""

    run: RunKey
    measures: list[Measure]
    validation: Floats
    test: Floats
    facts: dict[str, Any]  # what else the plan or a reader wants to know: best epoch, steps

    def measure(self, split: str, metric: str) -> float:
        """A value that was measured at the best epoch."""
        return next(
            m.value for m in self.measures if (m.epoch, m.split, m.metric) == (-1, split, metric)
        )


def training_name(run: RunKey) -> str:
    """A name for files and folders that sorts by what it says."""
    parts = [run.arm, run.objective, f"{run.labels:06d}", f"seed-{run.seed}"]
    return "-".join(part for part in parts if part)


def training_file(study: Path, run: RunKey) -> Path:
    return study / "trainings" / f"{training_name(run)}.safetensors"


def write_training(study: Path, outcome: Outcome) -> None:
    about = {
        "run": asdict(outcome.run),
        "measures": [[m.epoch, m.split, m.metric, m.value, m.seconds] for m in outcome.measures],
        "facts": outcome.facts,
    }
    arrays = {"validation": outcome.validation, "test": outcome.test}
    with replacing(training_file(study, outcome.run)) as temporary:
        save_file(arrays, temporary, metadata={"training": json.dumps(about)})


def read_training(study: Path, run: RunKey) -> Outcome:
    path = training_file(study, run)
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads(file.metadata()["training"])
            arrays = [file.get_tensor(name) for name in ("validation", "test")]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise HeadstartError(
            f"this finished training cannot be read: {error}",
            where=path,
            fix="delete the file and start the study again: it is trained anew",
        ) from None
    measures = [Measure(run, *line) for line in about["measures"]]
    return Outcome(run, measures, arrays[0], arrays[1], about["facts"])


def is_finished(study: Path, run: RunKey) -> bool:
    return training_file(study, run).is_file()
