"""Linear classifiers as arms of `finetune`, and the baselines of a run.

`headstart finetune --arm` fits TF-IDF or naive Bayes in place of a network; the validation part
selects C and the temperature, as it selects a network's epoch. The baselines of a run are the
trivial prediction of its task and a linear model in seconds: a metric says little alone, as 90 %
accuracy is nothing where 90 % of the rows are of one class.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headstart.arms import CLASS_TASKS
from headstart.baselines.linear import (
    LinearTextClassifier,
    NaiveBayesClassifier,
    TfidfClassifier,
    WordTagger,
)
from headstart.config import DatasetSettings, FinetuneConfig
from headstart.data.dataset import Dataset, Splits
from headstart.errors import HeadstartError
from headstart.files import locked
from headstart.model_card import CardScore, usage, write_card
from headstart.run import (
    SUMMARY,
    ClassifierRun,
    Run,
    read_summary,
    seen_rows,
    write_rows,
    write_summary,
)
from headstart.tasks import find_task
from headstart.tasks.classification import MultiLabel
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback, Callbacks
from headstart.training.finetune import finetune
from headstart.training.initialization import read_splits
from headstart.training.run_files import TASK_LIMITS, start_config

MAX_CHARACTERS = 2_000_000  # of training text that a linear model fits in seconds
EVALUATED = 5  # times as many characters are predicted

# The linear model of each task that has one, and its name.
LINEAR_MODELS: dict[str, tuple[str, type[LinearTextClassifier]]] = {
    "classification": ("TF-IDF", TfidfClassifier),
    "pairs": ("TF-IDF", TfidfClassifier),
    "multi-label": ("TF-IDF, one label at a time", TfidfClassifier),
    "tagging": ("linear tagger", WordTagger),
}


def baselines_for(
    task: Task[Any],
    train: Any,
    validation: Any,
    test: Any,
    *,
    max_characters: int = MAX_CHARACTERS,
) -> list[dict[str, Any]]:
    """Compute the trivial baseline and, where the task has one, the linear one.

    Parameters
    ----------
    task : Task
    train, validation : rows of the task
        Those that trained the run, and those that selected its weights; here they select C.
    test : rows of the task
        Those that the run is evaluated on.
    max_characters : int
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
    name, estimator = LINEAR_MODELS[task.name]
    fitted = _sample(task, train, max_characters)
    tested = _sample(task, test, EVALUATED * max_characters)
    notes = []
    if len(fitted) < len(train):
        notes.append(f"fitted to {len(fitted):,} of {len(train):,} rows")
    if len(tested) < len(test):
        notes.append(f"evaluated on {len(tested):,} of {len(test):,}")
    test = task.pick(test, tested)
    validation = task.pick(validation, _sample(task, validation, max_characters))
    try:
        run = fit_classifier(estimator(), task, task.pick(train, fitted), validation)
    except HeadstartError:  # for example one class only: there is nothing to fit
        return found
    metrics = task.intervals(run.scores(test).values, test)
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
    return baselines_for(task, train, validation, test)


def _sample(task: Task[Any], rows: Any, max_characters: int) -> list[int]:
    """Draw so many rows that they have about `max_characters`, always the same ones."""
    characters = sum(map(len, task.texts(rows)))
    count = max(1, round(len(rows) * min(1.0, max_characters / max(1, characters))))
    return sorted(np.random.default_rng(0).permutation(len(rows))[:count].tolist())


def fit_classifier(
    classifier: LinearTextClassifier, task: Task[Any], train: Any, validation: Any
) -> ClassifierRun:
    """Fit a linear model; the validation rows select C and the temperature."""
    classifier.fit(*texts_and_labels(task, train), validation=texts_and_labels(task, validation))
    run = ClassifierRun(Path(), task, classifier)
    arrays = task.validation_arrays(run.scores(validation).values, validation)
    return replace(run, temperature=task.fit_temperature(arrays))


def texts_and_labels(task: Task[Any], rows: Any) -> tuple[Any, Any]:
    """Return the rows of a task as `LinearTextClassifier.fit` takes them."""
    if task.name == "tagging":
        return rows.words, rows.tags
    return rows.texts, task.matrix(rows) if isinstance(task, MultiLabel) else rows.labels


# Arms of `finetune`


NOT_A_NETWORK = (
    "It is not a network: it runs with headstart predict and headstart serve, and cannot be "
    "exported to ONNX or transformers."
)
LINEAR_ARMS: dict[str, type[LinearTextClassifier]] = {
    "tfidf": TfidfClassifier,
    "nb": NaiveBayesClassifier,
}
# The settings that a linear arm uses.
SHARED = {
    *(one.name for one in DatasetSettings.settings()),
    *("arm", "labels", "seed", "device", "threads", "precision", "save_seconds"),
}


def finetune_arm(
    config: FinetuneConfig,
    folder: Path,
    *,
    splits: Splits[Any] | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train the arm that the config names; parameters and result are those of `finetune`."""
    if config.arm not in LINEAR_ARMS:
        return finetune(config, folder, splits=splits, resume=resume, callbacks=callbacks)
    weights = getattr(getattr(splits, "train", None), "weights", None)
    if weights is not None and len(set(weights)) > 1:
        raise HeadstartError(
            f"the arm {config.arm} takes no weights of rows", fix="do not give sample_weight"
        )
    check_arm(config)
    started = time.monotonic()
    with locked(folder):
        sources = config.dataset if splits is None else []
        config = start_config(config, folder, resume=resume, sources=sources)
        if resume and (folder / SUMMARY).is_file():
            read_summary(folder, needs=("validation",))  # a damaged one is reported
            return Run.open(folder)
        parts: Any = read_splits(config, Callbacks(callbacks)) if splits is None else splits
        config.save(folder)
        task: Any = find_task(config.task).from_rows(parts.train)
        run = fit_classifier(LINEAR_ARMS[config.arm](), task, parts.train, parts.validation)
        run = replace(run, folder=folder, splits=parts)
        summary = save_arm(run, config, parts, folder, arm=config.arm, started=started)
    return replace(run, summary=summary)


def check_arm(config: FinetuneConfig) -> None:
    """Reject tasks and settings that an arm does not have."""
    if config.task not in CLASS_TASKS:
        raise HeadstartError(
            f"the arm {config.arm} is for {' and '.join(CLASS_TASKS)}, not for {config.task}",
            fix="do not give --arm: a network does every task",
        )
    given = [
        one.name
        for one in config.settings()
        if one.name not in SHARED and getattr(config, one.name) != one.default
    ]
    if given:
        raise HeadstartError(
            f"the arm {config.arm} has no network, so it does not take "
            + ", ".join(f"--{name.replace('_', '-')}" for name in given),
            fix="do not give it",
        )


def save_arm(
    run: ClassifierRun,
    config: FinetuneConfig,
    splits: Splits[Dataset],
    folder: Path,
    *,
    arm: str,
    role: str = "selected its settings",
    started: float | None = None,
) -> dict[str, Any]:
    """Write a fitted classifier as a run, with its config and the rows that it has seen.

    Parameters
    ----------
    arm : str
        The name of the classifier, for summary and card.
    role : str
        What the validation rows did, for the card.
    """
    run.save(folder)
    write_rows(run.task, splits, folder)
    config.save(folder)
    scores = run.scores(splits.validation).values
    metrics = run.task.metrics(scores, splits.validation, temperature=run.temperature)
    doubts = run.task.notes(scores, splits.validation, run.temperature)
    measured = {"validation_loss": metrics.pop("loss"), **metrics}
    summary = {
        "run": str(folder),
        "task": run.task.name,
        "labels": list(run.labels),
        "arm": arm,
        "seed": config.seed,
        "train_rows": len(splits.train),
        "validation_rows": len(splits.validation),
        "validation": measured,
        **run.facts(),
    }
    if started is not None:
        summary["seconds"] = time.monotonic() - started
    measure = run.task.intervals(scores, splits.validation)[run.task.metric]
    rows = summary["validation_rows"]
    part = f"validation, {rows:,} rows"
    write_card(
        folder,
        title=f"A model for {run.task.name}, made with Headstart",
        facts={
            **{name: summary[name] for name in ("task", "arm", "seed")},
            "labels": ", ".join(run.labels[:30]),
            "rows": f"{summary['train_rows']:,} trained it, {rows:,} {role}",
        },
        scores=[
            CardScore(run.task.metric, measure["value"], part, measure["low"], measure["high"])
        ],
        use=usage(run.task.texts_per_row),
        limits=(*TASK_LIMITS, NOT_A_NETWORK, *doubts),
    )
    write_summary(summary, folder)
    return summary
