"""The jobs of a study: one training of one arm each, with the selection of its settings.

A job is a pure function of its rows and of files: `run_job` reads no study folder and writes none,
so that it runs in any process on any machine. What it returns is what the driver writes.

Settings are selected with the rows of the label budget, among the same ones for every network: the
usual one; one that learns longer and faster, which is what a network without pretraining needs;
and, with fewer than 2,000 labels, training only the head of a network that has learned something
before. Each is trained without the rows of the first fold, and the lowest loss on those rows
selects. Then the network is trained on all rows of the budget. Every training ends its schedule:
one that is stopped half-way, at a high rate, is worse than a shorter one (research/recipes.md).

The folds are the same for every arm: three of fewer than 2,000 rows, one held-out tenth of more.
The out-of-fold predictions of the selection trainings are what temperature, stack and `best/` rest
on; the validation and test parts have no influence.
"""

import json
import pickle
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from headstart import folds
from headstart.arms import Arm, find_arm
from headstart.baselines.baselines import LINEAR_MODELS, save_arm, texts_and_labels
from headstart.baselines.stack import Stack, fit_out_of_fold
from headstart.checksums import load_arrays, save_arrays
from headstart.config import FinetuneConfig, StudyConfig
from headstart.data.dataset import Splits
from headstart.data.tokenizers import load_tokenizer
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import at_temperature, calibrated_loss, fit_temperature
from headstart.evaluation.metrics import classification_metrics
from headstart.files import replacing
from headstart.folds import Fold
from headstart.objectives import OBJECTIVES
from headstart.run import ClassifierRun, over_all_labels, write_task
from headstart.study.data import has_classes
from headstart.study.plan import Job, Plan, find_epochs, long_epochs, safe_name
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback
from headstart.training.finetune import finetune
from headstart.training.trainer import TrainState

INITIAL = "initial"  # the folder of a base's weights before the first step, inside the base's own
FASTER = 3.0  # times the usual learning rate, in the longer setting
# A random head on a frozen base has few weights: at the usual rate it would still be on its way
# when the steps are over. A linear probe is where it should be.
FROZEN_LEARNING_RATE = 3e-3
_one_at_a_time = threading.Lock()  # a worker of Dask may have several threads
ARRAYS = ("predictions", "validation_predictions", "oof", "oof_rows")
Array = NDArray[Any]
Setting = dict[str, Any]  # learning_rate and epochs
# What jobs read, by name: paths of the tokenizer, the vectors and the bases; or the content of all
# of their files, for machines that do not have the study's folder.
Inputs = Mapping[str, str] | Mapping[str, bytes]


@dataclass(frozen=True)
class JobResult:
    """What a job found.

    Parameters
    ----------
    values : rows of the results table: epoch, split, metric, value, seconds.
    facts : seconds, test_seconds, workers, threads, bytes, chosen, tries, temperature, weights …
    predictions, validation_predictions : probabilities (rows, classes) of test and validation, or
        what each row adds to the metric (rows,), for a task without classes.
    oof, oof_rows : out-of-fold predictions of rows of the budget, as in `Selection`.
    run : the files of the run, by name.
    """

    job: Job
    values: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    predictions: Array = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    validation_predictions: Array = field(default_factory=lambda: np.zeros((0, 0)))
    oof: Array = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    oof_rows: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    run: dict[str, bytes] | None = None

    def value(self, split: str, metric: str) -> float:
        """Return a value that was measured once, at the end."""
        final = {"epoch": None, "split": split, "metric": metric}
        return next(float(one["value"]) for one in self.values if one.items() >= final.items())


def pack(paths: Mapping[str, str]) -> dict[str, bytes]:
    """Return the content of files and of all files in folders, under their names."""
    return {
        (Path(name) / path.relative_to(place)).as_posix(): path.read_bytes()
        for name, place in paths.items()
        for path in [Path(place), *sorted(Path(place).rglob("*"))]
        if path.is_file()
    }


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write what `pack` returned into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def local_paths(inputs: Inputs, folder: Path) -> dict[str, str]:
    """Return the paths on this machine, by name; content is written into a folder first."""
    paths = {name: one for name, one in inputs.items() if isinstance(one, str)}
    files = {name: one for name, one in inputs.items() if isinstance(one, bytes)}
    unpack(files, folder)
    return paths | {name: str(folder / name) for name in {Path(one).parts[0] for one in files}}


@dataclass(frozen=True)
class JobContext:
    """What a job is given.

    Parameters
    ----------
    rows : the training part is the budget.
    task : with the labels of the whole dataset.
    needed : the results of `Plan.needed`.
    inputs : paths on this machine, by name.
    folder : for the run.
    report : as `StudyCallback.on_job`; it receives epochs and their validation metrics.
    """

    job: Job
    arm: Arm
    config: StudyConfig
    plan: Plan
    rows: Splits[Any]
    task: Task[Any]
    needed: Sequence[JobResult]
    inputs: dict[str, str]
    folder: Path
    report: Callable[..., None] | None


class Selection(NamedTuple):
    """What the selection trainings found.

    Parameters
    ----------
    setting : learning rate and epochs.
    tries : how many settings were tried; 0 where the rows were too few.
    temperature : fitted to the out-of-fold logits.
    oof : out-of-fold predictions of rows of the budget: probabilities (rows, classes), or what
        each row adds to the metric (rows,) for a task without classes.
    oof_rows : the numbers of these rows in the budget.
    """

    setting: Setting
    tries: int = 0
    temperature: float = 1.0
    oof: Array = np.zeros((0, 0))
    oof_rows: Array = np.zeros(0, dtype=np.int64)


class Fitted(NamedTuple):
    """What the functions in `FITS` return.

    Parameters
    ----------
    predict : returns probabilities (rows, classes), or the scores of a task without classes.
    selection : with the out-of-fold predictions.
    epochs : one row per epoch, for the curves.
    """

    predict: Callable[[Any], Any]
    selection: Selection
    facts: Mapping[str, Any] = MappingProxyType({})
    epochs: Sequence[dict[str, Any]] = ()


def attempt(fn: Callable[..., Any], *args: Any) -> Any:
    """Call a job on another process or machine; return its result, or the error that ended it.

    A job sets the random state and the threads of its process, so that one runs at a time.
    """
    with _one_at_a_time:
        try:
            return fn(*args)
        except Exception as error:
            try:
                return pickle.loads(pickle.dumps(error))
            except Exception:  # it cannot be sent, but its text can
                text = "".join(traceback.format_exception(error))
                return RuntimeError(f"a job failed: {error}\n{text}")


def run_job(
    job: Job,
    config: StudyConfig,
    plan: Plan,
    rows: Splits[Any],
    task: Task[Any],
    inputs: Inputs,
    needed: Sequence[JobResult] = (),
    report: Callable[..., None] | None = None,
) -> JobResult:
    """Train one arm on the rows of one budget, and predict validation and test once.

    Parameters are those of `JobContext`; `inputs` may be the content of files.
    """
    started, arm = time.monotonic(), find_arm(job.arm)
    with tempfile.TemporaryDirectory(prefix="headstart-") as place:
        paths, folder = local_paths(inputs, Path(place) / "inputs"), Path(place) / "run"
        fitted = FITS[arm.fit](
            JobContext(job, arm, config, plan, rows, task, needed, paths, folder, report)
        )
        validation = fitted.predict(rows.validation)
        predicting = time.monotonic()
        test = fitted.predict(rows.test)
        ended = time.monotonic()
        run = pack({"": str(folder)})
    facts = {
        "seconds": round(ended - started, 3),
        "test_seconds": round(ended - predicting, 3),
        "tries": fitted.selection.tries,
        "workers": plan.jobs,  # that ran next to each other while it was timed
        "threads": plan.threads,
        **fitted.facts,
        **({"bytes": sum(map(len, run.values()))} if run else {}),
    }
    values, arrays = _epoch_values(fitted.epochs, task), dict[str, Array]()
    predictions = {"test": (test, rows.test), "validation": (validation, rows.validation)}
    part: Any
    for split, (predicted, part) in predictions.items():
        if has_classes(task):
            arrays[split] = np.asarray(predicted, dtype=np.float32)
            measured = classification_metrics(arrays[split], part.labels)
        else:
            arrays[split] = task.row_scores(predicted, part)[task.metric].per_row()
            measured = task.metrics(predicted, part)
        values += _values(None, split, measured, facts["seconds"])
    return JobResult(
        job,
        values,
        facts,
        predictions=arrays["test"],
        validation_predictions=arrays["validation"],
        oof=np.asarray(fitted.selection.oof, dtype=np.float32),
        oof_rows=fitted.selection.oof_rows,
        run=run if plan.may_be_saved(job) else None,
    )


def _epoch_values(epochs: Sequence[dict[str, Any]], task: Task[Any]) -> list[dict[str, Any]]:
    """List the values of each epoch; seconds count from the beginning of the training."""
    values, seconds = [], 0.0
    for row in epochs:
        seconds += row["seconds"]
        measured = {name: row[name] for name in task.metric_names if name in row}
        measured["loss"] = row["validation_loss"]
        values += _values(row["epoch"], "train", {"loss": row["train_loss"]}, seconds)
        values += _values(row["epoch"], "validation", measured, seconds)
    return values


def _values(
    epoch: int | None, split: str, measured: Mapping[str, float], seconds: float
) -> list[dict[str, Any]]:
    """Make rows of the results table."""
    same = {"epoch": epoch, "split": split, "seconds": seconds}
    return [{**same, "metric": name, "value": float(value)} for name, value in measured.items()]


# Selection


def budget_folds(task: Task[Any], train: Any) -> list[Fold]:
    """Return the folds of a budget's rows; none where they are too few to select anything."""
    if has_classes(task):
        return folds.make_folds(train.labels)
    rows = np.arange(len(train))  # in a drawn order
    many = len(rows) >= folds.MANY
    every = folds.HELD_BACK if many else min(folds.FOLDS, len(rows))
    held = [rows[first::every] for first in range(1 if many else every)]
    return [Fold(np.setdiff1d(rows, one), one) for one in held] if len(rows) > 1 else []


def select_setting(context: JobContext, config: FinetuneConfig) -> Selection:
    """Train every setting without the first fold; the lowest loss on its rows selects.

    What decides is the log-loss at the best temperature, which moves in smaller steps than the
    accuracy of a few rows; for a task without classes its metric, then its loss.
    """
    task, train, plan = context.task, context.rows.train, context.plan
    longer = config.epochs if context.config.epochs else long_epochs(config.epochs)
    settings = [
        {"learning_rate": config.learning_rate, "epochs": config.epochs},
        {"learning_rate": FASTER * config.learning_rate, "epochs": longer},
    ][: plan.tries]
    learned = config.base is not None and not (config.fresh or config.freeze)
    if plan.tries > 1 and learned and task.whole_texts and len(train) < folds.MANY:
        settings.append({"learning_rate": config.learning_rate, "epochs": 1, "freeze": True})
    parts = budget_folds(task, train)
    if not parts:
        return Selection(settings[0])
    tried = [held_out_scores(config, train, parts[0], one, task) for one in settings]
    held = train.pick(parts[0].held.tolist())
    losses = [_loss(task, scores, held) for scores in tried]
    best = min(range(len(settings)), key=losses.__getitem__)
    used = parts if plan.every_fold(context.job, context.config) else parts[:1]
    scores = [tried[best]]
    scores += [held_out_scores(config, train, fold, settings[best], task) for fold in used[1:]]
    return out_of_fold(task, train, used, scores, setting=settings[best], tries=len(settings))


def out_of_fold(
    task: Task[Any],
    train: Any,
    parts: Sequence[Fold],
    scores: Sequence[Any],
    *,
    setting: Setting | None = None,
    tries: int = 0,
    calibrate: bool = True,
) -> Selection:
    """Join the scores of each fold's held-out rows, and `calibrate`: fit a temperature to them."""
    found, classes = list(scores), has_classes(task)
    if not classes:
        found = [
            task.row_scores(one, train.pick(fold.held.tolist()))[task.metric].per_row()
            for one, fold in zip(scores, parts, strict=True)
        ]
    rows = np.concatenate([fold.held for fold in parts])
    order = np.argsort(rows)
    oof, rows = np.concatenate(found).astype(np.float64)[order], rows[order]
    temperature = 1.0
    if classes and calibrate:
        temperature = fit_temperature(oof, np.asarray(train.labels)[rows])
    if classes:
        oof = at_temperature(oof, temperature)
    return Selection(setting or {}, tries, temperature, oof, rows)


def held_out_scores(
    config: FinetuneConfig, train: Any, fold: Fold, setting: Setting, task: Task[Any]
) -> Any:
    """Train in memory without a fold's held-out rows, and score them."""
    parts = Splits(train.pick(fold.train.tolist()), train.pick(fold.held.tolist()), None)
    config = config.replace(**setting, selection_metric="last")
    return finetune(config, None, splits=parts).validation_scores


def _loss(task: Task[Any], scores: Any, held: Any) -> tuple[float, float]:
    if has_classes(task):
        return calibrated_loss(scores, held.labels), 0.0
    found = task.metrics(scores, held)
    return -found[task.metric], found["loss"]


# Networks


def fit_network(context: JobContext) -> Fitted:
    """Select a setting with the rows of the budget, then fine-tune a network on all of them.

    Another job may have selected the setting for all seeds; without any selection the settings of
    the config are taken as they are. Validation is evaluated for the curves alone.
    """
    config, started = network_config(context), time.monotonic()
    if context.needed:
        (first,) = context.needed
        chosen, tries, temperature = (first.facts[k] for k in ("chosen", "tries", "temperature"))
        found = Selection(chosen, tries, temperature, first.oof, first.oof_rows)
    elif context.config.selection == "none":
        found = Selection({"epochs": config.epochs})
    else:
        found = select_setting(context, config)
    facts = {
        "chosen": found.setting,
        "temperature": found.temperature,
        "selection_seconds": round(time.monotonic() - started, 3),
    }
    config = config.replace(**found.setting, selection_metric="last")
    run = finetune(config, context.folder, splits=context.rows, callbacks=[_Epochs(context)])
    write_task(context.task, run.encoding, context.folder, found.temperature)

    def scores(rows: Any) -> Any:
        # Validation was evaluated after the last epoch.
        return run.validation_scores if rows is context.rows.validation else run.scores(rows)

    return Fitted(_predictor(context.task, scores, found), found, facts, run.summary["epochs"])


def _predictor(
    task: Task[Any], scores: Callable[[Any], Any], found: Selection
) -> Callable[[Any], Any]:
    """Return a function that turns rows into probabilities, or into scores without classes."""
    if not has_classes(task):
        return scores
    return lambda rows: at_temperature(scores(rows), found.temperature)


def network_config(context: JobContext) -> FinetuneConfig:
    """Return the settings of a network: the same for every arm, but for the arm's own."""
    study, job, arm = context.config, context.job, context.arm
    settings: dict[str, Any] = {
        **study.dataset_settings(),
        "epochs": find_epochs(study, job.labels),
        "labels": str(job.labels) if study.task == "classification" else None,
        "length": study.length,
        **({} if arm.is_foreign else {"preset": study.preset}),
        "device": "cpu",
        "seed": job.seed,
        "threads": context.plan.threads,
        "precision": context.plan.precision,
    }
    base = context.inputs.get(safe_name(arm.name) if arm.is_foreign else job.objective)
    if base is None:
        causal = OBJECTIVES[job.objective].attention == "causal"
        settings["objective"] = "causal" if causal else "masked"
        settings |= {"tokenizer": context.inputs["tokenizer"], **study.sizes()}
    else:
        settings["base"] = f"{base}/{INITIAL}" if arm.start == "initial" else base
        settings["fresh"] = arm.start == "random"
    config = FinetuneConfig.create(**settings).replace(**arm.settings)
    if config.freeze and config.head_init == "random":
        config = config.replace(learning_rate=FROZEN_LEARNING_RATE)
    return config


class _Epochs(Callback):
    """Reports every epoch to the study."""

    def __init__(self, context: JobContext) -> None:
        self.context = context

    def on_evaluation(self, state: TrainState) -> None:
        if (report := self.context.report) is not None:
            value = state.metrics[self.context.task.metric]
            report(self.context.job, "epoch", len(state.history), value)


# Linear models


def fit_linear(context: JobContext) -> Fitted:
    """Fit a scikit-learn estimator, which selects its own C in folds."""
    rows, task, arm = context.rows, context.task, context.arm
    estimator: Any = resolve_name(arm.estimator) if arm.estimator else LINEAR_MODELS[task.name][1]
    given: dict[str, Any] = {}
    if "vectors" in arm.needs:
        given["vectors"] = load_file(context.inputs["vectors"])["vectors"]
        given["tokenizer"] = load_tokenizer(context.inputs["tokenizer"])
    classifier = estimator(**given)
    folds = [] if context.config.selection == "none" else budget_folds(task, rows.train)
    classifier.fit(*texts_and_labels(task, rows.train), folds=folds)
    run = ClassifierRun(context.folder, classifier, task=task)
    found = Selection({}, tries=len(classifier.Cs))
    if folds:
        scores = [
            over_all_labels(one, classifier.classes_, len(task.labels))
            for one in classifier.oof_scores_
        ]
        found = out_of_fold(task, rows.train, folds, scores, tries=found.tries, calibrate=False)
    if context.plan.may_be_saved(context.job):
        settings = FinetuneConfig(**context.config.dataset_settings(), seed=context.job.seed)
        save_arm(run, settings, rows, context.folder, arm=arm.name)
    facts = {"chosen": {"C": classifier.C_[0]}} if len(classifier.C_) == 1 else {}
    return Fitted(_predictor(task, lambda part: run.scores(part), found), found, facts)


def fit_trivial(context: JobContext) -> Fitted:
    """Predict without reading: the majority class, the most frequent labels, no entity …"""
    task, train = context.task, context.rows.train
    folds = budget_folds(task, train)
    scores = [
        task.trivial(train.pick(fold.train.tolist()), train.pick(fold.held.tolist()))[1]
        for fold in folds
    ]
    found = out_of_fold(task, train, folds, scores) if folds else Selection({})
    return Fitted(_predictor(task, lambda rows: task.trivial(train, rows)[1], found), found)


# Stacks


def fit_stack(context: JobContext) -> Fitted:
    """Combine the predictions of other arms, with weights fitted to out-of-fold predictions."""
    members, rows = context.needed, context.rows
    found, stack = Selection({}), Stack([1 / len(members)] * len(members))
    shared = shared_rows(members)
    if len(shared):
        labels = np.asarray(rows.train.labels)[shared]
        stack, oof = fit_out_of_fold([oof_of(one, shared) for one in members], labels)
        found = Selection({}, oof=oof, oof_rows=shared)

    def predict(part: Any) -> Array:
        test = part is rows.test
        return stack.predict_proba(
            [one.predictions if test else one.validation_predictions for one in members]
        )

    weights = zip((one.job.arm for one in members), map(float, stack.weights), strict=True)
    return Fitted(predict, found, {"weights": dict(weights)})


def shared_rows(results: Sequence[JobResult]) -> Array:
    """Return the numbers of the budget's rows with out-of-fold predictions of every result."""
    rows = results[0].oof_rows
    for one in results[1:]:
        rows = np.intersect1d(rows, one.oof_rows)
    return rows


def oof_of(result: JobResult, rows: Array) -> Array:
    """Return the out-of-fold predictions of some of the rows that a result has them for."""
    return result.oof[np.searchsorted(result.oof_rows, rows)]


FITS: dict[str, Callable[[JobContext], Fitted]] = {
    "network": fit_network,
    "linear": fit_linear,
    "trivial": fit_trivial,
    "stack": fit_stack,
}


# Files


def write_result(result: JobResult, folder: Path) -> None:
    """Write a finished job as one file, and the folder of its run before it."""
    if result.run is not None:
        shutil.rmtree(run_folder(folder, result.job), ignore_errors=True)  # killed on the way
        unpack(result.run, run_folder(folder, result.job))
    about = json.dumps({"values": result.values, "facts": result.facts})
    arrays = {name: np.ascontiguousarray(getattr(result, name)) for name in ARRAYS}
    with replacing(result_file(folder, result.job)) as temporary:
        save_arrays(arrays, temporary, about)


def read_result(folder: Path, job: Job) -> JobResult:
    """Read a finished job; a damaged file is an error that names it."""
    path = result_file(folder, job)
    fix = "delete the file and start the study again: the job is repeated"
    arrays, about = load_arrays(path, fix=fix)
    try:
        return JobResult(job, **(json.loads(about) | arrays))
    except (TypeError, ValueError) as error:
        raise HeadstartError(f"this job cannot be read: {error}", where=path, fix=fix) from None


def result_file(folder: Path, job: Job) -> Path:
    """Return where the study keeps the result of a job."""
    return folder / "jobs" / f"{job.name}.safetensors"


def run_folder(folder: Path, job: Job) -> Path:
    """Return where the study keeps the run of a job."""
    return folder / "runs" / job.name
