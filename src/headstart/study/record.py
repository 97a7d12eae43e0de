"""What a finished study leaves: its results from those of its jobs, and the best model in `best/`.

The best arm, whatever its kind, is found at the largest budget by the log-loss of out-of-fold
predictions, on the same rows for all arms, averaged over the seeds: it moves in smaller steps than
the accuracy of a few rows. The lowest loss is taken, also where it is lower by chance: there is no
other tie-break. The test part has no influence. Where an arm has no out-of-fold predictions
(nothing or the validation part selected, or the rows are too few), all arms are compared on the
validation part.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headstart.arms import find_arm
from headstart.baselines.baselines import save_arm
from headstart.baselines.stack import MEMBERS, Stack
from headstart.config import FinetuneConfig, StudyConfig
from headstart.data.dataset import as_text
from headstart.data.overlap import overlap_sentence
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import log_loss, normalized
from headstart.files import write_text
from headstart.language_model import fill, generate
from headstart.machine import look_up
from headstart.model.counts import count_parameters
from headstart.model_card import CARD
from headstart.run import ClassifierRun, NetworkRun, Run, read_summary, write_summary
from headstart.study.data import StudyData, gold_names, has_classes, split_sizes
from headstart.study.jobs import JobResult, oof_of, run_file, shared_rows, unpack
from headstart.study.plan import Job, safe_name
from headstart.study.results import Results, make_results, run_predictions
from headstart.training.callbacks import METRICS_FILE, loss_curve, read_metrics

if TYPE_CHECKING:  # study.py imports this module
    from headstart.study.study import Study

VERSIONS = ("headstart", "torch", "tokenizers", "scikit-learn", "numpy")
PROMPTS = 3
BEST = "best"


def make_study_results(study: "Study", best: Job, saved: Job | None, *, command: str) -> Results:
    """Put the results of all trainings into one table.

    Parameters
    ----------
    best : the best training.
    saved : the one whose run is in `best/`: another one where the best cannot be saved.
    """
    test, task = study.data.splits.test, study.data.task
    assert test is not None
    numbers = np.asarray(test.rows, dtype=np.int64)
    runs: dict[tuple[Any, ...], list[JobResult]] = {}  # of the folds of each run
    for job in study.trainings:
        runs.setdefault(tuple(job.run.values()), []).append(study.results[job])
    done = list(runs.values())
    named = zip(numbers.tolist(), map(as_text, test.keys), gold_names(task, test), strict=True)
    about = _about(study, command)
    return make_results(
        {
            **about,
            "best": best.run,
            "saved": {} if saved is None else saved.run,
            "facts": _facts(study, about["pretraining"]),
        },
        [{**folds[0].job.run, **value} for folds in done for value in _values(folds, study)],
        [
            run_predictions(folds[0].job.run, numbers, **_predictions(folds, study))
            for folds in done
        ],
        [{"row": row, "text": text, "gold": gold} for row, text, gold in named],
    )


def _predictions(folds: Sequence[JobResult], study: "Study") -> dict[str, Any]:
    """Join the predictions of a run's folds in the order of the test rows."""
    places = [study.data.fold(one.job.seed, one.job.fold).rows for one in folds]
    order = np.argsort(np.concatenate(places))
    if not has_classes(study.data.task):
        return {"scores": np.concatenate([one.scores for one in folds])[order]}
    test: Any = study.data.splits.test
    probabilities = np.concatenate([one.probabilities for one in folds])[order]
    return {"gold": np.asarray(test.labels), "probabilities": probabilities}


def _values(folds: Sequence[JobResult], study: "Study") -> list[dict[str, Any]]:
    """Average the values of a run's folds by their test rows, up to the last epoch of all."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in folds:
        for value in one.values:
            found.setdefault((value["epoch"], value["split"], value["metric"]), []).append(value)
    weights = [len(study.data.fold(one.job.seed, one.job.fold).rows) for one in folds]
    return [
        {
            **same[0],
            "value": float(np.average([one["value"] for one in same], weights=weights)),
            "seconds": float(np.mean([one["seconds"] for one in same])),
        }
        for same in found.values()
        if len(same) == len(folds)
    ]


def _facts(study: "Study", pretraining: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts of each training with the cost of everything that it needs.

    That is its pretraining and the selection that seeds share; for a stack, its members.
    """
    config, plan = study.config, study.plan
    lasts = {part["objective"]: part["points"][-1] for part in pretraining if part["points"]}
    found: dict[Job, dict[str, Any]] = {}
    for job in study.trainings:  # the members of a stack come before it
        facts = found[job] = dict(study.results[job].facts)
        saved = study.results[plan.saved(job)].facts
        if job.labels == plan.budgets[-1] and "bytes" in saved:
            facts["bytes"] = saved["bytes"]
        weights = facts.get("weights", {})
        members = [found[one] for one in plan.needed(job, config) if weights.get(one.arm)]
        for name in ("seconds", "test_seconds", "bytes") if members else ():
            if all(name in one for one in members):
                facts[name] = facts.get(name, 0) + sum(one[name] for one in members)
        facts["seconds"] += sum(
            study.results[one].facts["seconds"] for one in plan.selections(job, config)
        )
        arm = find_arm(job.arm)
        if arm.start == "base" and "base" in arm.needs:
            facts["seconds"] += lasts.get(job.objective, {}).get("seconds", 0.0)
    for facts in found.values():  # as if each fold had predicted all rows
        facts["test_seconds"] *= plan.folds
    return [{**job.run, **facts} for job, facts in found.items()]


def _about(study: "Study", command: str) -> dict[str, Any]:
    config, data, plan = study.config, study.data, study.plan
    machine = look_up()
    joined = 0 if data.corpus is None or data.corpus.is_task_text else len(data.corpus.task_text)
    return {
        "dataset": config.name or dataset_name(config.dataset),
        "corpus": _corpus_name(config),
        "label_names": list(data.task.labels),
        "task": data.task.name,
        "metric": data.task.metric,
        "splits": split_sizes(data),
        "command": command,
        "seeds": plan.seeds,
        "budgets": plan.budgets,
        "arms": config.arms,
        "versions": {"python": machine["python"]} | {name: version(name) for name in VERSIONS},
        "machine": {
            "processor": machine["cpu"],
            "cores": machine["usable_cores"],
            "memory": f"{machine['memory_bytes'] / 1e9:.1f} GB",
            **({} if config.executor == "local" else {"executor": config.executor}),
            "trainings at the same time": plan.jobs,
            "threads of each": plan.threads,
            "threads of pretraining": plan.pretrain_threads,
            "precision": plan.precision,
        },
        "minutes": study.minutes,
        "warnings": [*data.notes, *_notes(study)],
        "task_texts": joined,
        "overlap_checked": overlap_sentence(data.dropped) if data.corpus is not None else "",
        "parameters": _parameters(study),
        "pretraining": _pretraining(study),
        "all_labels": data.all_labels,
        "folds": plan.folds,
        "cuts": plan.cuts,
        "selection": config.selection,
        "shared_test": data.shared_test,
    }


def dataset_name(sources: Sequence[str]) -> str:
    """Return what a study is called: a file with its folder, since many are called train.csv.

    Example
    -------
    >>> dataset_name(["rotten-tomatoes"])
    'rotten-tomatoes'
    """
    path, name = Path(sources[0]), sources[0]
    if path.exists():
        place = path.resolve()
        name = place.name if place.is_dir() else f"{place.parent.name}/{place.name}".lstrip("/")
    return name if len(sources) == 1 else f"{name} and {len(sources) - 1} more"


def _corpus_name(config: StudyConfig) -> str:
    if config.base:
        return f"the base {Path(config.base).name}"
    if config.uses_own_texts:
        return "its own training texts"
    needed = any(arm.needs_corpus for arm in config.arm_table)
    return ", ".join(Path(one).name for one in config.corpus) if needed else ""


def _notes(study: "Study") -> list[str]:
    config, notes = study.config, []
    if config.selection == "none" and config.has_networks:
        notes.append(
            "no settings were selected: each network trained for all epochs and kept the last one, "
            "and a stack weights its members equally; the validation part decided only which arm "
            "is saved"
        )
    if config.needs_base:
        count = study.plan.pretrainings(config)
        over = f"each objective has {count} bases, so the intervals cover other pretrainings, too"
        if count == 1:
            over = (
                "each objective has one base, so the intervals do not cover other pretrainings "
                "(--bases)"
            )
        notes.append(over)
    return notes


def _parameters(study: "Study") -> dict[str, Any]:
    """Count the parameters of each objective's network."""
    classes = max(2, len(study.data.task.labels))
    return {
        objective: count_parameters(study.network(objective), classes).document()
        for objective in study.config.objectives
        if study.config.has_networks
    }


def _pretraining(study: "Study") -> list[dict[str, Any]]:
    """Return the loss curve of each base, and what it generates or fills in."""
    if not study.config.needs_base:
        return []
    texts, found = study.data.task.texts(study.data.splits.validation), []
    for objective in study.config.objectives:
        folder = study.base_folder(objective)
        path = folder / METRICS_FILE
        points = loss_curve(read_metrics(path)) if path.is_file() else []
        made = samples(NetworkRun.open(folder), texts)
        found.append({"objective": objective, "points": points, "samples": made})
    return found


def samples(run: NetworkRun, texts: Sequence[str]) -> list[dict[str, str]]:
    """Continue the first words of texts with a causal base, or fill a gap with a masked one."""
    least = 1 if run.causal else 3
    found: list[dict[str, str]] = []
    every = map(str.split, dict.fromkeys(texts))  # the same question is asked about many texts
    for words in [words for words in every if len(words) >= least][:PROMPTS]:
        with suppress(HeadstartError):  # longer than the base has positions
            found.append(_sample(run, words[:12]))
    return found


def _sample(run: NetworkRun, words: list[str]) -> dict[str, str]:
    if run.causal:
        prompt = " ".join(words[:3])[:60]
        tokens = list(generate(run, prompt, tokens=24))
        text = run.tokenizer.decode([*run.tokenizer.encode([prompt])[0], *tokens])
    else:
        words[len(words) // 2] = "[MASK]"
        prompt = " ".join(words)
        text = f"{prompt} → " + " · ".join(word.strip() for word, _ in fill(run, prompt)[0])
    return {"prompt": prompt, "text": text}


# The best model.


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


def save_best(study: "Study") -> tuple[Job, Job | None]:
    """Write `best/`, if it is not there yet; the runs of all other jobs are deleted.

    Returns
    -------
    The best job, and the one whose run is saved. They differ where the best one cannot be saved,
    as the trivial one, and in a study in folds, where the best arm is trained on all rows.
    """
    place, most = study.folder / BEST, study.plan.budgets[-1]
    largest = [study.results[job] for job in study.trainings if job.labels == most]
    losses = measure(largest, study.data, selection=study.config.selection)
    usable = {job: loss for job, loss in losses.items() if find_arm(job.arm).fit != "trivial"}
    if not usable:
        return choose_best(losses), None
    chosen = choose_best(usable)
    saved = study.plan.saved(chosen)
    if not place.is_dir():
        new = place.with_name(f".{place.name}.part")  # so that it is there whole or not at all
        shutil.rmtree(new, ignore_errors=True)
        _write_run(new, saved, study)
        more = _expected(new, chosen, study) if study.data.folds else {}
        write_summary({**read_summary(new), "run": str(place), **more}, new)
        new.replace(place)
    shutil.rmtree(study.folder / "runs", ignore_errors=True)
    return choose_best(losses), saved


def _write_run(new: Path, job: Job, study: "Study") -> None:
    """Write the run of a job into a new folder: its archive, or a stack of those of its members."""
    weights = study.results[job].facts.get("weights")
    if weights is None:
        _unpack_run(job, study, new)
        return
    members: dict[str, Run] = {}
    used = [one for one in study.plan.needed(job, study.config) if weights[one.arm]]
    for one in used:
        place = new / MEMBERS / safe_name(one.arm)
        _unpack_run(one, study, place)
        members[place.name] = Run.open(place)
    settings: Any = {**study.config.dataset_settings(), "seed": job.seed}
    scorer = Stack([weights[one.arm] for one in used], members)
    save_arm(
        ClassifierRun(new, scorer, task=study.data.task),
        FinetuneConfig(**settings),
        study.data.rows(job.labels, job.seed, job.fold),
        new,
        arm=job.arm,
    )


def _unpack_run(job: Job, study: "Study", place: Path) -> None:
    unpack(run_file(study.folder, study.plan.same_as(job) or job).read_bytes(), place)


def _expected(new: Path, job: Job, study: "Study") -> dict[str, Any]:
    """Add to the card what the folds measured: all rows trained the run, and none can judge it."""
    data, results = study.data, study.results
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
