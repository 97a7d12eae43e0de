"""`finetune` for every arm that a run can be made of without a study: TF-IDF, naive Bayes, a stack.

The validation part chooses a linear arm's strength and temperature, as it chooses a network's
epoch. A stack joins a linear arm and a fine-tuned network; its weights come from validation too.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headstart.baselines.nb import NaiveBayesClassifier
from headstart.baselines.regression import RegressionClassifier
from headstart.baselines.stack import Stack
from headstart.baselines.stack_run import MEMBERS, StackScorer
from headstart.baselines.tfidf import TfidfClassifier
from headstart.config import DatasetSettings, FinetuneConfig, is_run
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import fit_temperature
from headstart.evaluation.metrics import wilson_interval
from headstart.lock import locked
from headstart.model_card import CardScore, usage, write_card
from headstart.run import (
    SUMMARY,
    ClassifierRun,
    NetworkRun,
    Run,
    read_summary,
    write_rows,
    write_summary,
)
from headstart.tasks import find_task
from headstart.tasks.task import Parts
from headstart.text.reading.dataset import Dataset
from headstart.training.callbacks import Callback, Callbacks
from headstart.training.finetune import finetune
from headstart.training.initialization import read_splits
from headstart.training.run_files import TASK_LIMITS, start_config

NETWORK, STACK = "network", "stack"
LINEAR: dict[str, type[RegressionClassifier]] = {
    "tfidf": TfidfClassifier,
    "nb": NaiveBayesClassifier,
}
TASKS = ("classification", "pairs")  # one class per row
# The settings that a linear arm uses.
SHARED = {
    *(one.name for one in DatasetSettings.settings()),
    *("arm", "labels", "seed", "device", "threads", "precision", "save_seconds"),
}


def finetune_arm(
    config: FinetuneConfig,
    folder: Path,
    *,
    splits: Parts[Any] | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train the arm that the config names; parameters and result are those of `finetune`."""
    if config.arm == NETWORK:
        return finetune(config, folder, splits=splits, resume=resume, callbacks=callbacks)
    weights = getattr(getattr(splits, "train", None), "weights", None)
    if weights is not None and len(set(weights)) > 1:
        raise HeadstartError(
            f"the arm {config.arm} takes no weights of rows", fix="leave sample_weight out"
        )
    check_arm(config)
    callback = Callbacks(callbacks)
    started = time.monotonic()
    with locked(folder):
        sources = config.dataset if splits is None else []
        config = start_config(config, folder, resume=resume, sources=sources)
        if resume and (folder / SUMMARY).is_file():
            read_summary(folder, needs=("validation",))  # a damaged one is reported
            return Run.open(folder)
        parts: Any = read_splits(config, callback) if splits is None else splits
        config.save(folder)
        if config.arm == STACK:
            classifier = _stack(config, folder, parts, callback)
        else:
            classifier = fit_linear(config.arm, config.task, parts, folder)
        summary = save_arm(classifier, config, parts, folder, arm=config.arm, started=started)
    return replace(classifier, summary=summary, splits=parts)


def check_arm(config: FinetuneConfig) -> None:
    """Refuse an arm that is not known here, and settings that it does not have."""
    if config.task not in TASKS:
        raise HeadstartError(
            f"the arm {config.arm} is for the tasks {' and '.join(TASKS)}, not for {config.task}",
            fix="leave --arm out: a network does every task",
        )
    if config.arm == STACK:
        return
    given = [
        one.name
        for one in config.settings()
        if one.name not in SHARED and getattr(config, one.name) != one.default
    ]
    if given:
        raise HeadstartError(
            f"the arm {config.arm} has no network, so it does not take "
            + ", ".join(f"--{name.replace('_', '-')}" for name in given),
            fix="leave it out; --arm stack joins TF-IDF and a network",
        )


def fit_linear(arm: str, task: str, splits: Parts[Dataset], folder: Path) -> ClassifierRun:
    """A linear arm on the training rows, in no folder yet."""
    validation = splits.validation
    scorer = LINEAR[arm]()
    scorer.fit(
        splits.train.texts, splits.train.labels, validation=(validation.texts, validation.labels)
    )
    kind: Any = find_task(task).from_rows(splits.train)
    run = ClassifierRun(folder, kind, scorer)
    scores = run.scores(validation).values
    return ClassifierRun(folder, kind, scorer, fit_temperature(scores, validation.labels))


def save_arm(
    run: ClassifierRun,
    config: FinetuneConfig,
    splits: Parts[Dataset],
    folder: Path,
    *,
    arm: str,
    role: str = "selected its settings",
    started: float | None = None,
) -> dict[str, Any]:
    """Write a fitted classifier as a run, with its config and the rows that it has seen.

    Parameters
    ----------
    arm : the name of the classifier, for summary and card.
    role : what the validation rows did, for the card.
    """
    run.save(folder)
    write_rows(run.task, splits, folder)
    config.save(folder)
    measured = _measured(run, splits.validation)
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
    _write_card(run, summary, measured["accuracy"], folder, role)
    write_summary(summary, folder)
    return summary


def _write_card(
    run: ClassifierRun, summary: dict[str, Any], accuracy: float, folder: Path, role: str
) -> None:
    rows = summary["validation_rows"]
    ends = wilson_interval(round(accuracy * rows), rows)
    trained = f"{summary['train_rows']:,} trained it, {rows:,} {role}"
    facts = {name: summary[name] for name in ("task", "arm", "seed")}
    write_card(
        folder,
        title=f"A model for {run.task.name}, made with Headstart",
        facts={**facts, "labels": ", ".join(run.labels[:30]), "rows": trained},
        scores=[CardScore("accuracy", accuracy, f"validation, {rows:,} rows", ends.low, ends.high)],
        fingerprints={},
        use=usage(run.task.texts_per_row),
        limits=TASK_LIMITS,
    )


def _stack(config: FinetuneConfig, folder: Path, splits: Any, callback: Callback) -> ClassifierRun:
    place = folder / MEMBERS / NETWORK
    finetune(
        config.replace(arm="network"),
        place,
        splits=splits,
        resume=is_run(place),
        callbacks=[callback],
    )
    linear = fit_linear("tfidf", config.task, splits, folder)
    members: dict[str, Run] = {"tfidf": linear, NETWORK: NetworkRun.open(place)}
    said = [_probabilities(run, splits.validation) for run in members.values()]
    weights = Stack().fit(said, splits.validation.labels).weights_
    kept = {name: run for (name, run), one in zip(members.items(), weights, strict=True) if one}
    if NETWORK not in kept:
        shutil.rmtree(place)
    scorer = StackScorer(kept, [float(one) for one in weights if one])
    return ClassifierRun(folder, linear.task, scorer)


def _probabilities(run: Run, part: Dataset) -> Any:
    task: Any = run.task
    return task.probabilities(run.scores(part).values, run.temperature).astype(np.float32)


def _measured(run: ClassifierRun, part: Dataset) -> dict[str, float]:
    scores = run.scores(part).values
    found = run.task.metrics(scores, part, temperature=run.temperature)
    return {"validation_loss": found.pop("loss"), **found}
