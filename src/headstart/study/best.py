"""The best arm of a study, whatever its kind, saved as a run in `best/`.

Arms are compared at the largest budget by the log-loss of their out-of-fold predictions, on the
same rows for all of them, averaged over the seeds: it moves in smaller steps than the accuracy of a
few rows. The lowest loss is taken, also where it is lower by chance: there is no other tie-break.
The test part has no influence. Where an arm has no out-of-fold
predictions (nothing or the validation part selected, or the rows are too few), all arms are
compared on the validation part.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headstart.arms import find_arm
from headstart.baselines.finetune_arm import STACK, save_arm
from headstart.baselines.stack import MEMBERS, Stack
from headstart.config import FinetuneConfig, StudyConfig
from headstart.evaluation.calibration import log_loss, normalized
from headstart.files import write_text
from headstart.model_card import CARD
from headstart.run import ClassifierRun, Run, read_summary, write_summary
from headstart.study.data import StudyData, has_classes
from headstart.study.executors import unpack
from headstart.study.jobs import JobResult, oof_of, run_file, shared_rows
from headstart.study.plan import Job, Plan, safe_name

BEST = "best"


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
    as the trivial one, and in a study in folds, where the best arm is trained on all rows.
    """
    place, most = folder / BEST, plan.budgets[-1]
    largest = [results[job] for job in plan.trainings(config) if job.labels == most]
    losses = measure(largest, data, selection=config.selection)
    usable = {job: loss for job, loss in losses.items() if find_arm(job.arm).fit != "trivial"}
    if not usable:
        return choose_best(losses), None
    chosen = choose_best(usable)
    saved = plan.saved(chosen)
    if not place.is_dir():
        new = place.with_name(f".{place.name}.part")  # so that it is there whole or not at all
        shutil.rmtree(new, ignore_errors=True)
        _write_run(new, saved, folder, plan, config, data, results)
        more = _expected(new, chosen, data, results) if data.folds else {}
        write_summary({**read_summary(new), "run": str(place), **more}, new)
        new.replace(place)
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return choose_best(losses), saved


def _write_run(
    new: Path,
    job: Job,
    folder: Path,
    plan: Plan,
    config: StudyConfig,
    data: StudyData,
    results: Mapping[Job, JobResult],
) -> None:
    """Write the run of a job into a new folder: its archive, or a stack of those of its members."""

    def unpack_run(one: Job, place: Path) -> None:
        unpack(run_file(folder, plan.same_as(one) or one).read_bytes(), place)

    weights = results[job].facts.get("weights")
    if weights is None:
        unpack_run(job, new)
        return
    members: dict[str, Run] = {}
    used = [one for one in plan.needed(job, config) if weights[one.arm]]
    for one in used:
        unpack_run(one, new / MEMBERS / safe_name(one.arm))
        members[safe_name(one.arm)] = Run.open(new / MEMBERS / safe_name(one.arm))
    settings: Any = {**config.dataset_settings(), "arm": STACK, "seed": job.seed}
    scorer = Stack.with_weights([weights[one.arm] for one in used], members)
    save_arm(
        ClassifierRun(new, data.task, scorer),
        FinetuneConfig(**settings),
        data.rows(job.labels, job.seed, job.fold),
        new,
        arm=STACK,
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
