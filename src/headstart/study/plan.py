"""The plan of a study: which jobs, how many tokens, how long, and what was reduced to fit.

Made once, before anything is trained, and saved in `plan.json`, so that a study that is started
again does the same. The first estimate of the time comes from a few timed steps of the networks
themselves; the time left comes from the jobs that have finished (`seconds_left`).

Amounts are in tokens and epochs, not in minutes: the same command gives the same numbers.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from headstart.arms import CLASS_TASKS, Arm, find_arm
from headstart.config import FinetuneConfig, Precision, PretrainConfig, StudyConfig
from headstart.data.splits import take_budget
from headstart.errors import HeadstartError
from headstart.files import read_object
from headstart.folds import FOLDS, HELD_BACK, MANY
from headstart.machine import choose_precision, choose_threads
from headstart.study.data import StudyData
from headstart.study.results import RUN
from headstart.training.finetune import finetune
from headstart.training.pretrain import pretrain

TRIES = 2  # settings of each network
LONGER = 1.5  # times the usual epochs; twice as many were no better
# Epochs that are not given: so many, or as many as STEPS steps allow where the labels are many.
EPOCHS, STEPS, FEWEST_EPOCHS = 5, 500, 2
TOKENS = 2_600_000  # of pretraining
MOST_PASSES = 10  # over a corpus that is smaller than that
BYTES_PER_TOKEN = 4.0  # about
UNKNOWN_BYTES = round(TOKENS * BYTES_PER_TOKEN / 2)  # of a corpus whose files do not tell
MOST_JOBS = 4  # at the same time on this machine, where no number is given
CLUSTER_JOBS = 16  # the same on a cluster
PRETRAINING_SHARES = (1.0, 0.8, 0.6, 0.4, 0.25)  # of the planned tokens: fewer is another question
LEAST_SEEDS = 2  # one seed gives no variance
TIMED_ROWS = 2_000
TRAINING_SECONDS = 0.2  # of each training, however few its rows are
LINEAR_SECONDS = 3.0  # for each MB of labelled text
PREPARING_SECONDS = 1.0  # for each MB of the corpus: tokenizer, store and co-occurrences
REPORT_SECONDS = 15.0


@dataclass(frozen=True, order=True)
class Job:
    """One training: arm × objective × labelled rows used × seed × fold.

    `objective` is "" for an arm that depends on none. Folds are counted from 1; 0 is the whole
    training part: in a study in folds, that is a model that may become `best/`.
    """

    arm: str
    objective: str
    labels: int
    seed: int
    fold: int = 0

    @property
    def name(self) -> str:
        """A name for files that sorts by what it says."""
        parts = [safe_name(self.arm), self.objective, f"{self.labels:06d}", f"seed-{self.seed}"]
        parts.append(f"fold-{self.fold}" if self.fold else "")
        return "-".join(part for part in parts if part)

    @property
    def run(self) -> dict[str, Any]:
        """The columns of the results table that name it."""
        return {name: getattr(self, name) for name in RUN}


def safe_name(arm: str) -> str:
    """Return an arm's name for files: `hf:PATH` has characters that those cannot have."""
    plain = re.sub(r"[^\w.-]+", "-", arm)
    if plain == arm:
        return arm
    return f"{plain[-60:].strip('-')}-{hashlib.sha256(arm.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Plan:
    """What will be done."""

    seeds: list[int]
    budgets: list[int]
    pretrain_tokens: int  # of each objective; 0 where nothing is pretrained
    jobs: int  # that run at the same time
    threads: int  # of each job
    pretrain_threads: int  # of pretraining, which runs alone
    precision: Precision
    all_labels: int  # labelled rows that a training could have
    tries: int = TRIES
    seconds: float = 0.0
    cuts: list[str] = field(default_factory=list)  # to fit into the minutes, in words
    folds: int = 1  # of each seed; 1: one test part
    rows: int = 0  # labelled rows, on all of which `best/` is trained in a study in folds

    def trainings(self, config: StudyConfig) -> list[Job]:
        """List every training, in the order in which they are started.

        Quick arms go first. Of the others, those that are compared run next to each other, so that
        a busy hour hits all of them.
        """
        return sorted(
            (
                Job(arm.name, objective, labels, seed, fold=fold)
                for arm in config.arm_table
                for objective in _objectives(arm, config)
                for labels in self.budgets
                for seed, fold in self.places
            ),
            key=_place_among_compared,
        )

    @property
    def places(self) -> list[tuple[int, int]]:
        """Every seed and fold; the fold is 0 in a study with one test part."""
        folds = range(1, self.folds + 1) if self.folds > 1 else [0]
        return [(seed, fold) for seed in self.seeds for fold in folds]

    def text_places(self, config: StudyConfig) -> list[tuple[int, int]]:
        """Return the seeds and folds that have a tokenizer and a base to themselves.

        They are one, (0, 0), unless the training texts of each fold are its corpus.
        """
        return [(0, 0), *(self.places if self.folds > 1 and not config.corpus else [])]

    def saved(self, job: Job) -> Job:
        """Return the training whose run is saved if this one is the best."""
        return replace(job, labels=self.rows, seed=0, fold=0) if self.folds > 1 else job

    def may_be_saved(self, job: Job) -> bool:
        """Whether the run of a job may become `best/`."""
        return job.labels >= self.budgets[-1] and job == self.saved(job)

    def all_jobs(self, config: StudyConfig) -> list[Job]:
        """List every job: the trainings, and what may be saved."""
        trainings = self.trainings(config)
        return list(dict.fromkeys([*trainings, *map(self.saved, trainings)]))

    def shares_rows(self, job: Job) -> bool:
        """Whether every seed trains on the rows of this job: all labels."""
        return self.folds == 1 and job.labels == self.all_labels

    def first_seed(self, job: Job) -> Job:
        """Return the job of the first seed that has the same rows; it may be this one."""
        return replace(job, seed=self.seeds[0]) if self.shares_rows(job) else job

    def same_as(self, job: Job) -> Job:
        """Return the job that has the same result: another seed's, where nothing is random."""
        return job if find_arm(job.arm).varies_with_seed else self.first_seed(job)

    def needed(self, job: Job, config: StudyConfig) -> list[Job]:
        """Return the jobs whose results a job needs.

        A stack needs its members. Seeds with the same rows need the first one: a linear arm has its
        result, a network takes the setting that it has selected.
        """
        arm, first = find_arm(job.arm), self.first_seed(job)
        if "arms" in arm.needs:
            return [
                replace(job, arm=one.name, objective=job.objective if one.uses_objective else "")
                for one in config.members
            ]
        is_shared = config.selection == "budget" or not arm.is_network
        return [first] if first != job and is_shared else []

    def every_fold(self, job: Job, config: StudyConfig) -> bool:
        """Whether a network predicts the rows of every fold, or of the first one alone."""
        stack = any("arms" in arm.needs for arm in config.arm_table)
        return job.labels >= self.budgets[-1] or (stack and find_arm(job.arm).stackable)


def _place_among_compared(job: Job) -> tuple[int, ...]:
    """Sort networks and stacks by budget, seed and fold, after all quick arms."""
    return (job.labels, job.seed, job.fold) if find_arm(job.arm).varies_with_seed else ()


def _objectives(arm: Arm, config: StudyConfig) -> list[str]:
    """Return the objectives that an arm is trained for; one empty name where it uses none."""
    members = config.members if "arms" in arm.needs else [arm]
    return config.objectives if any(one.uses_objective for one in members) else [""]


def parallel_jobs(config: StudyConfig) -> int:
    """Return how many jobs run at the same time."""
    if config.executor == "local":
        return config.jobs or min(choose_threads(config.threads), MOST_JOBS)
    return config.jobs or CLUSTER_JOBS


def make_plan(config: StudyConfig, data: StudyData) -> Plan:
    """Look at the data and the machine, time a few steps, and fit the study into the minutes."""
    jobs, threads = parallel_jobs(config), choose_threads(config.threads)
    is_local = config.executor == "local"
    corpus_bytes = 0 if data.corpus is None else data.corpus.size or UNKNOWN_BYTES
    tokens = 0
    if config.needs_base and not config.base:
        passes = round(MOST_PASSES * corpus_bytes / BYTES_PER_TOKEN)
        tokens = config.tokens or max(1, min(TOKENS, passes))
    precision = config.precision or "fp32"
    if not config.precision and is_local and config.has_networks:
        precision = choose_precision(torch.device("cpu"))["precision"]
    plan = Plan(
        seeds=list(range(config.seeds)),
        budgets=data.budgets,
        pretrain_tokens=tokens,
        jobs=jobs,
        # The bits of a training depend on its threads.
        threads=max(1, threads // jobs) if is_local else config.cores or 1,
        pretrain_threads=threads,
        precision=precision,
        all_labels=data.all_labels,
        folds=data.fold_count,
        rows=len(take_budget(data.splits.train, "all", 0)),
    )
    texts = data.task.texts(data.splits.train)
    networks = {arm.name if arm.is_foreign else "" for arm in config.arm_table if arm.is_network}
    objectives = config.objectives if tokens else []
    estimate = partial(
        study_seconds,
        config,
        row_seconds={name: time_row(config, data, plan, name) for name in networks},
        token_seconds=sum(time_token(config, data, plan, name) for name in objectives),
        row_bytes=sum(len(text.encode()) for text in texts) / len(data.splits.train),
        corpus_bytes=corpus_bytes,
    )
    return fit_plan(config, plan, estimate)


def find_epochs(config: StudyConfig, labels: int) -> int:
    """Return the epochs that were given, those of the lab, or what so many labels need."""
    usual = FinetuneConfig.create(dataset=["none"], preset=config.preset)
    if config.epochs or config.preset == "lab":
        return config.epochs or usual.epochs
    return min(EPOCHS, max(FEWEST_EPOCHS, STEPS // math.ceil(labels / usual.batch_size)))


def long_epochs(usual: int) -> int:
    """Return the epochs of the longer one of the settings that a network tries."""
    return math.ceil(LONGER * usual)


def time_row(config: StudyConfig, data: StudyData, plan: Plan, name: str) -> float:
    """Time steps of a network: seconds of one row in one epoch, with its evaluation."""
    rows = data.rows(plan.budgets[-1], 0)
    count = min(TIMED_ROWS, len(rows.train))
    rows = replace(rows, train=rows.train.pick(list(range(count))))
    base = name or config.base
    network: dict[str, Any] = {"base": base}
    if not base:
        network = {"preset": config.preset, "tokenizer": config.tokenizer, **config.sizes()}
    timed = FinetuneConfig.create(
        **config.dataset_settings(),
        **network,
        length=config.length,
        device="cpu",
        epochs=1,
        threads=plan.threads,
        precision=plan.precision,
    )
    return float(finetune(timed, None, splits=rows, dry_run=True).plan["seconds"]) / count


def time_token(config: StudyConfig, data: StudyData, plan: Plan, objective: str) -> float:
    """Time steps of a pretraining; the tokenized corpus stays in the cache for the study."""
    timed = pretrain_config(config, plan, objective).replace(embedding_init="random")
    with TemporaryDirectory() as place:
        found = pretrain(timed, Path(place) / "timed", corpus=data.corpus, dry_run=True).plan
    return float(found["seconds"]) / int(found["tokens"])


def pretrain_config(config: StudyConfig, plan: Plan, objective: str) -> PretrainConfig:
    """Return the settings of the study's base for an objective."""
    return PretrainConfig.create(
        corpus=config.corpus or config.dataset,  # of the dataset, only training texts are read
        task_text=config.dataset[0] if config.task_text else None,
        objective=objective,
        preset=config.preset,
        tokenizer=config.tokenizer,
        encoding=config.encoding,
        documents=config.documents,
        tokens=plan.pretrain_tokens or None,
        threads=plan.pretrain_threads,
        precision=plan.precision,
        device="cpu",
        **config.sizes(),
    )


def fit_plan(config: StudyConfig, plan: Plan, estimate: Callable[[Plan], float]) -> Plan:
    """Return the plan with its time, reduced until `estimate`, in seconds, fits into the minutes.

    No training is cut short. What does not fit even so is an error that says what would.
    """
    for smaller in _smaller_plans(config, plan):
        fitted = replace(smaller, seconds=estimate(smaller))
        if fitted.seconds <= 60 * (config.minutes or math.inf):
            return replace(fitted, cuts=_cuts(plan, fitted))
    # With a margin, because the next start measures other times.
    least, whole = (math.ceil(1.1 * one / 60) for one in (fitted.seconds, estimate(plan)))
    folds = "--folds 1 (a test part), " if plan.folds > 1 and not config.folds else ""
    raise HeadstartError(
        f"this study does not fit into {config.minutes:g} min: even with "
        f"{len(fitted.seeds)} seeds, {fitted.budgets[0]:,} labels and little pretraining it needs "
        f"about {least} min (in full {whole} min)",
        fix=f"give --minutes {least} or more, "
        f"{folds}or fewer arms"
        + ("; the quickest are --arms tfidf,cooc-lr" if config.task in CLASS_TASKS else ""),
        code="does-not-fit",
    )


def _smaller_plans(config: StudyConfig, plan: Plan) -> Iterator[Plan]:
    """Yield the plan and ever smaller ones.

    The choice of settings goes first, for all networks alike; then seeds, down to two; then
    pretraining, down to a quarter; then label budgets, from the middle, again with less and less
    pretraining.
    """
    yield plan
    if config.has_networks and config.selection == "budget":
        plan = replace(plan, tries=1)
        yield plan
    while len(plan.seeds) > LEAST_SEEDS:
        plan = replace(plan, seeds=plan.seeds[:-1])
        yield plan
    while plan.budgets:
        for share in PRETRAINING_SHARES:
            yield replace(plan, pretrain_tokens=math.ceil(share * plan.pretrain_tokens))
        # A curve needs its ends; the last one to stay is the cheapest.
        dropped = plan.budgets[1] if len(plan.budgets) > 2 else plan.budgets[-1]
        plan = replace(plan, budgets=[labels for labels in plan.budgets if labels != dropped])


def study_seconds(
    config: StudyConfig,
    plan: Plan,
    *,
    row_seconds: Mapping[str, float],
    token_seconds: float,
    row_bytes: float,
    corpus_bytes: int,
) -> float:
    """Estimate the seconds of the whole study.

    `row_seconds` are those of one row in one epoch by arm, where "" is the study's own network;
    `token_seconds` those of one token of pretraining of every objective.
    """
    seconds = []
    for job in plan.all_jobs(config):
        arm, epochs, trainings = find_arm(job.arm), find_epochs(config, job.labels), 1.0
        if "arms" in arm.needs or plan.same_as(job) != job:
            continue
        row = LINEAR_SECONDS * (FOLDS + 1) * row_bytes / 1e6
        if arm.is_network:
            row = epochs * row_seconds[arm.name if arm.is_foreign else ""]
            if plan.tries > 1 and not config.epochs:
                row *= (1 + LONGER) / 2  # one of the two settings is longer
            if config.selection == "budget" and not plan.needed(job, config):
                many = job.labels >= MANY
                others = FOLDS - 1 if plan.every_fold(job, config) and not many else 0
                share = 1 - 1 / (HELD_BACK if many else FOLDS)
                trainings += (plan.tries + others) * share
        seconds.append(trainings * (job.labels * row + TRAINING_SECONDS))
    corpora = len(plan.text_places(config))
    preparing = PREPARING_SECONDS * corpus_bytes / 1e6 + plan.pretrain_tokens * token_seconds
    jobs = max(sum(seconds) / plan.jobs, *seconds, 0.0)
    return corpora * preparing + jobs + REPORT_SECONDS


def _cuts(wanted: Plan, plan: Plan) -> list[str]:
    """Say what was reduced."""
    dropped = [f"{labels:,}" for labels in wanted.budgets if labels not in plan.budgets]
    tokens, all_tokens = plan.pretrain_tokens, wanted.pretrain_tokens
    cuts = {
        "every network uses the default learning rate and epochs": plan.tries != wanted.tries,
        f"{len(plan.seeds)} seeds instead of {len(wanted.seeds)}": plan.seeds != wanted.seeds,
        f"no trainings with {' and '.join(dropped)} labels": bool(dropped),
        f"{tokens:,} tokens of pretraining instead of {all_tokens:,}": tokens != all_tokens,
    }
    return [words for words, is_reduced in cuts.items() if is_reduced]


def seconds_left(
    jobs: Sequence[Job], finished: Mapping[Job, float], *, parallel: int
) -> float | None:
    """Estimate the seconds of unfinished jobs from those of the finished ones.

    A job takes the mean of finished jobs of the same arm and budget; otherwise the time per row of
    the same arm, then of any network. None where nothing of the kind has finished.
    """
    left = 0.0
    for job in jobs:
        if job in finished:
            continue
        is_network = find_arm(job.arm).is_network
        alike = (
            [one for one in finished if (one.arm, one.labels) == (job.arm, job.labels)]
            or [one for one in finished if one.arm == job.arm]
            or [one for one in finished if find_arm(one.arm).is_network == is_network]
        )
        if not alike:
            return None
        rows = sum(one.labels for one in alike)
        left += job.labels * sum(finished[one] for one in alike) / rows
    return left / parallel


def read_plan(path: Path) -> Plan:
    """Read a plan: a study's own, or what `--dry-run --json` printed."""
    names = [one.name for one in fields(Plan)]
    values = read_object(
        path,
        needs=names,
        fix="make it again with --dry-run --json, or start the study in another --out",
    )
    return Plan(**{name: values[name] for name in names})


def check_plan(plan: Plan, path: Path, config: StudyConfig, data: StudyData) -> Plan:
    """Return the plan, if it fits the config and the data."""
    fits = set(plan.budgets) <= set(data.budgets) and plan.folds == data.fold_count
    if not plan.budgets or not fits or not set(plan.seeds) <= set(range(config.seeds)):
        raise HeadstartError(
            "this plan was made for other data or other settings",
            where=path,
            fix="make it again: headstart compare … --dry-run --json",
        )
    return plan
