"""The best arm of a study, whatever its kind, kept as a run in `best/`. The test part has no say,
unless it is the validation part, too.

Arms are compared by the log-loss of what they say of rows of the budget that they were not trained
on (`Outcome.own`), the same rows for all of them, averaged over the seeds: it moves in smaller
steps than the accuracy of a few rows. Where an arm has no such rows, its validation speaks; where
nothing was chosen, no temperature was either, so accuracy on validation decides.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headstart.baselines.baselines import LINEAR_ARMS
from headstart.baselines.finetune_arm import STACK, save_arm
from headstart.baselines.stack import MEMBERS, StackClassifier
from headstart.config import FinetuneConfig, is_run
from headstart.evaluation.calibration import log_loss, normalized
from headstart.run import (
    CLASSIFIER,
    SUMMARY,
    ClassifierRun,
    Run,
    TextClassifier,
    read_summary,
    write_summary,
)
from headstart.studies.context import ArmContext, StudyContext
from headstart.studies.outcomes import Outcome, RunKey, safe_name
from headstart.tasks.classification import Classification

SAME_AS_SEED = "same_as_seed"  # a fact of an outcome that was taken over from another seed
TRAINING = "training"  # in the summary of `best/`: which training it is


@dataclass(frozen=True)
class Best:
    """The best arm at the most labels, and the training that `best/` holds.

    They differ only where the best arm cannot be kept: one of another package without `save`.
    """

    run: RunKey
    accuracy: float  # of rows that did not train it; they chose its settings
    kept: RunKey | None
    kept_accuracy: float | None


@dataclass(frozen=True)
class OwnMeasure:
    """How good a training is on rows of its budget that it was not trained on."""

    run: RunKey
    loss: float
    accuracy: float


def keep_best(study: StudyContext, outcomes: Sequence[Outcome]) -> Best:
    """Move the best arm's run to `best/`; any other training leaves no weights behind.

    Parameters
    ----------
    study : StudyContext
    outcomes : sequence of Outcome
        Of every training; those with the most labels take part.
    """
    most = max(one.run.labels for one in outcomes)
    last = [one for one in outcomes if one.run.labels == most]
    measured = measure_own(last, study)
    best, accuracy = _best_arm(measured)
    place = study.folder / "best"
    if not place.exists():
        folders = {one.run: trained_folder(study, one) for one in last}
        usable = [one for one in measured if _is_run(folders[one.run])]
        if usable:
            chosen, _ = _best_arm(usable)
            _move(folders[chosen], place, chosen)
    shutil.rmtree(study.folder / "runs", ignore_errors=True)
    if not (place / SUMMARY).is_file():
        return Best(best, accuracy, None, None)
    kept = RunKey(**read_summary(place, needs=(TRAINING,))[TRAINING])
    same_arm = [one for one in measured if _arm(one.run) == _arm(kept)]
    return Best(best, accuracy, kept, float(np.mean([one.accuracy for one in same_arm])))


def measure_own(outcomes: Sequence[Outcome], study: StudyContext) -> list[OwnMeasure]:
    """Log-loss and accuracy of trainings on rows of their budget that they have not seen.

    Within a seed they are the rows that every arm has answered for, if there are any.
    """
    rows: dict[int, Any] = {}
    for one in outcomes:
        if len(one.own_rows):
            shared = rows.get(one.run.seed, one.own_rows)
            rows[one.run.seed] = np.intersect1d(shared, one.own_rows)
    return [_measure(one, rows.get(one.run.seed, ()), study) for one in outcomes]


def _measure(outcome: Outcome, rows: Any, study: StudyContext) -> OwnMeasure:
    if not study.recipe.has_classes:  # losses of arms of such different kinds say little
        metric = outcome.measure("validation", study.task.metric)
        return OwnMeasure(outcome.run, -metric, metric)
    nothing = study.recipe.selection == "none"
    if nothing or not len(outcome.own_rows):
        loss, accuracy = (outcome.measure("validation", name) for name in ("loss", "accuracy"))
        return OwnMeasure(outcome.run, -accuracy if nothing else loss, accuracy)
    if not len(rows):
        rows = outcome.own_rows
    labels = np.asarray(study.for_run(outcome.run).splits.train.labels)[rows]
    p, y = normalized(outcome.own[np.searchsorted(outcome.own_rows, rows)]), labels
    return OwnMeasure(outcome.run, log_loss(p, y), float((p.argmax(axis=1) == y).mean()))


def _best_arm(measured: Sequence[OwnMeasure]) -> tuple[RunKey, float]:
    """The best seed of the arm with the lowest mean loss, and the arm's mean accuracy."""
    arms: dict[tuple[str, str], list[OwnMeasure]] = {}
    for one in measured:
        arms.setdefault(_arm(one.run), []).append(one)
    best = min(arms.values(), key=lambda seeds: float(np.mean([one.loss for one in seeds])))
    chosen = min(best, key=lambda one: (one.loss, one.run.seed))
    return chosen.run, float(np.mean([one.accuracy for one in best]))


def _arm(run: RunKey) -> tuple[str, str]:
    return run.arm, run.objective


def _is_run(folder: Path) -> bool:
    return (folder / CLASSIFIER).is_file() or is_run(folder)


def _move(trained: Path, place: Path, run: RunKey) -> None:
    summary = {**read_summary(trained), "run": str(place), TRAINING: asdict(run)}
    write_summary(summary, trained)
    trained.replace(place)


def trained_folder(study: StudyContext, outcome: Outcome) -> Path:
    """Where the run of an outcome is; another seed's, where that one was taken over."""
    seed = outcome.facts.get(SAME_AS_SEED, outcome.run.seed)
    run = outcome.run
    return study.run_folder(RunKey(run.arm, run.objective, run.labels, seed))


def save_classifier(context: ArmContext, scorer: TextClassifier, folder: Path) -> None:
    """Write a fitted classifier as a run that `predict` and `evaluate` take."""
    shutil.rmtree(folder, ignore_errors=True)
    _write(context, scorer, folder)


def save_stack(context: ArmContext, weights: dict[RunKey, float], folder: Path) -> None:
    """Write a stack with its members; where one of them was not kept, nothing is written."""
    counted = {run: weight for run, weight in weights.items() if weight}
    sources = {run: trained_folder(context.study, context.outcome(run)) for run in counted}
    if not all(_is_run(source) for source in sources.values()):
        return
    shutil.rmtree(folder, ignore_errors=True)
    members = {
        safe_name(run.arm): Run.open(link_member(source, folder, safe_name(run.arm)))
        for run, source in sources.items()
    }
    _write(context, StackClassifier(members, list(counted.values())), folder)


def _write(context: ArmContext, scorer: TextClassifier, folder: Path) -> None:
    study, run = context.study.recipe, context.run
    # A study has more arms than `finetune`: only one that can be read again is in the config.
    arm: Any = {"arm": run.arm} if run.arm in (*LINEAR_ARMS, STACK) else {}
    recipe = FinetuneConfig(**study.dataset_settings(), **arm, seed=run.seed)
    assert isinstance(context.task, Classification)
    role = "selected its settings" if study.selection == "validation" else "measured it"
    classifier = ClassifierRun(folder, context.task, scorer)
    save_arm(classifier, recipe, context.splits, folder, arm=run.arm, role=role)


def link_member(source: Path, folder: Path, name: str) -> Path:
    """Put a finished run into a stack's folder; files are linked where the disk allows it."""
    place = folder / MEMBERS / name
    shutil.copytree(source, place, copy_function=_link)
    return place


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a system without links
        shutil.copy2(source, target)
