"""A study from its config to its results. Killed and started again, it resumes.

    config.toml    the settings that were given     plan.json     what will be done
    bases/         the pretrained bases: one per objective, or --bases of them
    folds/         the same of each fold, where its training texts are the corpus
    jobs/          one file for each finished job
    runs/          runs that may become the best one, until it is chosen
    temporary/     files of the processes that jobs run in, while they run
    progress.jsonl what happened so far, for other processes (`progress.py`)
    best/          the best model, whatever its kind, ready for `headstart predict`
and, at the end, what `results.py` and `report/` write. Only this module writes the folder.
"""

import json
import shutil
import time
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path

from headstart.checksums import save_arrays
from headstart.config import PRESET_SETTINGS, StudyConfig, is_run
from headstart.data.sources import check_outside
from headstart.data.tokenizers import hash_of, load_tokenizer, train_tokenizer
from headstart.errors import HeadstartError
from headstart.files import check_folder, locked, replacing, write_text
from headstart.model.presets import Preset, preset, preset_of
from headstart.objectives import OBJECTIVES
from headstart.run import SUMMARY, NetworkRun
from headstart.study import executors
from headstart.study.data import StudyData, read_data
from headstart.study.jobs import (
    INITIAL,
    Inputs,
    JobResult,
    read_result,
    result_file,
    run_job,
    write_result,
)
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
from headstart.study.record import make_study_results, save_best
from headstart.study.results import Results, write_results
from headstart.training.corpus import prepare_corpus
from headstart.training.initialization import cooccurrence_vectors, local_base
from headstart.training.pretrain import pretrain
from headstart.training.run_files import (
    PLAN_FILE,
    base_fingerprint,
    check_identity,
    write_start,
)

MINUTES = "minutes.txt"
POLL_SECONDS = 0.2


@dataclass
class Study:
    """A study that is planned or under way.

    Parameters
    ----------
    resumed : whether it began in an earlier session.
    results : of the jobs that have finished.
    """

    config: StudyConfig
    folder: Path
    data: StudyData
    plan: Plan
    resumed: bool = False
    started: float = field(default_factory=time.monotonic)
    minutes_before: float = 0.0
    results: dict[Job, JobResult] = field(default_factory=dict)

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
        """Over all sessions; a kill loses those since the last finished job."""
        return self.minutes_before + (time.monotonic() - self.started) / 60

    def seconds_left(self) -> float | None:
        """Estimate the time of the unfinished jobs from finished ones of the same kind."""
        spent = {job: one.facts["seconds"] for job, one in self.results.items()}
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

    def base_folder(self, objective: str, number: int = 0, place: Path | None = None) -> Path:
        """Return where a base is: the one that was given, or the study's own of this number."""
        name = f"{objective}-{number}" if number else objective
        folder = (place or self.folder) / "bases" / name
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
    """Read the data and make the plan; nothing is written.

    Parameters
    ----------
    config : must be the folder's own where the study is started again.
    plan : a plan that was made before for this config and data. A study that is started again has
        its own.
    """
    started, callback = time.monotonic(), callback or StudyCallback()
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
    study = Study(config, folder, data, planned, resumed, started)
    if resumed:
        written = folder / MINUTES
        study.minutes_before = float(written.read_text()) if written.is_file() else 0.0
        finished = [job for job in study.jobs if result_file(folder, job).is_file()]
        study.results = {job: read_result(folder, job) for job in finished}
    return study


def _identity(config: StudyConfig, data: StudyData) -> dict[str, str]:
    """Return what must be the same when a study goes on: data, base, tokenizer and preset."""
    content = [(part.keys, part.targets) for part in data.splits.parts().values()]
    identity = {"dataset": hash_of(json.dumps(content).encode())}
    if data.corpus is not None:
        identity["corpus"] = data.corpus.fingerprint
    usual = PRESET_SETTINGS.get(config.preset, {}).get("finetune", {})
    if usual:
        identity["preset's settings"] = json.dumps(usual, sort_keys=True)
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
    """Run a study, or what is left of it, and write its results.

    Parameters
    ----------
    config, folder, plan : as for `plan_study`.
    callback : receives the events.
    command : for the report.
    """
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
    """Run all jobs, the quick ones first: something to look at within a minute."""
    table, every = study.config.arm_table, set(study.config.arms)
    quick = {arm.name for arm in table if not arm.needs and not arm.is_network}
    with_text = {arm.name for arm in table if arm.needs & {"tokenizer", "vectors"}}
    run_jobs(study, quick, {}, executor, callback)
    inputs: dict[Path, Inputs] = {}
    for place in study.plan.text_places(study.config) if study.unfinished(every) else []:
        paths = prepare_text(study, place, callback) if study.unfinished(with_text) else {}
        paths |= prepare_bases(study, place, callback)
        inputs[study.text_folder(*place)] = executor.ship(paths)
    run_jobs(study, every, inputs, executor, callback)


def run_jobs(
    study: Study,
    arms: set[str],
    inputs: dict[Path, Inputs],
    executor: executors.Executor,
    callback: StudyCallback,
) -> None:
    """Run the unfinished jobs of some arms, each as soon as those that it needs are finished."""
    plan, config = study.plan, study.config
    waiting = study.unfinished(arms)
    running: dict[Future[JobResult], Job] = {}
    while waiting or running:
        needed = {job: plan.needed(job, config) for job in waiting}
        ready = [job for job in waiting if all(one in study.results for one in needed[job])]
        for job in ready[: plan.jobs - len(running)]:
            waiting.remove(job)
            found = [study.results[one] for one in needed[job]]
            if plan.same_as(job):
                _finish(study, replace(found[0], job=job, run=None), callback)
                continue
            callback.on_job(job, "start")
            future = executor.submit(
                run_job,
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
        done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        for event in executor.events():
            callback.on_job(*event)
        for future in done:
            del running[future]
            _finish(study, executors.result_of(future), callback)


def _finish(study: Study, result: JobResult, callback: StudyCallback) -> None:
    write_result(result, study.folder)
    study.results[result.job] = replace(result, run=None)
    write_text(study.folder / MINUTES, f"{study.minutes:.3f}\n")
    is_measured = result.job in study.trainings
    value = result.value("validation", study.data.task.metric) if is_measured else None
    callback.on_job(result.job, "done", None, value)


def prepare_text(study: Study, place: tuple[int, int], callback: StudyCallback) -> dict[str, str]:
    """Write the tokenizer and, for arms that need them, the PPMI-SVD vectors of the corpus.

    Returns
    -------
    The paths of both by name, for the jobs of a place: a seed and a fold.
    """
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
            vectors = cooccurrence_vectors(
                prepared, width=network.width, power=1.0, callback=callback
            )
            with replacing(path) as temporary:
                save_arrays({"vectors": vectors}, temporary)
    return paths


def prepare_bases(study: Study, place: tuple[int, int], callback: StudyCallback) -> dict[str, str]:
    """Pretrain the bases of a place that are not finished; return all of them by name.

    By default a base is pretrained once, not once per seed: the seeds of a study vary the labelled
    rows and the head, and its intervals do not include how another pretraining would have gone.
    With `--bases` there are several, and the seeds take turns with them. In a study in folds whose
    training texts are the corpus, each fold of each seed has its base.
    """
    config, found = study.config, {}
    places = study.plan.text_places(config)
    initial = any(arm.start == "initial" for arm in config.arm_table)
    for objective, number in product(config.objectives, range(config.bases)):
        if not config.needs_base and not (config.base and config.has_networks):
            continue
        seed = number if len(places) == 1 else 0  # the bases of folds differ already
        folder = study.base_folder(objective, seed, study.text_folder(*place))
        found[f"{objective}-{number}"] = str(folder)
        if config.base or (folder / SUMMARY).is_file():
            continue
        callback.on_pretraining(objective, seed or places.index(place))
        resume = is_run(folder)
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)  # killed before it was a run
        pretrain(
            pretrain_config(config, study.plan, objective, seed=seed),
            folder,
            resume=resume,
            callbacks=[callback],
            corpus=study.data.fold(*place).corpus,
            save_initial=folder / INITIAL if initial else None,
        )
    for arm in config.arm_table:
        if arm.is_foreign:
            folder = study.folder / "bases" / safe_name(arm.name)
            found[folder.name] = str(local_base(arm.name, folder))
    return found
