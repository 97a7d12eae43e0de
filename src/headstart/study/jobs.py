"""The jobs of a study: one training of one arm each, or the selection that several of them share.

A job is a pure function of its rows and of files: `run_job` reads no study folder and writes none,
so that it runs in any process on any machine. What it returns is what the driver writes.
"""

import io
import json
import pickle
import tarfile
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from headstart.arms import Arm, find_arm
from headstart.baselines.baselines import LINEAR_MODELS, save_arm, texts_and_labels
from headstart.baselines.stack import Stack, fit_out_of_fold
from headstart.checksums import load_arrays, save_arrays
from headstart.config import FinetuneConfig, StudyConfig
from headstart.data.dataset import Splits
from headstart.data.tokenizers import load_tokenizer
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import at_temperature
from headstart.evaluation.metrics import classification_metrics
from headstart.files import replacing
from headstart.objectives import OBJECTIVES
from headstart.run import ClassifierRun, over_all_labels, write_task
from headstart.study.data import has_classes
from headstart.study.plan import Job, Plan, find_epochs, safe_name
from headstart.study.selection import (
    Selection,
    budget_folds,
    out_of_fold,
    select_setting,
    settings_to_try,
)
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback
from headstart.training.finetune import finetune
from headstart.training.trainer import TrainState

INITIAL = "initial"  # the folder of a base's weights before the first step, inside the base's own
# A random head on a frozen base has few weights: at the usual rate it would still be on its way
# when the steps are over. A linear probe is where it should be.
FROZEN_LEARNING_RATE = 3e-3
_one_at_a_time = threading.Lock()  # a worker of Dask may have several threads
ARRAYS = ("probabilities", "validation_probabilities", "scores", "oof", "oof_rows")
Array = NDArray[Any]


NO_PREDICTIONS = np.zeros((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class JobResult:
    """What a job found.

    Parameters
    ----------
    values : rows of the results table: epoch, split, metric, value, seconds.
    facts : seconds, test_seconds, workers, threads, bytes, chosen, tries, temperature, weights …
    probabilities, validation_probabilities : (rows, classes), of test and validation.
    scores : (test rows,), what each row adds to the metric, for a task without classes.
    oof, oof_rows : out-of-fold predictions of rows of the budget, as in `Selection`.
    run : an archive of the run's folder.
    """

    job: Job
    values: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    probabilities: Array = field(default_factory=NO_PREDICTIONS.copy)
    validation_probabilities: Array = field(default_factory=NO_PREDICTIONS.copy)
    scores: Array = field(default_factory=lambda: np.zeros(0))
    oof: Array = field(default_factory=NO_PREDICTIONS.copy)
    oof_rows: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    run: bytes | None = None

    def value(self, split: str, metric: str) -> float:
        """Return a value that was measured once, at the end."""
        wanted = (None, split, metric)
        found = [v for v in self.values if (v["epoch"], v["split"], v["metric"]) == wanted]
        return float(found[0]["value"])


# The files and folders that jobs read, by name: tokenizer, vectors, bases; or an archive of them,
# for machines that do not have the study's folder.
Inputs = dict[str, str] | bytes


def pack(folders: dict[str, str]) -> bytes:
    """Return an archive of folders and files, each under a name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, place in folders.items():
            archive.add(place, arcname=name)
    return buffer.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Write the content of an archive into a folder."""
    # Plain files inside the folder alone: `extractall(filter="data")` needs Python 3.11.4.
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            place = (folder / member.name).resolve()
            content = opened.extractfile(member) if member.isfile() else None
            if content is not None and place.is_relative_to(folder.resolve()):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.read())


@contextmanager
def local_inputs(inputs: Inputs) -> Iterator[dict[str, str]]:
    """Give the paths on this machine, by name."""
    if isinstance(inputs, dict):
        yield inputs
        return
    with tempfile.TemporaryDirectory(prefix="headstart-") as folder:
        unpack(inputs, Path(folder))
        yield {path.name: str(path) for path in Path(folder).iterdir()}


@dataclass(frozen=True)
class JobContext:
    """What the functions in `FITS` are given."""

    job: Job
    arm: Arm
    config: StudyConfig
    plan: Plan
    rows: Splits[Any]
    task: Task[Any]
    inputs: dict[str, str]
    needed: Sequence[JobResult]
    folder: Path
    report: Callable[..., None] | None


class Fitted(NamedTuple):
    """What the functions in `FITS` return.

    Parameters
    ----------
    predict : returns probabilities (rows, classes), or the scores of a task without classes.
    selection : with the out-of-fold predictions.
    epochs : one row per epoch, for the curves.
    save : writes the run into the context's folder.
    """

    predict: Callable[[Any], Any]
    selection: Selection
    facts: Mapping[str, Any] = MappingProxyType({})
    epochs: Sequence[dict[str, Any]] = ()
    save: Callable[[], object] = lambda: None


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

    Parameters
    ----------
    rows : the training part is the budget.
    task : with the labels of the whole dataset.
    needed : the results of the jobs that this one needs: the members of a stack, or the selection
        that all seeds share.
    report : as `StudyCallback.on_job`; it receives epochs and their validation metrics.
    """
    started = time.monotonic()
    with local_inputs(inputs) as paths, tempfile.TemporaryDirectory(prefix="headstart-") as place:
        context = JobContext(
            job,
            find_arm(job.arm),
            config,
            plan,
            rows,
            task,
            paths,
            needed,
            Path(place) / "run",
            report,
        )
        if job.select:
            found = select_for_network(context)
            facts = {
                "seconds": round(time.monotonic() - started, 3),
                "chosen": found.setting,
                "tries": found.tries,
                "temperature": found.temperature,
            }
            return JobResult(job, facts=facts, oof=found.oof, oof_rows=found.oof_rows)
        fitted = FITS[context.arm.fit](context)
        validation = fitted.predict(rows.validation)
        predicting = time.monotonic()
        test = fitted.predict(rows.test)
        ended = time.monotonic()
        facts = {
            "seconds": round(ended - started, 3),
            "test_seconds": round(ended - predicting, 3),
            "tries": fitted.selection.tries,
            "workers": plan.jobs,  # that ran next to each other while it was timed
            "threads": plan.threads,
            **fitted.facts,
        }
        save = job.labels >= plan.budgets[-1] and job == plan.saved(job)  # it may become `best/`
        if save:
            fitted.save()
        run = None
        if context.folder.is_dir():
            files = [path for path in context.folder.rglob("*") if path.is_file()]
            facts["bytes"] = sum(path.stat().st_size for path in files)
            run = pack({".": str(context.folder)}) if save else None
    return _result(context, fitted, facts, validation, test, run)


def _result(
    context: JobContext,
    fitted: Fitted,
    facts: dict[str, Any],
    validation: Any,
    test: Any,
    run: bytes | None,
) -> JobResult:
    """Measure predictions, and put everything together."""
    task, rows, found = context.task, context.rows, fitted.selection
    values, arrays = _epoch_values(fitted.epochs, task), dict[str, Array]()
    part: Any
    for split, predicted, part in (
        ("validation", validation, rows.validation),
        ("test", test, rows.test),
    ):
        if has_classes(task):
            predicted = np.asarray(predicted, dtype=np.float32)
            measured = classification_metrics(predicted, part.labels)
            name = "probabilities" if split == "test" else "validation_probabilities"
            arrays[name] = predicted
        else:
            measured = task.metrics(predicted, part)
        values += _values(None, split, measured, facts["seconds"])
    if not has_classes(task):
        arrays["scores"] = task.row_scores(test, rows.test)[task.metric].per_row()
    oof = np.asarray(found.oof, dtype=np.float32)
    return JobResult(
        context.job, values, facts, **arrays, oof=oof, oof_rows=found.oof_rows, run=run
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


# Networks


def fit_network(context: JobContext) -> Fitted:
    """Select a setting with the rows of the budget, then fine-tune a network on all of them.

    Another job may have selected the setting for all seeds; without any selection the settings of
    the config are taken as they are. Validation is evaluated for the curves alone.
    """
    config = network_config(context)
    if context.needed:
        (shared,) = context.needed
        named = {name: shared.facts[name] for name in ("tries", "temperature")}
        setting = shared.facts["chosen"]
        found = Selection(setting, **named, oof=shared.oof, oof_rows=shared.oof_rows)
    elif context.config.selection == "none":
        found = Selection({"epochs": config.epochs})
    else:
        found = select_for_network(context)
    final = config.replace(**found.setting, selection_metric="last")
    run = finetune(final, context.folder, splits=context.rows, callbacks=[_Epochs(context)])
    write_task(context.task, run.encoding, context.folder, found.temperature)

    def scores(rows: Any) -> Any:
        evaluated = rows is context.rows.validation  # after the last epoch
        return run.validation_scores if evaluated else run.scores(rows)

    chosen = {"chosen": found.setting, "temperature": found.temperature}
    predict = _predictor(context.task, scores, found)
    return Fitted(predict, found, chosen, run.summary["epochs"])


def _predictor(
    task: Task[Any], scores: Callable[[Any], Any], found: Selection
) -> Callable[[Any], Any]:
    """Return a function that turns rows into probabilities, or into scores without classes."""
    if not has_classes(task):
        return scores
    return lambda rows: at_temperature(scores(rows), found.temperature)


def select_for_network(context: JobContext) -> Selection:
    """Select a setting, and train nothing else."""
    config, plan = network_config(context), context.plan
    fixed = context.config.epochs is not None
    return select_setting(
        config,
        context.rows.train,
        task=context.task,
        settings=settings_to_try(config, plan.tries, fixed=fixed),
        every_fold=plan.every_fold(context.job, context.config),
    )


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
    own = f"{job.objective}-{job.seed % study.bases}"  # seeds take turns with several bases
    base = context.inputs.get(safe_name(arm.name) if arm.is_foreign else own)
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
    estimator: Any = LINEAR_MODELS[task.name][1]
    if arm.estimator:
        module, _, name = arm.estimator.partition(":")
        estimator = getattr(import_module(module), name)
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

    predict = _predictor(task, lambda part: run.scores(part), found)
    facts = {"chosen": {"C": classifier.C_[0]}} if len(classifier.C_) == 1 else {}
    return Fitted(predict, found, facts, save=lambda: _save_classifier(context, run))


def _save_classifier(context: JobContext, run: ClassifierRun) -> None:
    job, study = context.job, context.config
    config = FinetuneConfig(**study.dataset_settings(), seed=job.seed)
    save_arm(run, config, context.rows, context.folder, arm=job.arm)


def fit_trivial(context: JobContext) -> Fitted:
    """Predict without reading: the majority class, the most frequent labels, no entity …"""
    task, train = context.task, context.rows.train
    folds = budget_folds(task, train)
    parts = [[train.pick(rows.tolist()) for rows in (one.train, one.held)] for one in folds]
    scores = [task.trivial(*part)[1] for part in parts]
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
            [one.probabilities if test else one.validation_probabilities for one in members]
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
    """Write a finished job as one file, and its run as an archive before it."""
    if result.run is not None:
        with replacing(run_file(folder, result.job)) as temporary:
            temporary.write_bytes(result.run)
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
        fields: dict[str, Any] = {**json.loads(about), **arrays}
        return JobResult(job, **fields)
    except (TypeError, ValueError) as error:
        raise HeadstartError(f"this job cannot be read: {error}", where=path, fix=fix) from None


def result_file(folder: Path, job: Job) -> Path:
    """Return where the study keeps the result of a job."""
    return folder / "jobs" / f"{job.name}.safetensors"


def run_file(folder: Path, job: Job) -> Path:
    """Return where the study keeps the run of a job, as an archive."""
    return folder / "runs" / f"{job.name}.tar"
