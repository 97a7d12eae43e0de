"""`finetune` for every arm that a run can be made of without a study: TF-IDF, naive Bayes, a stack.

The validation part chooses a linear arm's strength and temperature, as it chooses a network's
epoch. A stack joins a linear arm and a fine-tuned network; its weights come from validation too.
"""

import shutil
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from headstart.baselines.nb import NaiveBayesClassifier
from headstart.baselines.regression import RegressionClassifier
from headstart.baselines.stack import Stack
from headstart.baselines.stack_run import MEMBERS, StackScorer
from headstart.baselines.tfidf import TfidfClassifier
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
from headstart.text.reading.sources import check_outside
from headstart.training.finetune import finetune
from headstart.training.finetune_prepare import read_splits
from headstart.training.finetune_results import LIMITS
from headstart.training.listener import Listener
from headstart.training.recipe import NETWORK, FinetuneRecipe
from headstart.training.recipe_file import (
    DATASET_SETTINGS,
    FILE,
    refuse_a_second_run,
    resumed,
    write_recipe,
)

STACK = "stack"
LINEAR: dict[str, type[RegressionClassifier]] = {
    "tfidf": TfidfClassifier,
    "nb": NaiveBayesClassifier,
}
ARMS = (NETWORK, *LINEAR, STACK)
TASKS = ("classification", "pairs")  # one class per row
# What a linear arm takes of a recipe: the rows, and what the machine decides for every training.
SHARED = (
    *DATASET_SETTINGS,
    *("task", "second_column", "arm", "seed", "device", "threads", "precision"),
    "long_token_dropout",  # goes with token_dropout, which is refused by its own name
)


def finetune_arm(
    recipe: FinetuneRecipe,
    folder: Path,
    *,
    splits: Parts[Any] | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    save_seconds: float = 60.0,
) -> dict[str, Any]:
    """Train the arm that the recipe names; parameters and result are those of `finetune`."""
    if recipe.arm == NETWORK:
        return finetune(
            recipe,
            folder,
            splits=splits,
            resume=resume,
            listener=listener,
            save_seconds=save_seconds,
        )
    weights = getattr(getattr(splits, "train", None), "weights", None)
    if weights is not None and len(set(weights)) > 1:
        raise HeadstartError(
            f"the arm {recipe.arm} takes no weights of rows", fix="leave sample_weight out"
        )
    check_arm(recipe)
    listener = listener or Listener()
    started = time.monotonic()
    with locked(folder):
        check_outside(folder, recipe.dataset if splits is None else [])
        if resume:
            recipe = resumed(recipe, folder)
            if (folder / SUMMARY).is_file():
                return read_summary(folder, needs=("validation",))
        else:
            refuse_a_second_run(folder)
        parts: Any = read_splits(recipe, listener.stage) if splits is None else splits
        write_recipe(recipe, folder)
        if recipe.arm == STACK:
            run = _stack(recipe, folder, parts, listener, save_seconds)
        else:
            run = fit_linear(recipe.arm, recipe.task, parts, folder)
        summary = save_arm(run, recipe, parts, folder)
        summary["seconds"] = time.monotonic() - started
        summary["validation"] = _measured(run, parts.validation)
        write_summary(summary, folder)
    listener.on_finish(summary)
    return summary


def check_arm(recipe: FinetuneRecipe) -> None:
    """Refuse an arm that is not known here, and settings that it does not have."""
    if recipe.arm not in ARMS:
        raise HeadstartError(
            f"finetune cannot train the arm {recipe.arm!r}: it can train {', '.join(ARMS)}",
            fix="headstart compare trains every arm, and keeps the best of them in best/",
        )
    if recipe.task not in TASKS:
        raise HeadstartError(
            f"the arm {recipe.arm} is for the tasks {' and '.join(TASKS)}, not for {recipe.task}",
            fix="leave --arm out: a network does every task",
        )
    if recipe.arm == STACK:
        return
    given = [
        one.name
        for one in fields(recipe)
        if one.name not in SHARED and getattr(recipe, one.name) != one.default
    ]
    if given:
        raise HeadstartError(
            f"the arm {recipe.arm} has no network, so it does not take "
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
    recipe: FinetuneRecipe,
    splits: Parts[Dataset],
    folder: Path,
    *,
    role: str = "selected its settings",
) -> dict[str, Any]:
    """Write a fitted classifier as a run, with its recipe and the rows that it has seen.

    `role` is what the validation rows did, for the card.
    """
    run.save(folder)
    write_rows(run.task, splits, folder)
    write_recipe(recipe, folder)
    summary = {
        "run": str(folder),
        "task": run.task.name,
        "labels": list(run.labels),
        "arm": recipe.arm,
        "seed": recipe.seed,
        "train_rows": len(splits.train),
        "validation_rows": len(splits.validation),
        **run.facts(),
    }
    write_summary(summary, folder)
    _write_card(run, summary, _measured(run, splits.validation)["accuracy"], folder, role)
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
        limits=LIMITS,
    )


def _stack(
    recipe: FinetuneRecipe, folder: Path, splits: Any, listener: Listener, save_seconds: float
) -> ClassifierRun:
    place = folder / MEMBERS / NETWORK
    finetune(
        recipe.changed(arm=NETWORK),
        place,
        splits=splits,
        resume=(place / FILE).is_file(),
        listener=listener,
        save_seconds=save_seconds,
    )
    linear = fit_linear("tfidf", recipe.task, splits, folder)
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


def needs_base(arm: str) -> bool:
    """Whether the arm has a network, for which a base (or none) must be named."""
    return arm in (NETWORK, STACK)
