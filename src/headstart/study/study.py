"""A study from its config to its results. Killed and started again, it resumes.

    config.toml    the settings that were given     plan.json     what will be done
    bases/         the pretrained bases: one per objective
    folds/         the same of each fold, where its training texts are the corpus
    jobs/          one file for each finished job
    runs/          runs that may become the best one, until it is chosen
    temporary/     files of the processes that jobs run in, while they run
    progress.jsonl what happened so far, for other processes (`progress.py`)
    best/          the best model, whatever its kind, ready for `headstart predict`
and, at the end, what `results.py` and `report/` write. Only this module writes the folder.

The best arm has the lowest log-loss of out-of-fold predictions at the largest budget, on the same
rows for all arms, averaged over the seeds: it moves in smaller steps than the accuracy of a few
rows. The arm with the lowest loss is the best one, even if the difference is due to chance. The
test part has no influence. Where an arm has no out-of-fold predictions, all arms are compared on
the validation part.
"""

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from headstart.arms import find_arm
from headstart.baselines.baselines import save_arm
from headstart.baselines.stack import MEMBERS, Stack
from headstart.checksums import save_arrays
from headstart.config import FinetuneConfig, StudyConfig, is_run
from headstart.data.dataset import as_text
from headstart.data.overlap import overlap_sentence
from headstart.data.sources import check_outside
from headstart.data.tokenizers import hash_of, load_tokenizer, train_tokenizer
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import log_loss, normalized
from headstart.files import check_folder, locked, replacing, write_text
from headstart.machine import look_up
from headstart.model.counts import count_parameters
from headstart.model.presets import Preset, preset, preset_of
from headstart.model_card import CARD
from headstart.objectives import OBJECTIVES
from headstart.run import SUMMARY, ClassifierRun, NetworkRun, Run, read_summary, write_summary
from headstart.study import executors, jobs
from headstart.study.data import StudyData, gold_names, has_classes, read_data, split_sizes
from headstart.study.plan import (
    Job,
    Plan,
    check_plan,
    make_plan,
    parallel_jobs,
    pretrain_config,
    read_plan,
    safe_name,
    seconds_left,
)
from headstart.study.progress import StudyCallback
from headstart.study.results import Results, make_results, run_predictions, write_results
from headstart.training.callbacks import METRICS_FILE, loss_curve, read_metrics
from headstart.training.corpus import prepare_corpus
from headstart.training.initialization import cooccurrence_vectors, local_base
from headstart.training.pretrain import pretrain
from headstart.training.run_files import PLAN_FILE, base_fingerprint, check_identity, write_start

BEST = "best"


@dataclass
class Study:
    """A study that is planned or under way."""

    config: StudyConfig
    folder: Path
    data: StudyData
    plan: Plan
    resumed: bool = False  # it began in an earlier session
    results: dict[Job, jobs.JobResult] = field(default_factory=dict)  # of finished jobs

    @property
    def jobs(self) -> list[Job]:
        """Every job, in the order in which they are started."""
        return self.plan.all_jobs(self.config)

    @property
    def trainings(self) -> list[Job]:
        """Every training: the jobs that have values and predictions."""
        return self.plan.trainings(self.config)

    @property
    def minutes(self) -> float:
        """Of all jobs in all sessions, as many at the same time as the plan says."""
        return sum(one.facts["seconds"] for one in self.results.values()) / self.plan.jobs / 60

    def seconds_left(self) -> float | None:
        """Estimate the time of the unfinished jobs from finished ones of the same kind."""
        spent = {job: one.facts["seconds"] for job, one in self.results.items()}
        for job in filter(self.plan.shares_rows, spent):  # no other seed selects a setting again
            spent[job] -= self.results[job].facts.get("selection_seconds", 0.0)
        return seconds_left(self.jobs, spent, parallel=self.plan.jobs)

    def network(self, objective: str) -> Preset:
        """Return the network of an objective: the base's, or the preset's."""
        if self.config.base:
            return preset_of(NetworkRun.open(self.config.base).model.base.config)
        causal = OBJECTIVES[objective].attention == "causal"
        sizes, tokenizer = self.config.sizes(), self.folder / "tokenizer"
        if any(tokenizer.glob("*.*")):  # a small corpus has fewer tokens than the preset
            sizes["vocab_size"] = load_tokenizer(tokenizer).vocab_size
        return preset(self.config.preset, objective="causal" if causal else "masked", **sizes)

    def text_folder(self, seed: int = 0, fold: int = 0) -> Path:
        """Return where the tokenizer, the vectors and the bases of a seed and fold are."""
        if fold and (seed, fold) in self.plan.text_places(self.config):
            return self.folder / "folds" / f"seed-{seed}-fold-{fold}"
        return self.folder

    def base_folder(self, objective: str, place: tuple[int, int] = (0, 0)) -> Path:
        """Return where the base of a seed and fold is: the one that was given, or the study's."""
        folder = self.text_folder(*place) / "bases" / objective
        return local_base(self.config.base, folder) if self.config.base else folder

    def unfinished(self, arms: Collection[str]) -> list[Job]:
        """List the jobs of some arms that are not finished."""
        return [job for job in self.jobs if job.arm in arms and job not in self.results]


def plan_study(
    config: StudyConfig,
    folder: Path,
    *,
    callback: StudyCallback | None = None,
    plan: Path | None = None,
) -> Study:
    """Read the data and make the plan, or check one that was made before; nothing is written."""
    callback = callback or StudyCallback()
    config.validate()
    check_folder(folder)
    check_outside(folder, [*config.dataset, *config.corpus])
    resumed = is_run(folder)
    config = config.resumed(folder) if resumed else config
    data = read_data(config, callback)
    if resumed:
        check_identity(_identity(config, data), folder)
        planned = replace(read_plan(folder / PLAN_FILE), jobs=parallel_jobs(config))
    elif plan is not None:
        planned = check_plan(read_plan(plan), plan, config, data)
    else:
        callback.stage("timing the first steps")
        planned = make_plan(config, data)
    study = Study(config, folder, data, planned, resumed)
    if resumed:
        study.results = {
            job: jobs.read_result(folder, job)
            for job in study.jobs
            if jobs.result_file(folder, job).is_file()
        }
    return study


def _identity(config: StudyConfig, data: StudyData) -> dict[str, str]:
    """Return the fingerprints that must be the same for a resume: data, base and tokenizer."""
    content = [(part.keys, part.targets) for part in data.splits.parts().values()]
    identity = {"dataset": hash_of(json.dumps(content).encode())}
    if data.corpus is not None:
        identity["corpus"] = data.corpus.fingerprint
    if config.base:
        identity["base"] = base_fingerprint(config.base)
    if config.tokenizer:
        identity["tokenizer"] = load_tokenizer(Path(config.tokenizer)).fingerprint
    return identity


def run_study(
    config: StudyConfig,
    folder: Path,
    *,
    callback: StudyCallback | None = None,
    plan: Path | None = None,
    command: str = "",
) -> Results:
    """Run or resume a study and write its results; the report shows the `command`."""
    callback = callback or StudyCallback()
    study = plan_study(config, folder, callback=callback, plan=plan)
    return finish_study(study, callback, command=command)


def finish_study(study: Study, callback: StudyCallback, *, command: str = "") -> Results:
    """Run the jobs of a planned study that are not finished, and write its results."""
    config, folder = study.config, study.folder
    with locked(folder, "study"):
        if is_run(folder) != study.resumed:
            raise HeadstartError(
                "another process has begun or removed this study in the meantime",
                where=folder,
                fix="start the command again, or choose another --out",
                code="locked",
            )
        if not study.resumed:
            write_start(folder, config, _identity(config, study.data), asdict(study.plan))
        callback.on_plan(study)
        executor = executors.make_executor(config, study.plan.jobs, folder, callback.on_job)
        try:
            _run_all(study, executor, callback)
        finally:
            executor.stop()
        best, saved = save_best(study)
        results = make_study_results(study, best, saved, command=command)
        write_results(folder, results)
    return results


def _run_all(study: Study, executor: executors.Executor, callback: StudyCallback) -> None:
    """Run all jobs, the quick ones first, so that the first results appear within a minute."""
    table, every = study.config.arm_table, set(study.config.arms)
    quick = {arm.name for arm in table if not arm.needs and not arm.is_network}
    with_text = {arm.name for arm in table if arm.needs & {"tokenizer", "vectors"}}
    run_jobs(study, quick, {}, executor, callback)
    inputs: dict[Path, jobs.Inputs] = {}
    for place in study.plan.text_places(study.config) if study.unfinished(every) else []:
        paths = prepare_text(study, place, callback) if study.unfinished(with_text) else {}
        paths |= prepare_bases(study, place, callback)
        inputs[study.text_folder(*place)] = executor.ship(paths)
    run_jobs(study, every, inputs, executor, callback)


def run_jobs(
    study: Study,
    arms: set[str],
    inputs: dict[Path, jobs.Inputs],
    executor: executors.Executor,
    callback: StudyCallback,
) -> None:
    """Run the unfinished jobs of some arms, each as soon as those that it needs are finished."""
    plan, config = study.plan, study.config
    waiting = study.unfinished(arms)
    running: dict[Future[jobs.JobResult], Job] = {}
    while waiting or running:
        needed = {job: plan.needed(job, config) for job in waiting}
        ready = [job for job in waiting if all(one in study.results for one in needed[job])]
        for job in ready[: plan.jobs - len(running)]:
            waiting.remove(job)
            found = [study.results[one] for one in needed[job]]
            if plan.same_as(job) != job:
                _finish(study, replace(found[0], job=job, run=None), callback)
                continue
            callback.on_job(job, "start")
            future = executor.submit(
                jobs.run_job,
                job,
                config,
                plan,
                study.data.rows(job.labels, job.seed, job.fold),
                study.data.task,
                inputs.get(study.text_folder(job.seed, job.fold), {}),
                found,
                executor.report if job in study.trainings else None,
            )
            running[future] = job
        done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        for event in executor.events():
            callback.on_job(*event)
        for future in done:
            del running[future]
            _finish(study, executors.result_of(future), callback)


def _finish(study: Study, result: jobs.JobResult, callback: StudyCallback) -> None:
    jobs.write_result(result, study.folder)
    study.results[result.job] = replace(result, run=None)
    is_measured = result.job in study.trainings
    value = result.value("validation", study.data.task.metric) if is_measured else None
    callback.on_job(result.job, "done", None, value)


def prepare_text(study: Study, place: tuple[int, int], callback: StudyCallback) -> dict[str, str]:
    """Write the tokenizer and, if needed, PPMI-SVD vectors of a place; return paths by name."""
    config, folder = study.config, study.text_folder(*place) / "tokenizer"
    data = study.data.fold(*place)
    if data.corpus is None and config.base:
        return {}
    network = study.network(config.objectives[0]).base
    if data.corpus is not None:
        settings = pretrain_config(config, study.plan, config.objectives[0])
        prepared = prepare_corpus(settings, callback=callback, corpus=data.corpus)
        tokenizer = prepared.tokenizer
    elif config.tokenizer:
        tokenizer = load_tokenizer(Path(config.tokenizer))
    else:
        texts = study.data.task.texts(data.splits.train)
        tokenizer = train_tokenizer(texts, vocab_size=network.vocab_size)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder)  # the same every time, also after a kill
    paths = {"tokenizer": str(folder)}
    if any("vectors" in arm.needs for arm in config.arm_table):
        path = folder.with_name("vectors.safetensors")
        paths["vectors"] = str(path)
        if not path.is_file():
            # U·S does better in a classifier than U·√S, with which a base starts.
            width = network.width
            vectors = cooccurrence_vectors(prepared, width=width, power=1.0, callback=callback)
            with replacing(path) as temporary:
                save_arrays({"vectors": vectors}, temporary)
    return paths


def prepare_bases(study: Study, place: tuple[int, int], callback: StudyCallback) -> dict[str, str]:
    """Pretrain the bases of a place that are not finished; return all of them by name."""
    config, found = study.config, {}
    is_needed = config.needs_base or (config.base and config.has_networks)
    initial = any(arm.start == "initial" for arm in config.arm_table)
    for objective in config.objectives if is_needed else []:
        folder = study.base_folder(objective, place)
        found[objective] = str(folder)
        if config.base or (folder / SUMMARY).is_file():
            continue
        callback.on_pretraining(objective, study.plan.text_places(config).index(place))
        resume = is_run(folder)
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
        pretrain(
            pretrain_config(config, study.plan, objective),
            folder,
            resume=resume,
            callbacks=[callback],
            corpus=study.data.fold(*place).corpus,
            save_initial=folder / jobs.INITIAL if initial else None,
        )
    for arm in config.arm_table:
        if arm.is_foreign:
            folder = study.folder / "bases" / safe_name(arm.name)
            found[folder.name] = str(local_base(arm.name, folder))
    return found


def make_study_results(study: Study, best: Job, saved: Job | None, *, command: str) -> Results:
    """Put the results of all trainings into one table; the run of `saved` is in `best/`."""
    data, task, values, tables = study.data, study.data.task, [], []
    test: Any = data.splits.test
    gold = np.asarray(test.labels) if has_classes(task) else None
    runs: dict[tuple[Any, ...], list[jobs.JobResult]] = {}  # of the folds of each run
    for job in study.trainings:
        runs.setdefault(tuple(job.run.values()), []).append(study.results[job])
    for folds in runs.values():
        run = folds[0].job.run
        places = [data.fold(one.job.seed, one.job.fold).rows for one in folds]
        values += [run | value for value in _mean_values(folds, [*map(len, places)])]
        order = np.argsort(np.concatenate(places))  # of the test rows
        predictions = np.concatenate([one.predictions for one in folds])[order]
        tables.append(run_predictions(run, test.rows, predictions, gold))
    named = zip(test.rows, map(as_text, test.keys), gold_names(task, test), strict=True)
    return make_results(
        _about(study, command) | {"best": best.run, "saved": saved.run if saved else {}},
        values,
        tables,
        [{"row": row, "text": text, "gold": name} for row, text, name in named],
    )


def _mean_values(folds: Sequence[jobs.JobResult], rows: Sequence[int]) -> list[dict[str, Any]]:
    """Average the values of a run's folds by their test rows, up to the last epoch of all."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for value in chain.from_iterable(one.values for one in folds):
        found.setdefault((value["epoch"], value["split"], value["metric"]), []).append(value)
    return [
        {
            **same[0],
            "value": float(np.average([one["value"] for one in same], weights=rows)),
            "seconds": float(np.mean([one["seconds"] for one in same])),
        }
        for same in found.values()
        if len(same) == len(folds)
    ]


def _facts(study: Study, pretraining: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the facts of each training; its costs include pretraining, selection and members."""
    config, plan = study.config, study.plan
    lasts = {part["objective"]: part["points"][-1] for part in pretraining if part["points"]}
    found: dict[Job, dict[str, Any]] = {}
    for job in study.trainings:  # the members of a stack come before it
        arm, needed = find_arm(job.arm), plan.needed(job, config)
        facts = found[job] = dict(study.results[job].facts)
        saved = study.results[plan.saved(job)].facts
        if job.labels == plan.budgets[-1] and "bytes" in saved:
            facts["bytes"] = saved["bytes"]
        members = [found[one] for one in needed if facts.get("weights", {}).get(one.arm)]
        for name in ("seconds", "test_seconds", "bytes") if members else ():
            if all(name in one for one in members):
                facts[name] = facts.get(name, 0) + sum(one[name] for one in members)
        if arm.is_network and needed:
            facts["seconds"] += study.results[needed[0]].facts["selection_seconds"]
        if arm.start == "base" and "base" in arm.needs:
            facts["seconds"] += lasts.get(job.objective, {}).get("seconds", 0.0)
    return [
        # As if each fold had predicted all rows.
        {**job.run, **facts, "test_seconds": plan.folds * facts["test_seconds"]}
        for job, facts in found.items()
    ]


def _about(study: Study, command: str) -> dict[str, Any]:
    config, data, plan = study.config, study.data, study.plan
    machine, pretraining = look_up(), _pretraining(study)
    joined = 0 if data.corpus is None or data.corpus.is_task_text else len(data.corpus.task_text)
    corpus = ", ".join(Path(one).name for one in config.corpus)
    if config.base:
        corpus = f"the base {Path(config.base).name}"
    elif config.uses_own_texts:
        corpus = "its own training texts"
    classes, notes = max(2, len(data.task.labels)), [*data.notes]
    packages = ("headstart", "torch", "tokenizers", "scikit-learn", "numpy")
    if config.selection == "none" and config.has_networks:
        notes.append(
            "no settings were selected: each network trained for all epochs and kept the last one, "
            "and a stack weights its members equally; the validation part decided only which arm "
            "is saved"
        )
    if config.needs_base and len(plan.text_places(config)) == 1:
        notes.append(
            "each objective has one base, so the intervals do not cover other pretrainings"
        )
    return {
        "dataset": config.name or dataset_name(config.dataset),
        "corpus": corpus,
        "label_names": list(data.task.labels),
        "task": data.task.name,
        "metric": data.task.metric,
        "splits": split_sizes(data),
        "command": command,
        "seeds": plan.seeds,
        "budgets": plan.budgets,
        "arms": config.arms,
        "versions": {"python": machine["python"]} | {name: version(name) for name in packages},
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
        "warnings": notes,
        "task_texts": joined,
        "overlap_checked": overlap_sentence(data.dropped) if data.corpus is not None else "",
        "parameters": {
            name: count_parameters(study.network(name), classes).document()
            for name in config.objectives
            if config.has_networks
        },
        "pretraining": pretraining,
        "facts": _facts(study, pretraining),
        "all_labels": data.all_labels,
        "folds": plan.folds,
        "cuts": plan.cuts,
        "selection": config.selection,
        "shared_test": data.shared_test,
    }


def dataset_name(sources: Sequence[str]) -> str:
    """Return what a study is called: a file with its folder, since many are called train.csv.

    >>> dataset_name(["rotten-tomatoes"])
    'rotten-tomatoes'
    """
    path, name = Path(sources[0]), sources[0]
    if path.exists():
        place = path.resolve()
        name = place.name if place.is_dir() else f"{place.parent.name}/{place.name}".lstrip("/")
    return name if len(sources) == 1 else f"{name} and {len(sources) - 1} more"


def _pretraining(study: Study) -> list[dict[str, Any]]:
    """Return the loss curve of each objective's base."""
    found = []
    for objective in study.config.objectives if study.config.needs_base else []:
        path = study.base_folder(objective) / METRICS_FILE  # a base of others has none
        points = loss_curve(read_metrics(path)) if path.is_file() else []
        found.append({"objective": objective, "points": points})
    return found


def measure(
    results: Sequence[jobs.JobResult], data: StudyData, *, selection: str
) -> dict[Job, float]:
    """Measure losses on the same out-of-fold rows; without, the negative validation metric."""
    if selection != "budget" or not all(len(one.oof_rows) for one in results):
        return {one.job: -one.value("validation", data.task.metric) for one in results}
    found = {}
    for one in results:
        place = (one.job.seed, one.job.fold)
        alike = [other for other in results if (other.job.seed, other.job.fold) == place]
        rows = jobs.shared_rows(alike)
        oof = jobs.oof_of(one, rows)
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


def save_best(study: Study) -> tuple[Job, Job | None]:
    """Write `best/`, if it is not there yet; the runs of all other jobs are deleted.

    Returns the best job, and the one whose run is saved. They differ where the best one cannot be
    saved, as the trivial one, and in a study in folds, where the best arm is trained on all rows.
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


def _write_run(new: Path, job: Job, study: Study) -> None:
    """Write the run of a job into a new folder: its own, or a stack of those of its members."""
    weights = study.results[job].facts.get("weights")
    if weights is None:
        shutil.copytree(_run_of(job, study), new)
        return
    members: dict[str, Run] = {}
    used = [one for one in study.plan.needed(job, study.config) if weights[one.arm]]
    for one in used:
        place = new / MEMBERS / safe_name(one.arm)
        shutil.copytree(_run_of(one, study), place)
        members[place.name] = Run.open(place)
    stack = Stack([weights[one.arm] for one in used], members)
    save_arm(
        ClassifierRun(new, stack, task=study.data.task),
        FinetuneConfig(**{**study.config.dataset_settings(), "seed": job.seed}),
        study.data.rows(job.labels, job.seed, job.fold),
        new,
        arm=job.arm,
    )


def _run_of(job: Job, study: Study) -> Path:
    return jobs.run_folder(study.folder, study.plan.same_as(job))


def _expected(new: Path, job: Job, study: Study) -> dict[str, Any]:
    """Add the result of the folds to the card, because the run was trained on all rows."""
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
        f"{len(data.splits.train):,} labelled rows. This model was then trained on all of them, "
        "so the evaluation above is on its training rows.\n",
    )
    return {"expected": {metric: float(value), "folds": folds}}
