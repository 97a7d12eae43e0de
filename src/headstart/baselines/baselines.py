"""Baselines of a run: the trivial prediction of its task, and a linear model in seconds.

A metric says little by itself: 90 % accuracy is nothing where 90 % of the rows are of one class.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.baselines.linear import (
    LinearTextClassifier,
    NaiveBayesClassifier,
    TfidfClassifier,
)
from headstart.baselines.tagger import WordTagger
from headstart.config import FinetuneConfig
from headstart.data.conll import Sentences
from headstart.data.dataset import Dataset
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import fit_temperature
from headstart.linear import FoldFeatures, select_C
from headstart.run import ClassifierRun, seen_rows
from headstart.tasks.classification import CERTAIN, Classification, MultiLabel
from headstart.tasks.tagging import Tagging
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback
from headstart.training.initialization import read_splits

MAX_CHARACTERS = 2_000_000  # of training text that a linear model fits in seconds
EVALUATED = 5  # times as many characters are predicted
FEW_LABELS = 8  # up to so many, each selects its C
USUAL_C = 3.0
TAGGER_ALPHAS = (1e-6, 1e-5, 1e-4)
ScoreRows = Callable[[Any], Any]

# The arms of `headstart finetune --arm` without a network.
LINEAR_ARMS: dict[str, type[LinearTextClassifier]] = {
    "tfidf": TfidfClassifier,
    "nb": NaiveBayesClassifier,
}


def baselines_for(
    task: Task[Any],
    train: Any,
    validation: Any,
    test: Any,
    *,
    max_characters: int | None = None,
) -> list[dict[str, Any]]:
    """Compute the trivial baseline and, where the task has one, the linear one.

    Parameters
    ----------
    task : Task
    train, validation : rows of the task
        Those that trained the run, and those that selected its weights; here they select C.
    test : rows of the task
        Those that the run is evaluated on.
    max_characters : int, optional
        Fit the linear model to a random sample of rows with so many characters.

    Returns
    -------
    list of dict
        `name`, `about` and `metrics` with their intervals.
    """
    found = []
    trivial = task.trivial(train, test)
    if trivial is not None:
        name, _, about = trivial[0].partition(": ")
        metrics = task.intervals(trivial[1], test)
        found.append({"name": name, "about": about, "metrics": metrics})
    if task.name not in LINEAR_MODELS:
        return found
    name, fit = LINEAR_MODELS[task.name]
    notes = []
    if max_characters is not None:
        rows = _sample(task, train, max_characters)
        if len(rows) < len(train):
            notes.append(f"fitted to {len(rows):,} of {len(train):,} rows")
        tested = _sample(task, test, EVALUATED * max_characters)
        if len(tested) < len(test):
            notes.append(f"evaluated on {len(tested):,} of {len(test):,}")
        train, test = task.pick(train, rows), task.pick(test, tested)
        validation = task.pick(validation, _sample(task, validation, max_characters))
    try:
        scores = fit(task, train, validation)(test)
    except HeadstartError:  # for example one class only: there is nothing to fit
        return found
    metrics = task.intervals(scores, test)
    return [*found, {"name": name, "about": ", ".join(notes), "metrics": metrics}]


def baselines_of_run(folder: Path, task: Task[Any], test: Any = None) -> list[dict[str, Any]]:
    """Compute the baselines of a fine-tuned run, fitted to the rows that trained it.

    Parameters
    ----------
    folder : Path
        The run; its config says where its dataset is. Rows that it does not know are dropped.
    task : Task
        The run's task.
    test : rows of its task, optional
        Those that it is evaluated on; by default its validation rows.
    """
    splits = read_splits(FinetuneConfig.load(folder), Callback())
    parts = []
    for role, rows in (("train", splits.train), ("validation", splits.validation)):
        rows = task.match_labels(rows, str(folder))
        known = seen_rows(task, rows, folder, (role,))
        parts.append(rows if known is None else task.pick(rows, known.tolist()))
    if not all(map(len, parts)):
        raise HeadstartError("the rows that trained the run are not in its dataset any more")
    train, validation = parts
    test = validation if test is None else test
    return baselines_for(task, train, validation, test, max_characters=MAX_CHARACTERS)


def _sample(task: Task[Any], rows: Any, max_characters: int) -> list[int]:
    """Draw so many rows that they have about `max_characters`, always the same ones."""
    characters = sum(map(len, task.texts(rows)))
    count = max(1, round(len(rows) * min(1.0, max_characters / max(1, characters))))
    return sorted(np.random.default_rng(0).permutation(len(rows))[:count].tolist())


def fit_classifier(
    arm: str, task: Classification, train: Dataset, validation: Dataset
) -> ClassifierRun:
    """Fit a linear arm; the validation rows select C and the temperature."""
    classifier = LINEAR_ARMS[arm]()
    classifier.fit(train.texts, train.labels, validation=(validation.texts, validation.labels))
    run = ClassifierRun(Path(), task, classifier)
    temperature = fit_temperature(run.scores(validation).values, validation.labels)
    return replace(run, temperature=temperature)


def _fit_tfidf(task: Classification, train: Dataset, validation: Dataset) -> ScoreRows:
    run = fit_classifier("tfidf", task, train, validation)
    return lambda rows: run.scores(rows).values


def _fit_one_vs_rest(task: MultiLabel, train: Dataset, validation: Dataset) -> ScoreRows:
    """Fit TF-IDF features and one logistic regression per label."""
    targets, held_targets = task.matrix(train), task.matrix(validation)
    tfidf = TfidfClassifier()
    features = tfidf._fit_features(train.texts, targets)
    held = tfidf._features(validation.texts)
    values = tfidf.Cs if len(task.labels) <= FEW_LABELS else [USUAL_C]
    models: dict[int, Any] = {}
    for label in range(len(task.labels)):
        if len(np.unique(targets[:, label])) == 2:  # not the same for all rows
            fold = FoldFeatures(features, targets[:, label], held, held_targets[:, label])
            models[label] = select_C([fold], values)[1][0]

    def score(rows: Dataset) -> NDArray[np.float64]:
        seen = tfidf._features(rows.texts)
        scores = np.tile(np.where(targets[0], CERTAIN, -CERTAIN), (len(rows), 1))
        for label, model in models.items():
            scores[:, label] = model.decision_function(seen)
        return scores

    return score


def _fit_tagger(task: Tagging, train: Sentences, validation: Sentences) -> ScoreRows:
    """Fit a tagger for each alpha and use the one with the best metric on validation."""

    def score(tagger: WordTagger, rows: Sentences) -> list[NDArray[np.float64]]:
        return tagger.scores(rows.words, len(task.labels))

    def metric(tagger: WordTagger) -> float:
        return task.row_scores(score(tagger, validation), validation)[task.metric].value

    tried = [WordTagger(alpha).fit(train.words, train.tags) for alpha in TAGGER_ALPHAS]
    best = max(tried, key=metric)
    return lambda rows: score(best, rows)


# The linear model of each task: its name, and a function of the task, its training and its
# validation rows that returns the function which scores rows.
LINEAR_MODELS: dict[str, tuple[str, Callable[[Any, Any, Any], ScoreRows]]] = {
    "classification": ("TF-IDF", _fit_tfidf),
    "pairs": ("TF-IDF", _fit_tfidf),
    "multi-label": ("TF-IDF, one label at a time", _fit_one_vs_rest),
    "tagging": ("linear tagger", _fit_tagger),
}
