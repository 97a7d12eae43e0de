"""Classes of texts and of pairs of texts: a label and probabilities per row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.inference.predict.predictor import (
    Predictor,
    Rows,
    TextRow,
    check_texts,
    in_pairs,
    task_of,
)
from headstart.inference.predict.writers import Csv, JsonLines, Parquet, Writer
from headstart.progress import ProgressCallback
from headstart.tasks.classification import Classification
from headstart.tasks.opened_run import OpenedRun
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import ReadOptions, join_pair


@dataclass(frozen=True)
class Prediction:
    """The most probable class of one text, and the probability of each class."""

    label: str
    probability: float
    probabilities: dict[str, float]


class ClassPredictor(Predictor):
    """Predicts labels with their probabilities; files are CSV, JSON Lines or Parquet."""

    explains = True

    def read_file(self, source: str | Path, options: ReadOptions) -> Rows:
        return LenientRows(source, replace(options, pairs=self.task.texts_per_row == 2))

    def read_texts(self, texts: Sequence[str]) -> list[TextRow]:
        if self.task.texts_per_row == 1:
            check_texts(texts)
            return [TextRow(n, text, {"text": text}) for n, text in enumerate(texts, start=1)]
        pairs = in_pairs(texts, "classifies pairs of texts", '"first text" "second text"')
        check_texts(texts)
        return [
            TextRow(n, str(join_pair(*pair)), dict(zip(("text", "second_text"), pair, strict=True)))
            for n, pair in enumerate(pairs, start=1)
        ]

    def predict(
        self, rows: Sequence[Any], *, progress: ProgressCallback | None = None
    ) -> list[Prediction]:
        return predict(self.run, [row.text for row in rows], progress=progress)

    def document(self, answer: Prediction | None) -> dict[str, Any]:
        if answer is None:
            return dict.fromkeys(("label", "probability", "probabilities"))
        return dict(vars(answer))

    def cells(self, answer: Prediction | None) -> dict[str, Any]:
        """The answer as flat columns, for tables."""
        probabilities: Mapping[str, float | None] = dict.fromkeys(self.run.labels)
        if answer is not None:
            probabilities = answer.probabilities
        named = {f"p({name})": p for name, p in probabilities.items()}
        return {"label": None if answer is None else answer.label, **named}

    @property
    def writers(self) -> Mapping[str, Callable[[Path], Writer]]:
        return {
            ".csv": partial(Csv, kept=self.columns, fields=self.cells),
            ".jsonl": partial(JsonLines, kept=self.columns, fields=self.document),
            ".parquet": partial(Parquet, kept=self.columns, fields=self.cells),
        }


def predict_scores(
    run: OpenedRun, texts: Sequence[str], *, progress: ProgressCallback | None = None
) -> NDArray[np.float64]:
    """The logits of each text: (texts, classes), not calibrated. No text may be empty."""
    task_of(run, Classification)
    check_texts(texts)
    if not len(texts):
        return np.zeros((0, len(run.labels)))
    predictor = ClassPredictor(run)
    scores: NDArray[np.float64] = predictor.run_network(predictor.task.unlabelled(texts), progress)
    return scores


def predict_probabilities(
    run: OpenedRun, texts: Sequence[str], *, progress: ProgressCallback | None = None
) -> NDArray[np.float64]:
    """The probability of each class (or of each label by itself): (texts, classes).

    They are calibrated: the scores are divided by the run's temperature.
    """
    scores = predict_scores(run, texts, progress=progress)
    return task_of(run, Classification).probabilities(scores, run.temperature)


def predict(
    run: OpenedRun, texts: Sequence[str], *, progress: ProgressCallback | None = None
) -> list[Prediction]:
    """Classify texts.

    Parameters
    ----------
    run : a run of a classification task (`headstart.load`).
    texts : none of them empty; a pair of texts is joined with `text.reading.rows.join_pair`.

    Returns
    -------
    One `Prediction` per text, in order.
    """
    task = task_of(run, Classification)
    answers = []
    for row in predict_probabilities(run, texts, progress=progress):
        named = {name: float(p) for name, p in zip(run.labels, row, strict=True)}
        answers.append(Prediction(task.label_of(named), max(named.values()), named))
    return answers
