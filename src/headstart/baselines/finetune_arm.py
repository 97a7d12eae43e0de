"""`headstart finetune --arm`: TF-IDF or naive Bayes in place of a network.

The validation part selects C and the temperature, as it selects a network's epoch.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.arms import CLASS_TASKS
from headstart.baselines.baselines import fit_classifier
from headstart.baselines.linear import LinearTextClassifier, NaiveBayesClassifier, TfidfClassifier
from headstart.config import DatasetSettings, FinetuneConfig
from headstart.data.dataset import Dataset, Splits
from headstart.errors import HeadstartError
from headstart.lock import locked
from headstart.model_card import CardScore, usage, write_card
from headstart.run import SUMMARY, ClassifierRun, Run, read_summary, write_rows, write_summary
from headstart.tasks import find_task
from headstart.training.callbacks import Callback, Callbacks
from headstart.training.finetune import finetune
from headstart.training.initialization import read_splits
from headstart.training.run_files import TASK_LIMITS, start_config

NOT_A_NETWORK = (
    "It is not a network alone: it runs with headstart predict and headstart serve, and cannot be "
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
        limits=(*TASK_LIMITS, NOT_A_NETWORK),
    )
    write_summary(summary, folder)
    return summary
