"""The baselines of a run, and linear classifiers as runs.

The baselines are the trivial prediction of the task and a linear model, which is fitted in seconds.
They show how good a metric is: 90 % accuracy is poor if 90 % of the rows have the same class.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headstart.baselines.linear import LinearTextClassifier, TfidfClassifier, WordTagger
from headstart.config import FinetuneConfig
from headstart.data.dataset import Dataset, Splits
from headstart.errors import HeadstartError
from headstart.model_card import CardScore, usage, write_card
from headstart.run import ClassifierRun, seen_rows, write_rows, write_summary
from headstart.tasks.classification import MultiLabel
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback
from headstart.training.finetune import TASK_LIMITS
from headstart.training.initialization import read_splits

# The linear model of each task that has one, and its name.
LINEAR_MODELS: dict[str, tuple[str, type[LinearTextClassifier]]] = {
    "classification": ("TF-IDF", TfidfClassifier),
    "pairs": ("TF-IDF", TfidfClassifier),
    "multi-label": ("TF-IDF, one label at a time", TfidfClassifier),
    "tagging": ("linear tagger", WordTagger),
}


def baselines_for(
    task: Task[Any], train: Any, validation: Any, test: Any, *, max_characters: int = 2_000_000
) -> list[dict[str, Any]]:
    """Compute the trivial baseline and the task's linear one, on a sample of `max_characters`."""
    name, scores = task.trivial(train, test)
    name, _, about = name.partition(": ")
    found = [{"name": name, "about": about, "metrics": task.intervals(scores, test)}]
    if task.name not in LINEAR_MODELS:
        return found
    name, estimator = LINEAR_MODELS[task.name]
    fitted = _sample(task, train, max_characters)
    about = f"fitted to {len(fitted):,} of {len(train):,} rows" if len(fitted) < len(train) else ""
    validation = _sample(task, validation, max_characters)
    try:
        run = fit_classifier(estimator(), task, fitted, validation)
    except HeadstartError:  # for example one class only: there is nothing to fit
        return found
    scores = run.scores(test)
    return [*found, {"name": name, "about": about, "metrics": task.intervals(scores, test)}]


def baselines_of_run(folder: Path, task: Task[Any], test: Any) -> list[dict[str, Any]]:
    """Compute the baselines of a run, fitted to the rows of its dataset that it was trained on."""
    splits = read_splits(FinetuneConfig.load(folder), Callback())
    parts = []
    for role, rows in (("train", splits.train), ("validation", splits.validation)):
        rows = task.match_labels(rows, str(folder))
        known = seen_rows(rows, folder, (role,))
        parts.append(rows if known is None else rows.pick(known.tolist()))
    if not all(map(len, parts)):
        raise HeadstartError("the training rows of the run are no longer in its dataset")
    return baselines_for(task, parts[0], parts[1], test)


def _sample(task: Task[Any], rows: Any, max_characters: int) -> Any:
    """Sample rows with about `max_characters` in total, always the same ones."""
    characters = sum(map(len, task.texts(rows)))
    count = max(1, round(len(rows) * min(1.0, max_characters / max(1, characters))))
    return rows.pick(sorted(np.random.default_rng(0).permutation(len(rows))[:count].tolist()))


def fit_classifier(
    classifier: LinearTextClassifier, task: Task[Any], train: Any, validation: Any
) -> ClassifierRun:
    """Fit a linear model; the validation rows select C and the temperature."""
    classifier.fit(*texts_and_labels(task, train), validation=texts_and_labels(task, validation))
    run = ClassifierRun(None, classifier, task=task)
    return replace(run, temperature=task.fit_temperature(run.scores(validation), validation))


def texts_and_labels(task: Task[Any], rows: Any) -> tuple[Any, Any]:
    """Return the rows of a task as `LinearTextClassifier.fit` takes them."""
    if task.name == "tagging":
        return rows.words, rows.tags
    return rows.texts, task.matrix(rows) if isinstance(task, MultiLabel) else rows.labels


def save_arm(
    run: ClassifierRun, config: FinetuneConfig, splits: Splits[Dataset], folder: Path, *, arm: str
) -> None:
    """Write a classifier that out-of-fold rows selected and validation rows measured, as a run."""
    run.save(folder)
    write_rows(splits, folder)
    config.save(folder)
    task, rows = run.require_task(), splits.validation
    scores = run.scores(rows)
    metrics = task.metrics(scores, rows, temperature=run.temperature)
    facts = {"task": task.name, "arm": arm, "seed": config.seed}
    summary = {
        **facts,
        "run": str(folder),
        "labels": list(run.labels),
        "train_rows": len(splits.train),
        "validation_rows": len(rows),
        "validation": {"validation_loss": metrics.pop("loss"), **metrics},
    }
    found = task.row_scores(scores, rows)[task.metric].interval()
    measured_on = f"validation, {len(rows):,} rows"
    no_network = (
        "It is not a network: it runs with headstart predict and headstart serve, and cannot be "
        "exported to ONNX or transformers."
    )
    write_card(
        folder,
        title=f"A model for {task.name}, made with Headstart",
        facts={
            **facts,
            "labels": ", ".join(run.labels[:30]),
            "rows": f"{len(splits.train):,} for training, {len(rows):,} for evaluation",
        },
        scores=[CardScore(task.metric, found.value, measured_on, found.low, found.high)],
        use=usage(len(task.input_names)),
        limits=(*TASK_LIMITS, no_network, *task.notes(scores, rows, run.temperature)),
    )
    write_summary(summary, folder)
