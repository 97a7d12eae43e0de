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

from headstart.baselines.finetune_arm import save_arm
from headstart.baselines.stack import MEMBERS, Stack
from headstart.config import FinetuneConfig, StudyConfig
from headstart.evaluation.calibration import log_loss, normalized
from headstart.files import write_text
from headstart.model_card import CARD
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
        place = (one.job.seed, one.job.fold)
        alike = [other for other in results if (other.job.seed, other.job.fold) == place]
        rows = shared_rows(alike)
        oof = oof_of(one, rows)
        if has_classes(data.task):
            train = data.rows(one.job.labels, *place).train
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
    return min(best, key=lambda job: (losses[job], job.seed, job.fold))


def save_best(
    folder: Path, config: StudyConfig, plan: Plan, data: StudyData, results: Mapping[Job, JobResult]
) -> tuple[Job, Job | None]:
    """Write `best/`, if it is not there yet; the runs of all other jobs are deleted.

    Returns
    -------
    The best job, and the one whose run is saved. They differ where the best one cannot be saved,
    such as the trivial one, and in a study in folds, where the best arm is trained on all rows.
    """
    place, last = folder / BEST, plan.budgets[-1]
    largest = [one for job, one in results.items() if job.labels == last and not job.select]
    losses = measure(largest, data, selection=config.selection)
    best = choose_best(losses)
    if not place.is_dir():
        parts = {job: _parts(folder, plan, config, results, plan.saved(job)) for job in losses}
        usable = {job: loss for job, loss in losses.items() if parts[job]}
        if not usable:
            return best, None
        chosen = choose_best(usable)
        new = place.with_name(f".{place.name}.part")  # so that it is there whole or not at all
        shutil.rmtree(new, ignore_errors=True)
        _write_run(new, plan.saved(chosen), parts[chosen], config, data, results)
        more = _expected(new, chosen, data, results) if data.folds else {}
        summary = {**read_summary(new), "run": str(place), TRAINING: asdict(plan.saved(chosen))}
        write_summary(summary | more, new)
        new.replace(place)
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
    new: Path,
    job: Job,
    parts: dict[str, Path],
    config: StudyConfig,
    data: StudyData,
    results: Mapping[Job, JobResult],
) -> None:
    """Write the run of a job into a new folder."""
    weights = results[job].facts.get("weights")
    if weights is None:
        unpack(parts[job.arm].read_bytes(), new)
    else:
        members: dict[str, Run] = {}
        for arm, path in parts.items():
            member = new / MEMBERS / safe_name(arm)
            unpack(path.read_bytes(), member)
            members[safe_name(arm)] = Run.open(member)
        settings: Any = {**config.dataset_settings(), "seed": job.seed}
        scorer = Stack.with_weights([weights[arm] for arm in parts], members)
        save_arm(
            ClassifierRun(new, data.task, scorer),
            FinetuneConfig(**settings),
            data.rows(job.labels, job.seed, job.fold),
            new,
            arm=job.arm,
            role="measured it",
        )


def _expected(
    new: Path, job: Job, data: StudyData, results: Mapping[Job, JobResult]
) -> dict[str, Any]:
    """Add to the card what the folds measured: all rows trained the run, and none can judge it."""
    found = [one for one in results if one.run == {**job.run, "seed": one.seed} and one.fold]
    metric, folds = data.task.metric, data.fold_count
    value = np.average(
        [results[one].value("test", metric) for one in found],
        weights=[len(data.fold(one.seed, one.fold).rows) for one in found],
    )
    card = new / CARD
    write_text(
        card,
        card.read_text(encoding="utf-8")
        + f"\n## Expected {metric}\n\n{value:.1%} on new texts, measured in {folds} folds of the "
        f"{len(data.splits.train):,} labelled rows. Then all of them trained this model: the "
        "evaluation above is of rows that it was trained on.\n",
    )
    return {"expected": {metric: float(value), "folds": folds}}
