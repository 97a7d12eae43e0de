"""Ask a fine-tuned run: texts in, the scores of each class out, in the order given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.run_folder import Run
from headstart.tasks.classification import Classification
from headstart.tasks.run import run_network
from headstart.tasks.task import Task
from headstart.text.checking.checks import checked_text

Asked = TypeVar("Asked", bound=Task[Any])


@dataclass(frozen=True)
class Prediction:
    """The answer for one text: the most probable class, and how probable each of them is."""

    label: str
    probability: float
    probabilities: dict[str, float]


def task_of(run: Run, kind: type[Asked]) -> Asked:
    """The run's task, if it is of the kind that is about to be asked."""
    if not isinstance(run.task, kind):
        name = "nothing: nobody has fine-tuned it" if run.task is None else run.task.name
        raise HeadstartError(
            f"this run answers another kind of question: its task is {name}",
            where=run.folder,
            fix="tags are asked with predict_tags, answers in a text with predict_spans, all "
            "others with predict; headstart predict RUN finds the right one",
        )
    return run.task


def check_texts(texts: Sequence[str], what: str = "text") -> None:
    """Nothing can be said about a text that is empty or no text."""
    for number, text in enumerate(texts, start=1):
        where = f"{what} {number}"
        if not checked_text(text, lambda where=where: where):  # type: ignore[misc]
            raise HeadstartError(f"the {what} is empty: there is nothing to judge", where=where)


def predict_scores(
    run: Run, texts: Sequence[str], *, progress: ProgressCallback | None = None
) -> NDArray[np.float64]:
    """The classes' scores (logits) of each text: (texts, classes). No text may be empty."""
    task = task_of(run, Classification)
    check_texts(texts)
    if not len(texts):
        return np.zeros((0, len(run.labels)))
    examples = task.encode(task.unlabelled(texts), run.reading)
    found: NDArray[np.float64] = task.join(
        run_network(run.model, examples, progress=progress), examples
    )
    return found


def probabilities_of(run: Run, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of classes that exclude each other, or of each label on its own."""
    exclusive = task_of(run, Classification).name != "multi-label"
    return np.asarray(softmax(scores, axis=1) if exclusive else expit(scores))


def predict(
    run: Run, texts: Sequence[str], *, progress: ProgressCallback | None = None
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
