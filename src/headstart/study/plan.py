"""The plan of a study: which jobs, how many steps, how long, and what was reduced to fit.

Made once, before anything is trained, and saved in `plan.json`, so that a study that is started
again does the same. The first estimate of the time comes from a few timed steps of the networks
themselves; the time left comes from the jobs that have finished (`seconds_left`).

Amounts are in tokens and epochs, not in minutes: the same command gives the same numbers.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from headstart.arms import Arm, find_arm
from headstart.config import FinetuneConfig, Precision, PretrainConfig, StudyConfig
from headstart.data.corpus import Corpus
from headstart.data.splits import take_budget
from headstart.errors import HeadstartError
from headstart.files import read_object
from headstart.folds import FOLDS, HELD_BACK, MANY
from headstart.machine import choose_precision, choose_threads
from headstart.study.data import StudyData
from headstart.study.results import RUN
from headstart.study.selection import TRIES, long_epochs
from headstart.training.finetune import finetune
from headstart.training.pretrain import pretrain

# Epochs that are not given: so many, or as many as STEPS steps allow where the labels are many.
EPOCHS, STEPS, FEWEST_EPOCHS = 5, 500, 2
TOKENS = 2_600_000  # of pretraining
MOST_PASSES = 10  # over a corpus that is smaller than that
BYTES_PER_TOKEN = 4.0  # about
UNKNOWN_BYTES = round(TOKENS * BYTES_PER_TOKEN / 2)  # of a corpus whose files do not tell
MOST_JOBS = 4  # at the same time on this machine, where no number is given
CLUSTER_JOBS = 16  # the same on a cluster
LEAST_PRETRAINING = 0.25  # of the planned steps: less is another question
LEAST_SEEDS = 2  # one seed knows nothing of its own variance
TIMED_ROWS, TIMED_BYTES = 2_000, 500_000  # of labelled rows and of the corpus, for timed steps
TRAINING_SECONDS = 0.2  # of each training, however few its rows are
LINEAR_SECONDS = 3.0  # for each MB of labelled text
PREPARING_SECONDS = 1.0  # for each MB of the corpus: tokenizer, store and co-occurrences
REPORT_SECONDS = 15.0


@dataclass(frozen=True, order=True)
class Job:
    """One training: arm × objective × labelled rows used × seed × fold.

    `objective` is "" for an arm that depends on none. With `select` it is the selection of a
    setting that every seed of the same base shares. Folds are counted from 1; 0 is the whole
    training part: in a study in folds, that is a model that may become `best/`.
    """

    arm: str
    objective: str
    labels: int
    seed: int
    select: bool = False
    fold: int = 0

    @property
    def name(self) -> str:
        """A name for files that sorts by what it says."""
        last = f"base-{self.seed}-selection" if self.select else f"seed-{self.seed}"
        last += f"-fold-{self.fold}" if self.fold else ""
        parts = [safe_name(self.arm), self.objective, f"{self.labels:06d}", last]
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
    """What will be done.

    Parameters
    ----------
    pretrain_steps : of each objective; 0 where nothing is pretrained.
    jobs : how many run at the same time.
    threads, pretrain_threads : of each job, and of pretraining, which runs alone.
    precision : of every network.
    all_labels : labelled rows that a training could have.
    tries : settings that each network tries.
    cuts : what was reduced to fit into the minutes, in words.
    folds : of each seed; 1 in a study with one test part.
    rows : labelled rows, on all of which `best/` is trained in a study in folds.
    """

    seeds: list[int]
    budgets: list[int]
    pretrain_steps: int
    jobs: int
    threads: int
    pretrain_threads: int
    precision: Precision
    all_labels: int
    tries: int = TRIES
    seconds: float = 0.0
    cuts: list[str] = field(default_factory=list)
    folds: int = 1
    rows: int = 0

    def trainings(self, config: StudyConfig) -> list[Job]:
        """List every training, in the order in which they are started.

        Quick arms go first. Of the others, those that are compared run next to each other, so that
        a busy hour hits all of them.
        """
        found = [
            Job(arm.name, objective, labels, seed, fold=fold)
            for arm in config.arm_table
            for objective in _objectives(arm, config)
            for labels in self.budgets
            for seed, fold in self.places
        ]
        return sorted(found, key=_place_among_compared)

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

    def pretrainings(self, config: StudyConfig) -> int:
        """Count the bases of each objective: `--bases`, or one for each seed and fold."""
        return max(config.bases, len(self.text_places(config)))

    def saved(self, job: Job) -> Job:
        """Return the training whose run is saved if this one is the best."""
        return replace(job, labels=self.rows, seed=0, fold=0) if self.folds > 1 else job

    def all_jobs(self, config: StudyConfig) -> list[Job]:
        """List every job: trainings, the selections that they share, and what may be saved."""
        found, trainings = dict[Job, None](), self.trainings(config)
        for job in trainings:
            found |= dict.fromkeys([*self.selections(job, config), job])
        return list(found | dict.fromkeys(map(self.saved, trainings)))

    def same_rows(self, job: Job) -> bool:
        """Whether every seed trains on the rows of this job: all labels."""
        return self.folds == 1 and job.labels == self.all_labels

    def selections(self, job: Job, config: StudyConfig) -> list[Job]:
        """Return the selection that seeds share: with all labels, they have the same rows."""
        shared = self.same_rows(job) and len(self.seeds) > config.bases
        if shared and config.selection == "budget" and find_arm(job.arm).is_network:
            return [replace(job, seed=job.seed % config.bases, select=True)]
        return []

    def needed(self, job: Job, config: StudyConfig) -> list[Job]:
        """Return the jobs whose results a job needs."""
        if job.select:
            return []
        if same := self.same_as(job):
            return [same]
        if "arms" in find_arm(job.arm).needs:
            return [
                replace(job, arm=arm.name, objective=job.objective if arm.uses_objective else "")
                for arm in config.members
            ]
        return self.selections(job, config)

    def same_as(self, job: Job) -> Job | None:
        """Return the job of another seed that has the same result: same rows, nothing random."""
        first = replace(job, seed=self.seeds[0])
        same = self.same_rows(job) and not find_arm(job.arm).varies_with_seed
        return first if same and job != first else None

    def every_fold(self, job: Job, config: StudyConfig) -> bool:
        """Whether a network predicts the rows of every fold, or of the first one alone."""
        stack = any("arms" in arm.needs for arm in config.arm_table)
        return job.labels >= self.budgets[-1] or (stack and find_arm(job.arm).stackable)


def _place_among_compared(job: Job) -> tuple[int, ...]:
    """Sort networks and stacks by budget, seed and fold, after all quick arms."""
    slow = find_arm(job.arm).varies_with_seed
    return (job.labels, job.seed, job.fold) if slow else ()


def _objectives(arm: Arm, config: StudyConfig) -> list[str]:
    """Return the objectives that an arm is trained for; one empty name where it uses none."""
    members = config.members if "arms" in arm.needs else [arm]
    return config.objectives if any(one.uses_objective for one in members) else [""]


class Speed(NamedTuple):
    """What was measured before the first job.

    Parameters
    ----------
    row_seconds : of one row in one epoch, by arm; "" is the study's own network.
    step_seconds : of a step of pretraining, by objective.
    row_bytes : of a labelled row.
    corpus_bytes : of the corpus.
    """

    row_seconds: Mapping[str, float]
    step_seconds: Mapping[str, float]
    row_bytes: float
    corpus_bytes: int


def parallel_jobs(config: StudyConfig) -> int:
    """Return how many jobs run at the same time."""
    if config.executor == "local":
        return config.jobs or min(choose_threads(config.threads), MOST_JOBS)
    return config.jobs or CLUSTER_JOBS


def job_threads(config: StudyConfig, jobs: int) -> int:
    """Return the threads of each job; its bits depend on their number."""
    if config.executor == "local":
        return max(1, choose_threads(config.threads) // jobs)
    return config.cores or 1


def make_plan(config: StudyConfig, data: StudyData) -> Plan:
    """Look at the data and the machine, time a few steps, and fit the study into the minutes."""
    jobs = parallel_jobs(config)
    corpus_bytes = 0 if data.corpus is None else data.corpus.size or UNKNOWN_BYTES
    steps = 0
    if config.needs_base and not config.base:
        passes = round(MOST_PASSES * corpus_bytes / BYTES_PER_TOKEN)
        steps = max(1, (config.tokens or min(TOKENS, passes)) // PretrainConfig.batch_tokens)
    rows = len(take_budget(data.splits.train, "all", 0))
    plan = Plan(
        seeds=list(range(config.seeds)),
        budgets=data.budgets,
        pretrain_steps=steps,
        jobs=jobs,
        threads=job_threads(config, jobs),
        pretrain_threads=choose_threads(config.threads),
        precision=config.precision or _fastest_precision(config),
        all_labels=data.all_labels,
        folds=data.fold_count,
        rows=rows,
    )
    texts = data.task.texts(data.splits.train)
    networks = {arm.name if arm.is_foreign else "" for arm in config.arm_table if arm.is_network}
    speed = Speed(
        {name: time_row(config, data, plan, name) for name in networks},
        {name: time_step(config, data, plan, name) for name in config.objectives if steps},
        sum(len(text.encode()) for text in texts) / len(data.splits.train),
        corpus_bytes,
    )
    return fit_plan(config, plan, speed)


def _fastest_precision(config: StudyConfig) -> Precision:
    """Return bf16 where it is faster on this machine; other machines may not have it."""
    if config.executor != "local" or not config.has_networks:
        return "fp32"
    found: Precision = choose_precision(torch.device("cpu"))["precision"]
    return found


def find_epochs(config: StudyConfig, labels: int) -> int:
    """Return the epochs that were given, those of the lab, or what so many labels need."""
    usual = FinetuneConfig.create(dataset=["none"], preset=config.preset)
    if config.epochs or config.preset == "lab":
        return config.epochs or usual.epochs
    steps = -(-labels // usual.batch_size)
    return min(EPOCHS, max(FEWEST_EPOCHS, STEPS // steps))


def time_row(config: StudyConfig, data: StudyData, plan: Plan, name: str) -> float:
    """Time steps of a network: seconds of one row in one epoch, with its evaluation."""
    rows = data.rows(plan.budgets[-1], 0)
    count = min(TIMED_ROWS, len(rows.train))
    rows = replace(rows, train=rows.train.pick(list(range(count))))
    base = name or config.base
    network: dict[str, Any] = (
        {"base": base} if base else {"preset": config.preset, **config.sizes()}
    )
    timed = FinetuneConfig.create(
        **config.dataset_settings(),
        **network,
        tokenizer=None if base else config.tokenizer,
        length=config.length,
        device="cpu",
        epochs=1,
        threads=plan.threads,
        precision=plan.precision,
    )
    seconds = finetune(timed, None, splits=rows, dry_run=True).plan["seconds"]
    return float(seconds) / count


def time_step(config: StudyConfig, data: StudyData, plan: Plan, objective: str) -> float:
    """Time steps of a pretraining on the first documents of the corpus."""
    assert data.corpus is not None
    sample = Corpus("the first documents")
    sample = sample.with_task_text(list(_first_documents(data.corpus)))
    timed = pretrain_config(config, plan, objective).replace(embedding_init="random")
    with TemporaryDirectory() as place:
        found = pretrain(timed, Path(place) / "timed", corpus=sample, dry_run=True).plan
    return float(found["seconds"]) / int(found["steps"])


def _first_documents(corpus: Corpus) -> Iterator[str]:
    size = 0
    for document in corpus:
        yield document
        size += len(document.encode())
        if size > TIMED_BYTES:
            return


def pretrain_config(
    config: StudyConfig, plan: Plan, objective: str, *, seed: int = 0
) -> PretrainConfig:
    """Return the settings of the study's base for an objective."""
    return PretrainConfig.create(
        corpus=config.corpus or config.dataset,  # of the dataset, only training texts are read
        task_text=config.dataset[0] if config.task_text else None,
        objective=objective,
        preset=config.preset,
        tokenizer=config.tokenizer,
        encoding=config.encoding,
        seed=seed,
        documents=config.documents,
        steps=plan.pretrain_steps or None,
        threads=plan.pretrain_threads,
        precision=plan.precision,
        device="cpu",
        **config.sizes(),
    )


def fit_plan(config: StudyConfig, plan: Plan, speed: Speed) -> Plan:
    """Return the plan with its time, reduced until it fits into the minutes.

    The choice of settings goes first, for all networks alike; then seeds, down to two; then
    pretraining, down to a quarter; then label budgets, from the middle. No training is cut short.
    What does not fit even so is an error that says what would.
    """

    def timed(one: Plan) -> Plan:
        return replace(one, seconds=study_seconds(config, one, speed))

    plan = wanted = timed(plan)
    if not config.minutes or plan.seconds <= 60 * config.minutes:
        return plan
    goal = 60 * config.minutes
    if config.has_networks and config.selection == "budget":
        plan = timed(replace(plan, tries=1))
    while plan.seconds > goal and len(plan.seeds) > max(LEAST_SEEDS, config.bases):
        plan = timed(replace(plan, seeds=plan.seeds[:-1]))
    while True:
        if plan.seconds > goal and plan.pretrain_steps:
            spent = plan.pretrainings(config) * sum(speed.step_seconds.values())
            steps = wanted.pretrain_steps - int((plan.seconds - goal) / spent) - 1
            least = int(LEAST_PRETRAINING * wanted.pretrain_steps)
            plan = timed(replace(plan, pretrain_steps=max(least, steps, 1)))
        if plan.seconds <= goal or len(plan.budgets) == 1:
            break
        # A curve needs its ends; the last one to stay is the cheapest.
        dropped = plan.budgets[1] if len(plan.budgets) > 2 else plan.budgets[-1]
        budgets = [labels for labels in plan.budgets if labels != dropped]
        steps = wanted.pretrain_steps
        plan = timed(replace(plan, budgets=budgets, pretrain_steps=steps))
    if plan.seconds > goal:
        raise HeadstartError(
            f"this study does not fit into {config.minutes:g} min: with {len(plan.seeds)} "
            f"seeds, {plan.budgets[0]:,} labels and little pretraining it takes about "
            f"{plan.seconds / 60:.0f}, in full {wanted.seconds / 60:.0f}",
            fix=f"give --minutes {math.ceil(1.1 * plan.seconds / 60)} or more, or fewer --arms",
            code="does-not-fit",
        )
    return replace(plan, cuts=_cuts(wanted, plan))


def study_seconds(config: StudyConfig, plan: Plan, speed: Speed) -> float:
    """Estimate the seconds of the whole study."""
    seconds = [
        job_seconds(job, config, plan, speed)
        for job in plan.all_jobs(config)
        if plan.same_as(job) is None
    ]
    steps = plan.pretrainings(config) * plan.pretrain_steps
    pretraining = steps * sum(speed.step_seconds.values())
    corpora = len(plan.text_places(config))
    preparing = corpora * PREPARING_SECONDS * speed.corpus_bytes / 1e6
    jobs = max(sum(seconds) / plan.jobs, max(seconds))
    return preparing + pretraining + jobs + REPORT_SECONDS


def job_seconds(job: Job, config: StudyConfig, plan: Plan, speed: Speed) -> float:
    """Estimate the seconds of a job from the rows that it trains on, in all epochs."""
    arm, usual = find_arm(job.arm), find_epochs(config, job.labels)
    if not arm.is_network:
        megabytes = job.labels * speed.row_bytes / 1e6
        linear = LINEAR_SECONDS * megabytes * (FOLDS + 1) + TRAINING_SECONDS
        return 0.0 if "arms" in arm.needs else linear
    long = usual if config.epochs else long_epochs(usual)
    last = long if plan.tries > 1 and arm.start == "random" else usual
    trainings = [] if job.select else [float(last)]  # the epochs of each, in all of the rows
    if config.selection == "budget" and (job.select or not plan.selections(job, config)):
        many, tried = job.labels >= MANY, [usual, long][: plan.tries]
        if plan.every_fold(job, config) and not many:
            tried += [last] * (FOLDS - 1)
        share = 1 - 1 / (HELD_BACK if many else FOLDS)
        trainings += [share * epochs for epochs in tried]
    row_seconds = speed.row_seconds[arm.name if arm.is_foreign else ""]
    return sum(trainings) * job.labels * row_seconds + len(trainings) * TRAINING_SECONDS


def _cuts(wanted: Plan, plan: Plan) -> list[str]:
    """Say what was reduced."""
    dropped = [f"{labels:,}" for labels in wanted.budgets if labels not in plan.budgets]
    steps = (plan.pretrain_steps, wanted.pretrain_steps)
    cuts = [
        (
            plan.tries != wanted.tries,
            "every network takes the usual learning rate and epochs without a choice",
        ),
        (plan.seeds != wanted.seeds, f"{len(plan.seeds)} seeds instead of {len(wanted.seeds)}"),
        (bool(dropped), f"no trainings with {' and '.join(dropped)} labels"),
        (steps[0] != steps[1], f"{steps[0]:,} steps of pretraining instead of {steps[1]:,}"),
    ]
    return [words for is_reduced, words in cuts if is_reduced]


def seconds_left(
    jobs: Sequence[Job], finished: Mapping[Job, float], *, parallel: int
) -> float | None:
    """Estimate the seconds of unfinished jobs from the finished ones.

    Parameters
    ----------
    jobs : all jobs.
    finished : the seconds of each finished job.
    parallel : how many run at the same time.

    Returns
    -------
    The mean of finished jobs of the same arm and budget; otherwise the time per row of the same
    arm, then of any network. None where nothing of the kind has finished.
    """
    keys = [
        lambda job: (job.arm, job.labels, job.select),
        lambda job: (job.arm, job.select),
        lambda job: find_arm(job.arm).is_network,
    ]
    left = 0.0
    for job in jobs:
        if job in finished:
            continue
        for key in keys:
            alike = [one for one in finished if key(one) == key(job)]
            if alike:
                rows = sum(one.labels for one in alike)
                left += job.labels * sum(finished[one] for one in alike) / rows
                break
        else:
            return None
    return left / parallel


def read_plan(path: Path) -> Plan:
    """Read a plan: a study's own, or what `--dry-run --json` printed."""
    names = [one.name for one in fields(Plan)]
    fix = "make it again with --dry-run --json, or start the study in another --out"
    values = read_object(path, needs=names, fix=fix)
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
