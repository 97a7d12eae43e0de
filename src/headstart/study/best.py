"""The best arm of a study, whatever its kind, saved as a run in `best/`.

Arms are compared at the largest budget by the log-loss of their out-of-fold predictions, on the
same rows for all of them, averaged over the seeds: it moves in smaller steps than the accuracy of a
few rows. The test part has no influence. Where an arm has no out-of-fold predictions (nothing or
the validation part selected, or the rows are too few), all arms are compared on the validation
part.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headstart.baselines.finetune_arm import STACK, save_arm
from headstart.baselines.stack import MEMBERS, StackClassifier
from headstart.config import FinetuneConfig, StudyConfig
from headstart.evaluation.calibration import log_loss, normalized
from headstart.run import ClassifierRun, Run, read_summary, write_summary
from headstart.study.data import StudyData, has_classes
from headstart.study.jobs import JobResult, oof_of, run_file, shared_rows, unpack
from headstart.study.plan import Job, Plan, safe_name

BEST = "best"
TRAINING = "training"  # in the summary of `best/`: which job it is


class Measured(NamedTuple):
    """How good a job's model is on rows that did not train it: lower losses are better."""

    job: Job
    loss: float
    metric: float


class Best(NamedTuple):
    """The best arm, its metric on rows that did not train it, and the job whose run is saved.

    They differ only where the best arm cannot be saved, such as the trivial one.
    """

    job: Job
    metric: float
    saved: Job | None


def measure(results: Sequence[JobResult], data: StudyData, *, selection: str) -> list[Measured]:
    """Measure results of the same budget on the same rows: out-of-fold, or of validation."""
    if selection != "budget" or not all(len(one.oof_rows) for one in results):
        return [_on_validation(one, data, selection) for one in results]
    found = []
    for seed in sorted({one.job.seed for one in results}):
        same = [one for one in results if one.job.seed == seed]
        rows = shared_rows(same)
        train = data.rows(same[0].job.labels, seed).train
        for one in same:
            oof = oof_of(one, rows)
            if not has_classes(data.task):
                found.append(Measured(one.job, -float(oof.mean()), float(oof.mean())))
                continue
            p, gold = normalized(oof), np.asarray(train.labels)[rows]
            correct = float((p.argmax(axis=1) == gold).mean())
            found.append(Measured(one.job, log_loss(p, gold), correct))
    return found


def _on_validation(result: JobResult, data: StudyData, selection: str) -> Measured:
    metric = result.value("validation", data.task.metric)
    # Without any selection there is no temperature either, and losses say little.
    by_loss = has_classes(data.task) and selection != "none"
    return Measured(result.job, result.value("validation", "loss") if by_loss else -metric, metric)


def choose_best(measured: Sequence[Measured]) -> tuple[Job, float]:
    """Return the best seed of the arm with the lowest mean loss, and the arm's mean metric."""
    arms: dict[tuple[str, str], list[Measured]] = {}
    for one in measured:
        arms.setdefault((one.job.arm, one.job.objective), []).append(one)
    best = min(arms.values(), key=lambda seeds: float(np.mean([one.loss for one in seeds])))
    chosen = min(best, key=lambda one: (one.loss, one.job.seed))
    return chosen.job, float(np.mean([one.metric for one in best]))


def save_best(
    folder: Path, config: StudyConfig, plan: Plan, data: StudyData, results: Mapping[Job, JobResult]
) -> Best:
    """Write `best/`, if it is not there yet; the runs of all other jobs are deleted."""
    largest = [one for job, one in results.items() if job.labels == plan.budgets[-1]]
    largest = [one for one in largest if not one.job.select]
    measured = measure(largest, data, selection=config.selection)
    job, metric = choose_best(measured)
    place = folder / BEST
    if not place.is_dir():
        parts = {one.job: _parts(folder, plan, config, results, one.job) for one in measured}
        usable = [one for one in measured if parts[one.job]]
        if usable:
            chosen, _ = choose_best(usable)
            _write_run(place, chosen, parts[chosen], config, data, results)
    shutil.rmtree(folder / "runs", ignore_errors=True)
    saved = None
    if place.is_dir():
        saved = Job(**read_summary(place, needs=(TRAINING,))[TRAINING])
    return Best(job, metric, saved)


def _parts(
    folder: Path, plan: Plan, config: StudyConfig, results: Mapping[Job, JobResult], job: Job
) -> dict[str, Path]:
    """Return the archives that a job's run is made of, by name; none where one is missing."""
    weights = results[job].facts.get("weights")
    members = [job]
    if weights is not None:
        members = [one for one in plan.needed(job, config) if weights[one.arm]]
    found = {one.arm: run_file(folder, plan.same_as(one) or one) for one in members}
    return found if all(path.is_file() for path in found.values()) else {}


def _write_run(
    place: Path,
    job: Job,
    parts: dict[str, Path],
    config: StudyConfig,
    data: StudyData,
    results: Mapping[Job, JobResult],
) -> None:
    """Write a run into a folder beside its place first, so that it is there whole or not at all."""
    new = place.with_name(f".{place.name}.part")
    shutil.rmtree(new, ignore_errors=True)
    weights = results[job].facts.get("weights")
    if weights is None:
        unpack(parts[job.arm].read_bytes(), new)
    else:
        members: dict[str, Run] = {}
        for arm, path in parts.items():
            member = new / MEMBERS / safe_name(arm)
            unpack(path.read_bytes(), member)
            members[safe_name(arm)] = Run.open(member)
        settings: Any = {**config.dataset_settings(), "arm": STACK, "seed": job.seed}
        scorer = StackClassifier(members, [weights[arm] for arm in parts])
        save_arm(
            ClassifierRun(new, data.task, scorer),  # type: ignore[arg-type]
            FinetuneConfig(**settings),
            data.rows(job.labels, job.seed),
            new,
            arm=STACK,
            role="measured it",
        )
    summary = {**read_summary(new), "run": str(place), TRAINING: asdict(job)}
    write_summary(summary, new)
    new.replace(place)
