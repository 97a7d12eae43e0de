"""Ask a fine-tuned run: texts in, the scores of each class out, in the order given."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from headstart.errors import HeadstartError
from headstart.run_folder import Run, open_task_run
from headstart.tasks.classification import Classification
from headstart.tasks.run import run_network
from headstart.tasks.task import Progress
from headstart.text.checks import checked_text


@dataclass(frozen=True)
class Prediction:
    """The answer for one text: the most probable class, and how probable each of them is."""

    label: str
    probability: float
    probabilities: dict[str, float]


def open_classifier(folder: Path) -> Run:
    """A run that answers with one class (or several) a text or pair of texts."""
    run = open_task_run(folder)
    assert run.task is not None
    if not isinstance(run.task, Classification):
        raise HeadstartError(
            f"this run answers another kind of question: its task is {run.task.name}",
            where=folder,
            fix="headstart evaluate RUN DATASET scores it",
        )
    return run


def predict_scores(
    run: Run, texts: Sequence[str], *, progress: Progress | None = None
) -> NDArray[np.float64]:
    """The classes' scores (logits) of each text: (texts, classes). No text may be empty."""
    assert run.task is not None
    for number, text in enumerate(texts, start=1):
        if not checked_text(text, lambda number=number: f"text {number}"):  # type: ignore[misc]
            raise HeadstartError(
                "the text is empty: there is nothing to judge", where=f"text {number}"
            )
    if not len(texts):
        return np.zeros((0, len(run.labels)))
    examples = run.task.encode(run.task.unlabelled(texts), run.reading)
    found: NDArray[np.float64] = run.task.join(
        run_network(run.model, examples, progress=progress), examples
    )
    return found


def probabilities_of(run: Run, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of classes that exclude each other, or of each label on its own."""
    assert run.task is not None
    exclusive = run.task.name != "multi-label"
    return np.asarray(softmax(scores, axis=1) if exclusive else expit(scores))


def predict(
    run: Run, texts: Sequence[str], *, progress: Progress | None = None
) -> list[Prediction]:
    """The answers for some texts."""
    found = probabilities_of(run, predict_scores(run, texts, progress=progress))
    return [make_prediction(run, row) for row in found]


def make_prediction(run: Run, probabilities: NDArray[Any]) -> Prediction:
    named = {name: float(p) for name, p in zip(run.labels, probabilities, strict=True)}
    if run.task is not None and run.task.name == "multi-label":
        chosen = [name for name, p in named.items() if p >= 0.5]
        return Prediction(" ".join(chosen), max(named.values()), named)
    best = max(named, key=named.__getitem__)
    return Prediction(best, named[best], named)
