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
from typing import Any

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


def measure(results: Sequence[JobResult], data: StudyData, *, selection: str) -> dict[Job, float]:
    """Measure losses of the same budget on the same rows: out-of-fold, or of validation.

    The loss of a task without classes is the negative metric.
    """
    if selection != "budget" or not all(len(one.oof_rows) for one in results):
        # Without any selection there is no temperature either, and losses say little.
        by_loss = has_classes(data.task) and selection == "budget"
        if by_loss:
            return {one.job: one.value("validation", "loss") for one in results}
        return {one.job: -one.value("validation", data.task.metric) for one in results}
    found = {}
    for one in results:
        rows = shared_rows([other for other in results if other.job.seed == one.job.seed])
        oof = oof_of(one, rows)
        if has_classes(data.task):
            train = data.rows(one.job.labels, one.job.seed).train
            found[one.job] = log_loss(normalized(oof), np.asarray(train.labels)[rows])
        else:
            found[one.job] = -float(oof.mean())
    return found


def choose_best(losses: Mapping[Job, float]) -> Job:
    """Return the best seed of the arm with the lowest mean loss."""
    arms: dict[tuple[str, str], list[Job]] = {}
    for job in losses:
        arms.setdefault((job.arm, job.objective), []).append(job)
    best = min(arms.values(), key=lambda jobs: float(np.mean([losses[job] for job in jobs])))
    return min(best, key=lambda job: (losses[job], job.seed))


def save_best(
    folder: Path, config: StudyConfig, plan: Plan, data: StudyData, results: Mapping[Job, JobResult]
) -> tuple[Job, Job | None]:
    """Write `best/`, if it is not there yet; the runs of all other jobs are deleted.

    Returns
    -------
    The best job, and the one whose run is saved. They differ where the best one cannot be saved,
    such as the linear model of a task without classes.
    """
    place, last = folder / BEST, plan.budgets[-1]
    largest = [one for job, one in results.items() if job.labels == last and not job.select]
    losses = measure(largest, data, selection=config.selection)
    best = choose_best(losses)
    if not place.is_dir():
        parts = {job: _parts(folder, plan, config, results, job) for job in losses}
        usable = {job: loss for job, loss in losses.items() if parts[job]}
        if not usable:
            return best, None
        chosen = choose_best(usable)
        _write_run(place, chosen, parts[chosen], config, data, results)
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return best, Job(**read_summary(place, needs=(TRAINING,))[TRAINING])


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
