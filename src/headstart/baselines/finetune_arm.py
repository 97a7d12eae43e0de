"""`headstart finetune --arm`: TF-IDF, naive Bayes, or a stack of TF-IDF and a network.

The validation part selects C and the temperature of a linear arm, as it selects a network's epoch,
and the weights of a stack.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.baselines.baselines import fit_classifier
from headstart.baselines.linear import LinearTextClassifier, NaiveBayesClassifier, TfidfClassifier
from headstart.baselines.stack import MEMBERS, Stack, member_proba
from headstart.config import DatasetSettings, FinetuneConfig, is_run
from headstart.data.dataset import Dataset, Splits
from headstart.errors import HeadstartError
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
from headstart.training.callbacks import Callback, Callbacks
from headstart.training.finetune import finetune
from headstart.training.initialization import read_splits
from headstart.training.run_files import TASK_LIMITS, start_config

NETWORK, STACK = "network", "stack"
TASKS = ("classification", "pairs")  # one class per row
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
    if config.arm == NETWORK:
        return finetune(config, folder, splits=splits, resume=resume, callbacks=callbacks)
    weights = getattr(getattr(splits, "train", None), "weights", None)
    if weights is not None and len(set(weights)) > 1:
        raise HeadstartError(
            f"the arm {config.arm} takes no weights of rows", fix="do not give sample_weight"
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
            run = _fit_stack(config, folder, parts, callback)
        else:
            task: Any = find_task(config.task).from_rows(parts.train)
            run = fit_classifier(LINEAR_ARMS[config.arm](), task, parts.train, parts.validation)
        run = replace(run, folder=folder, splits=parts)
        summary = save_arm(run, config, parts, folder, arm=config.arm, started=started)
    return replace(run, summary=summary)


def check_arm(config: FinetuneConfig) -> None:
    """Reject tasks and settings that an arm does not have."""
    if config.task not in TASKS:
        raise HeadstartError(
            f"the arm {config.arm} is for the tasks {' and '.join(TASKS)}, not for {config.task}",
            fix="do not give --arm: a network does every task",
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
            fix="do not give it; --arm stack joins TF-IDF and a network",
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
    _write_card(run, summary, measure, folder, role)
    write_summary(summary, folder)
    return summary


NOT_A_NETWORK = (
    "It is not a network alone: it runs with headstart predict and headstart serve, and cannot be "
    "exported to ONNX or transformers."
)


def _write_card(
    run: ClassifierRun, summary: dict[str, Any], measure: dict[str, Any], folder: Path, role: str
) -> None:
    part = f"validation, {summary['validation_rows']:,} rows"
    trained = f"{summary['train_rows']:,} trained it, {summary['validation_rows']:,} {role}"
    facts = {name: summary[name] for name in ("task", "arm", "seed")}
    write_card(
        folder,
        title=f"A model for {run.task.name}, made with Headstart",
        facts={**facts, "labels": ", ".join(run.labels[:30]), "rows": trained},
        scores=[
            CardScore(run.task.metric, measure["value"], part, measure["low"], measure["high"])
        ],
        fingerprints={},
        use=usage(run.task.texts_per_row),
        limits=(*TASK_LIMITS, NOT_A_NETWORK),
    )


def _fit_stack(
    config: FinetuneConfig, folder: Path, splits: Any, callback: Callback
) -> ClassifierRun:
    """Fine-tune a network, fit TF-IDF, and fit the weights of both to the validation rows."""
    place = folder / MEMBERS / NETWORK
    finetune(
        config.replace(arm=NETWORK),
        place,
        splits=splits,
        resume=is_run(place),
        callbacks=[callback],
    )
    task: Any = find_task(config.task).from_rows(splits.train)
    linear = fit_classifier(TfidfClassifier(), task, splits.train, splits.validation)
    members: dict[str, Run] = {"tfidf": linear, NETWORK: NetworkRun.open(place)}
    validation = splits.validation
    probabilities = [member_proba(run, validation.texts) for run in members.values()]
    weights = Stack().fit(probabilities, validation.labels).weights_
    used = {name: weight for name, weight in zip(members, weights, strict=True) if weight}
    if NETWORK not in used:
        shutil.rmtree(place)
    stack = Stack.with_weights(list(used.values()), {name: members[name] for name in used})
    return ClassifierRun(folder, task, stack)
