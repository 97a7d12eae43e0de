"""Open trained models: a `Run` of any kind predicts, evaluates and explains.

`model.safetensors`, `config.json` and the tokenizer make a base; a run with a task adds
`task.json`, `rows.safetensors`, `summary.json`, `README.md` and the settings of its training. A
linear classifier or a stack has `classifier.safetensors` in place of the network. Opening a run
checks its files against each other and never runs code of it.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from headstart.arms import ARMS
from headstart.checksums import load_arrays, save_arrays
from headstart.config import hf_name
from headstart.data.columns import ReadOptions
from headstart.data.dataset import Splits, as_text, batched
from headstart.data.overlap import text_key
from headstart.data.sources import has_parts
from headstart.data.splits import read_labelled
from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.data.words import find_words
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import HIGHEST, LOWEST
from headstart.files import (
    IDENTITY,
    Form,
    check_finished,
    is_numbers,
    read_object,
    replacing,
    write_json,
)
from headstart.model.checkpoint import load_model, save_model
from headstart.model.model import Model
from headstart.model.presets import preset_of
from headstart.predictions import (
    Predicted,
    check_inputs,
    check_output,
    open_inputs,
    problem_of,
    write_predictions,
)
from headstart.progress import ProgressCallback
from headstart.tasks import find_task
from headstart.tasks.classification import Classification
from headstart.tasks.task import Examples, Long, Output, Prediction, Task, TextEncoding, run_network
from headstart.unlike import FIELD, TrainingTokens

TASK = "task.json"
SUMMARY = "summary.json"
CLASSIFIER = "classifier.safetensors"
EXPORTED = "model.onnx"
ROWS = "rows.safetensors"
# What the values of files must be, by name.
SUMMARY_FORMS: dict[str, Form] = {
    "validation": is_numbers,
    "epochs": lambda value: isinstance(value, list) and all(map(is_numbers, value)),
}
TASK_FORMS: dict[str, Form] = {
    "task": lambda value: isinstance(value, str),
    "labels": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
    "length": lambda value: type(value) is int and 1 <= value <= 131_072,
    "long": lambda value: value in ("truncate", "windows"),
    "temperature": lambda value: isinstance(value, int | float) and LOWEST <= value <= HIGHEST,
}
COPY_AGAIN = "copy the run again, with all of its files"
UNSEEN = -1e4  # the score of a class that training had no row of: its probability is 0

# The kinds of classifiers without a network, by the `kind` that they are saved with.
CLASSIFIERS = {arm.name: arm.estimator for arm in ARMS.values() if arm.estimator} | {
    "tagger": "headstart.baselines.linear:WordTagger"
}
Input = Any  # a text, or a tuple of two texts


@dataclass(frozen=True)
class Effect:
    """Characters `start` up to `end` of a text, and their effect on the log-odds of the label."""

    text: str
    start: int
    end: int
    effect: float
    part: int = 0  # 1: of the second text of a pair


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(ABC):
    """What every command opens and every training returns."""

    folder: Any = field(kw_only=False)  # `None` for a run that was trained in memory
    task: Task[Any] | None = None  # a pretrained base has none
    temperature: float = 1.0  # scores are divided by it before they become probabilities
    summary: dict[str, Any] = field(default_factory=dict)  # the content of `summary.json`
    splits: Any = None  # the rows that `finetune` has read; `None` for a run that was opened
    training_tokens: TrainingTokens | None = None  # of networks that predict classes of one text
    kind: ClassVar[str]  # `network`, `onnx`, or the kind of a classifier

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a network, classifier, stack, export or `hf:NAME`; a subclass, only its own kind."""
        name, folder = hf_name(path), Path(path).expanduser()
        run: Run
        # By their names, because these modules import this one.
        if name is not None:
            run = import_module("headstart.interop.huggingface").open_base(name)
        elif not folder.is_dir():
            check_finished(folder.parent)  # it may be a study's best/
            raise HeadstartError(
                "there is no such run",
                where=folder,
                fix="check the path; headstart pretrain or finetune makes a run",
            )
        elif (folder / EXPORTED).is_file():
            run = import_module("headstart.interop.onnx_run").open_export(folder)
        elif (folder / CLASSIFIER).is_file():
            run = _open_classifier(folder)
        else:
            run = _open_network(folder)
        if not isinstance(run, cls):
            raise HeadstartError(
                f"this run has no network to train: it is of the kind {run.kind!r}",
                where=path,
                fix="use it with headstart predict and headstart evaluate; name another run here",
            )
        return run

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the task's labels; none for a base."""
        return () if self.task is None else self.task.labels

    def require_task(self) -> Task[Any]:
        """Return the task; a base without one is an error that says how to get one."""
        if self.task is None:
            raise HeadstartError(
                "this run has no task: it is a base that was not fine-tuned, or its export",
                where=self.folder,
                fix="fine-tune the base: headstart finetune DATASET --base BASE --out RUN; for "
                "vectors of texts, use HeadstartEmbedder",
            )
        return self.task

    @property
    def explains(self) -> bool:
        """Whether it predicts classes of whole texts, which `explain` needs."""
        return isinstance(self.task, Classification)

    @abstractmethod
    def scores(self, rows: Any, progress: ProgressCallback | None = None) -> Any:
        """Compute the scores of labelled or unlabelled rows of the task, before a temperature."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what `Run.open` needs."""

    def predict(
        self, texts: Sequence[Input], progress: ProgressCallback | None = None
    ) -> list[Prediction]:
        """Predict texts; for the tasks pairs and spans, tuples of two texts. None may be empty.

        By the task, a prediction has `label`, `probability` and `probabilities`; `labels` and
        `probabilities`; `words`, `tags`, `probabilities` and `entities`; or `answer`,
        `probability`, `start` and `end`. Where `training_tokens` is not `None`, it also has
        `unlike_training`: whether the text is unlike the training rows.
        """
        task = self.require_task()
        check_inputs(task, texts)
        if not len(texts):
            return []
        rows = task.unlabelled(texts)
        found = task.predictions(self.scores(rows, progress), rows, self.temperature)
        if self.training_tokens is not None:
            unlike = self.training_tokens.unlike(texts)
            found = [one | {FIELD: flag} for one, flag in zip(found, unlike, strict=True)]
        return found

    def predict_proba(
        self, texts: Sequence[Input], progress: ProgressCallback | None = None
    ) -> NDArray[np.float64]:
        """Compute calibrated probabilities (texts, labels); tags and spans have none."""
        task = self.require_task()
        if not isinstance(task, Classification):
            raise HeadstartError(
                f"this run does not predict a class for a whole text: its task is {task.name}",
                where=self.folder,
                fix="use predict",
            )
        check_inputs(task, texts)
        if not len(texts):
            return np.zeros((0, len(self.labels)))
        return task.probabilities(self.scores(task.unlabelled(texts), progress), self.temperature)

    def predict_file(
        self,
        source: str | Path,
        output: Path,
        options: ReadOptions | None = None,
        progress: ProgressCallback | None = None,
    ) -> dict[str, Any]:
        """Write a prediction for every row of a file, in the suffix's format; return a summary."""
        task, output = self.require_task(), output.expanduser()
        check_output(task, source, output)
        rows = open_inputs(task, source, options or ReadOptions())
        summary: dict[str, Any] = {"rows": 0, "bad_rows": 0, "bad": []}
        more = () if self.training_tokens is None else (FIELD,)
        summary |= dict.fromkeys(more, 0)

        def predicted() -> Iterator[list[Predicted]]:
            for chunk in batched(
                rows, lambda row: len(as_text(row.text)), most=4_000_000, count=1_024
            ):
                given = [row.words or row.text for row in chunk if not row.problem]
                predictions = self.predict(given)
                for name in more:
                    summary[name] += sum(one[name] for one in predictions)
                found = iter(predictions)
                yield [(row, None if row.problem else next(found)) for row in chunk]
                bad = [row for row in chunk if row.problem]
                summary["rows"] += len(chunk)
                summary["bad_rows"] += len(bad)
                summary["bad"] += [{"row": row.number, "error": problem_of(row)} for row in bad]
                del summary["bad"][20:]
                if progress is not None:
                    progress(summary["rows"], None)
            if not summary["rows"]:
                raise HeadstartError("the file holds no rows", where=source)

        with replacing(output) as temporary:
            write_predictions(temporary, output.suffix, task, predicted(), more)
        return {**summary, "output": str(output)}

    def evaluate(self, rows: Any, progress: ProgressCallback | None = None) -> dict[str, Any]:
        """Evaluate on labelled rows, without those that trained the run or selected its weights.

        Returns `rows`, `seen_rows` (how many were dropped; `None` where the run does not know) and
        the task's report: metrics as floats, `intervals`, `classes`, `notes` …
        """
        task = self.require_task()
        rows, seen = drop_seen(task, rows, self.folder)
        report = task.report(self.scores(rows, progress), rows, self.temperature)
        return {"rows": len(rows), "seen_rows": seen, **report}

    def explain(self, text: Input) -> list[Effect]:
        """Compute the effect of every word on the log-odds of the predicted label.

        Each word is removed and the text predicted again ("occlusion"), which unlike gradients uses
        only real texts and works with every model. In long texts several adjacent words are removed
        at once, for at most 200 predictions.
        """
        check_inputs(self.require_task(), [text])
        texts = (text,) if isinstance(text, str) else tuple(text)
        words = [find_words(one) for one in texts]
        size = -(-sum(map(len, words)) // 200) or 1
        places, inputs = list[tuple[int, int, int]](), [text]
        for part, whole in enumerate(texts):
            for first in range(0, len(words[part]), size):
                group = words[part][first : first + size]
                start, end = group[0][0], group[-1][1]
                # An empty text has no prediction: a full stop replaces its only word.
                rest = (whole[:start] + whole[end:]).strip() or "."
                changed = (*texts[:part], rest, *texts[part + 1 :])
                places.append((part, start, end))
                inputs.append(rest if isinstance(text, str) else changed)
        found = self.predict_proba(inputs)
        p = np.clip(found[:, found[0].argmax()], 1e-12, 1 - 1e-12)
        log_odds = np.log(p) - np.log1p(-p)
        return [
            Effect(texts[part][start:end], start, end, float(log_odds[0] - one), part)
            for (part, start, end), one in zip(places, log_odds[1:], strict=True)
        ]


@dataclass(frozen=True, eq=False)
class NetworkRun(Run):
    """A network with its tokenizer; a pretrained base has no task."""

    model: Model
    tokenizer: Tokenizer
    length: int = 512  # tokens that the task reads at once
    long: Long = "truncate"
    plan: dict[str, Any] = field(default_factory=dict)  # of the training that returned it
    validation_scores: Any = None  # of a training for a task
    kind: ClassVar[str] = "network"

    @property
    def encoding(self) -> TextEncoding:
        """How the task's texts become token ids."""
        return TextEncoding(self.tokenizer, self.length, self.long)

    @property
    def causal(self) -> bool:
        """Whether the base has a causal mask."""
        return self.model.base.config.attention == "causal"

    def outputs(self, examples: Examples, progress: ProgressCallback | None = None) -> list[Output]:
        """Compute the head's outputs for each example."""
        return run_network(self.model, examples, progress=progress)

    def scores(self, rows: Any, progress: ProgressCallback | None = None) -> Any:
        task = self.require_task()
        examples = task.encode(rows, self.encoding)
        return task.decode(self.outputs(examples, progress), examples)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(folder)
        if self.task is not None:
            write_task(self.task, self.encoding, folder, self.temperature)
        if self.training_tokens is not None:
            self.training_tokens.save(folder)
        save_model(self.model, folder)


@dataclass(frozen=True, eq=False)
class ClassifierRun(Run):
    """A scikit-learn estimator: TF-IDF, naive Bayes, co-occurrence vectors, a tagger or a stack.

    `classifier` has `scores(texts)`, `classes_` (the numbers of the labels that its training rows
    had), `kind`, `write(folder)` and `read(folder, arrays, settings)`.
    """

    classifier: Any

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The kind of its classifier."""
        return str(self.classifier.kind)

    def scores(self, rows: Any, progress: ProgressCallback | None = None) -> Any:
        found = self.classifier.scores(rows.words if hasattr(rows, "words") else rows.texts)
        if progress is not None:
            progress(len(rows), len(rows))
        return over_all_labels(found, self.classifier.classes_, len(self.labels))

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        arrays, settings = self.classifier.write(folder)
        about = {
            "kind": self.kind,
            "task": self.require_task().name,
            "labels": self.labels,
            "temperature": self.temperature,
            "settings": settings,
        }
        # Last: with it, the folder is a run.
        with replacing(folder / CLASSIFIER) as temporary:
            save_arrays(arrays, temporary, json.dumps(about))


def over_all_labels(scores: Any, columns: NDArray[np.int64], count: int) -> Any:
    """Return scores of all labels (rows, count), very low for those that training had no row of."""
    if isinstance(scores, list):
        return [over_all_labels(one, columns, count) for one in scores]
    every = np.full((len(scores), count), UNSEEN)
    every[:, columns] = scores
    return every


def load(folder: str | Path) -> Run:
    """Open a run of `pretrain` or `finetune`, the best of a study, or an export.

    Examples
    --------
    >>> import tempfile
    >>> from headstart import HeadstartClassifier, load
    >>> tiny = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> arm = HeadstartClassifier(epochs=1, **tiny, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> arm.fit(["yes", "oh yes", "no", "oh no"], [1, 1, 0, 0]).save(folder)
    >>> run = load(folder)
    >>> run.labels
    ('0', '1')
    >>> [found["label"] in run.labels for found in run.predict(["oh yes", "oh no"])]
    [True, True]
    """
    return Run.open(folder)


def _open_network(folder: Path) -> NetworkRun:
    model = load_model(folder).eval()
    tokenizer = load_tokenizer(folder)
    tokens = model.base.config.vocab_size - model.base.config.vocab_padding
    saved = read_object(folder / IDENTITY, fix=COPY_AGAIN, default={}).get("tokenizer")
    if tokenizer.vocab_size != tokens or saved not in (None, tokenizer.fingerprint):
        raise HeadstartError(
            "the tokenizer is not the one that this run was trained with",
            where=folder,
            fix=COPY_AGAIN,
        )
    run = NetworkRun(folder, model, tokenizer, summary=read_summary(folder, default={}))
    if not (folder / TASK).is_file():
        return run
    content = read_object(folder / TASK, fix=COPY_AGAIN, needs=TASK_FORMS, forms=TASK_FORMS)
    task = find_task(content.pop("task"))(content.pop("labels"))
    wanted, found = task.head(preset_of(model.base.config), None), model.head_config
    outputs = [getattr(one, "classes", getattr(one, "tags", None)) for one in (wanted, found)]
    if type(wanted) is not type(found) or outputs[0] != outputs[1]:
        raise HeadstartError(
            f"{TASK} says {task.name} with {len(task.labels)} labels, and the model has another "
            "head: they do not belong together",
            where=folder / TASK,
            fix=COPY_AGAIN,
        )
    counted = TrainingTokens.open(folder, tokenizer)
    return replace(run, task=task, training_tokens=counted, **content)


def _open_classifier(folder: Path) -> ClassifierRun:
    arrays, about = load_arrays(folder / CLASSIFIER, fix=COPY_AGAIN)
    try:
        content = json.loads(about)
        task: Any = find_task(content["task"])(list(map(str, content["labels"])))
        estimator = resolve_name(CLASSIFIERS[content["kind"]])
        classifier = estimator.read(folder, arrays, content["settings"])
        if not np.isin(classifier.classes_, np.arange(len(task.labels))).all():
            raise ValueError("it scores classes that have no label")
        if not TASK_FORMS["temperature"](content["temperature"]):
            raise ValueError("its temperature is not a number in the range")
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise HeadstartError(
            f"this classifier is damaged: {error}", where=folder, fix=COPY_AGAIN
        ) from None
    summary, temperature = read_summary(folder, default={}), content["temperature"]
    return ClassifierRun(folder, classifier, task=task, temperature=temperature, summary=summary)


def write_task(
    task: Task[Any], encoding: TextEncoding, folder: Path, temperature: float = 1.0
) -> None:
    """Write `task.json`: the information about the task that predictions need."""
    content = {
        "task": task.name,
        "labels": task.labels,
        "length": encoding.length,
        "long": encoding.long,
        "temperature": temperature,
    }
    write_json(folder / TASK, content)


def write_summary(summary: dict[str, Any], folder: Path) -> None:
    """Write `summary.json`."""
    write_json(folder / SUMMARY, summary)


def read_summary(folder: Path, **how: Any) -> dict[str, Any]:
    """Read `summary.json`; `how` are further arguments of `files.read_object`."""
    fix = "delete it; the same training with --resume writes it again"
    return read_object(folder / SUMMARY, fix=fix, forms=SUMMARY_FORMS, **how)


def write_rows(splits: Splits[Any], folder: Path) -> None:
    """Save a 64-bit hash of each row that was used for training or selection."""
    hashes = {"train": _hashes(splits.train), "validation": _hashes(splits.validation)}
    with replacing(folder / ROWS) as temporary:
        save_arrays(hashes, temporary)


def _hashes(rows: Any) -> NDArray[np.uint64]:
    """Hash rows to 64 bits each; case, spacing and Unicode form do not matter."""
    return np.array([int.from_bytes(text_key(one)[:8]) for one in rows.keys], dtype=np.uint64)


def seen_rows(
    rows: Any, folder: Path, roles: Sequence[str] = ("train", "validation")
) -> NDArray[np.int64] | None:
    """Find the rows, from 0, that were used for training or selection; `None` if not known."""
    path = folder / ROWS
    if not path.is_file():
        return None
    fix = "copy the run again, or delete the file and evaluate on other texts only"
    try:
        saved, _ = load_arrays(path, fix=fix)
        known = np.concatenate([saved[role] for role in roles])
    except (KeyError, ValueError):
        raise HeadstartError(
            f"{ROWS} is damaged: which rows trained the run is not known", where=path, fix=fix
        ) from None
    return np.flatnonzero(np.isin(_hashes(rows), known))


def drop_seen(task: Task[Any], rows: Any, folder: Path | None) -> tuple[Any, int | None]:
    """Drop the rows that trained a run or selected its weights; also return how many they are."""
    seen = None if folder is None else seen_rows(rows, folder)
    if seen is None or folder is None:
        return rows, None
    others = np.setdiff1d(np.arange(len(rows)), seen)
    if len(rows) and not len(others):
        raise HeadstartError(
            f"all of these {len(rows):,} {task.row_name} were used to train the run or to "
            "select its weights",
            where=folder,
            fix="name a file with labelled texts that the run has not seen",
            code="seen-rows",
        )
    return rows.pick(others.tolist()), len(seen)


def evaluation_rows(
    config: Any,
    task: Task[Any],
    dataset: str | None = None,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Any, str]:
    """Read and describe the rows to evaluate a run on: a test part, or all rows of a file."""
    sources = config.dataset if dataset is None else [dataset]
    own, name = sources == config.dataset, ", ".join(sources)
    how: dict[str, Any] = {
        "text_column": text_column or config.text_column or None,
        "second_column": config.second_column or None,
        "label_column": label_column or config.label_column or None,
        "progress": progress,
    }
    if own:
        splits = task.read(sources, **{**config.read_options(), **how})
    elif has_parts(name):
        splits = task.read(sources, encoding=config.encoding, seed=config.split_seed, **how)
    else:
        how["encoding"] = config.encoding
        rows = read_labelled(name, task.labels, task=task.name, **how)
        return task.match_labels(rows, name), name
    if splits.test is None:
        raise HeadstartError(
            "the dataset has no test part to evaluate on",
            where=name,
            fix="name a file with labelled texts that the run has not seen",
        )
    which = f"the test file {config.test}" if own and config.test else f"the test part of {name}"
    return task.match_labels(splits.test, name), which
