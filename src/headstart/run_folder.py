"""A finished run, opened: its model, its tokenizer and its recipe, checked against each other."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from headstart.base_source import source_of
from headstart.errors import HeadstartError
from headstart.files import (
    FORMAT_FILE,
    IDENTITY,
    Form,
    check_format,
    is_numbers,
    is_table,
    read_object,
    write_format,
    write_text,
)
from headstart.model.checkpoint import load_model, save_model
from headstart.model.model import Model
from headstart.model.presets import preset_of
from headstart.progress import ProgressCallback
from headstart.settings import bound_problem
from headstart.tasks import find_task
from headstart.tasks.classifier_run import CLASSIFIER, open_classifier
from headstart.tasks.examples import Long, TextEncoding
from headstart.tasks.opened_run import Contribution, OpenedRun, RunAnswers
from headstart.tasks.run_network import run_network
from headstart.tasks.task import Task
from headstart.tasks.temperature import read_temperature, write_temperature
from headstart.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

TASK = "task.json"
SUMMARY = "summary.json"
SUMMARY_FORMS: dict[str, Form] = {"validation": is_numbers, "cut": is_numbers, "epochs": is_table}


@dataclass(frozen=True)
class Run:
    """The folder of a network, as plain objects. A pretrained base has no task."""

    folder: Path
    model: Model
    tokenizer: Tokenizer
    task: Task[Any] | None = None
    length: int = 512  # of what the task reads at once
    long: Long = "cut"
    temperature: float = 1.0

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the task's answers."""
        return () if self.task is None else self.task.labels

    @property
    def encoding(self) -> TextEncoding:
        """How the task's texts become ids."""
        return TextEncoding(self.tokenizer, self.length, self.long)

    @property
    def causal(self) -> bool:
        return self.model.base.config.attention == "causal"

    def answers(self, part: Any, *, progress: ProgressCallback | None = None) -> RunAnswers:
        """One answer per row of the task's rows."""
        assert self.task is not None
        examples = self.task.encode(part, self.encoding)
        outputs = run_network(self.model, examples, progress=progress)
        return RunAnswers(self.task.join(outputs, examples), examples.cut)

    def contributions(self, text: str, column: int) -> list[Contribution] | None:
        """A network's answer is no sum over words."""
        return None

    def facts(self) -> dict[str, Any]:
        """Its kind and its sizes in plain values."""
        parameters = sum(one.numel() for one in self.model.parameters())
        return {"kind": "network", "parameters": parameters, "width": self.model.base.config.width}

    def save(self, folder: Path) -> None:
        """Write what `open_run` reads."""
        save_run(self, folder)


EXPORTED = "model.onnx"


def open_any_run(folder: Path) -> OpenedRun:
    """A run of any kind: a network, a linear classifier, a stack, an export to ONNX."""
    if (folder / EXPORTED).is_file():
        # By its name, because what reads exports stands above the runs that they are made of.
        reader = import_module("headstart.interop.onnx.exported_run")
        exported: OpenedRun = reader.open_export(folder)
        return exported
    return open_classifier(folder) if (folder / CLASSIFIER).is_file() else open_run(folder)


def open_run(folder: Path) -> Run:
    """Load a network's weights and tokenizer (also of `hf:PATH`); their sizes must agree."""
    found = source_of(folder)
    if found is not None:
        return found[0].open(found[1])
    if not folder.is_dir():
        raise HeadstartError("there is no such run", where=folder, fix="check the path")
    _refuse_a_study(folder)
    if (folder / CLASSIFIER).is_file():
        kind = read_object(folder / CLASSIFIER, fix="copy the run again").get("kind")
        raise HeadstartError(
            f"this run has no network: it is a classifier of the kind {kind!r}",
            where=folder,
            fix="use it with headstart predict and headstart evaluate; name another run here",
        )
    if (folder / EXPORTED).is_file():
        raise HeadstartError(
            "this is an export to ONNX: it predicts and is evaluated, but has no weights to train",
            where=folder,
            fix="name the run that it was made of",
        )
    check_format(folder)
    model = load_model(folder).eval()
    tokenizer = load_tokenizer(folder)
    pieces = model.base.config.vocab_size - model.base.config.vocab_padding
    if tokenizer.vocab_size != pieces:
        raise HeadstartError(
            f"the tokenizer has {tokenizer.vocab_size:,} pieces, the model {pieces:,}: "
            "they do not belong together",
            where=folder,
        )
    _check_tokenizer(tokenizer, folder)
    kept = read_task(folder)
    if "task" in kept:
        _check_head(kept["task"], model, folder)
        if kept["long"] == "windows" and not (folder / FORMAT_FILE).is_file():
            raise HeadstartError(
                "an older version of Headstart fine-tuned this run, which averaged the scores of a "
                "text's windows; they are pooled now, and its answers would differ",
                where=folder,
                fix="fine-tune it again",
            )
    task = kept.get("task")
    temperature = 1.0 if task is None else read_temperature(task, folder)
    return Run(folder, model, tokenizer, **kept, temperature=temperature)


def _refuse_a_study(folder: Path) -> None:
    """A study is no run itself: it holds some."""
    if not (folder / "trainings").is_dir() or (folder / TASK).is_file():
        return
    runs = [folder / "best"] if (folder / "best").is_dir() else []
    runs += sorted((folder / "bases").glob("*"))
    listed = ", ".join(map(str, runs))
    raise HeadstartError(
        "this is a study, not a run",
        where=folder,
        fix=f"name a run inside it: {listed}" if runs else "its trainings have not ended yet",
    )


def _check_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Refuse the tokenizer of another run: it may be as large, and mean other words."""
    path = folder / IDENTITY
    if not path.is_file():
        return
    saved = read_object(path, fix="copy the run again").get("tokenizer")
    if saved is not None and saved != tokenizer.fingerprint:
        raise HeadstartError(
            "the tokenizer is not the one that this run was trained with",
            where=folder,
            fix="copy the run again, with all of its files",
        )


def _check_head(task: Task[Any], model: Model, folder: Path) -> None:
    """Refuse a task.json that does not belong to the weights."""
    wanted, found = task.head(preset_of(model.base.config), None), model.head_config
    sizes = [getattr(one, "classes", getattr(one, "tags", None)) for one in (wanted, found)]
    if type(wanted) is not type(found) or sizes[0] != sizes[1]:
        has = "no head" if found is None else f"a head for {found.kind}"
        has += "" if sizes[1] is None else f" with {sizes[1]} answers"
        raise HeadstartError(
            f"{TASK} says {task.name} with {len(task.labels)} labels, and the model has {has}: "
            "they do not belong together",
            where=folder / TASK,
            fix="copy the run again, with all of its files",
        )


def load(folder: str | Path) -> Any:
    """Open a run of `pretrain` or `finetune`, or the best of a study.

    A network (`Run`) has a model, a tokenizer and a task; the other kinds have at least what
    `headstart.tasks.opened_run.OpenedRun` lists. A run with a task predicts with the functions of
    `headstart.inference.predict`: `predict` for classes, `predict_tags` for tags, `predict_spans`
    for answers in a text, `predict_file` for a file of any of them.

    >>> import tempfile
    >>> from headstart import HeadstartClassifier, load
    >>> tiny = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> arm = HeadstartClassifier(epochs=1, settings=tiny, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> arm.fit(["yes", "oh yes", "no", "oh no"], [1, 1, 0, 0]).save(folder)
    >>> run = load(folder)
    >>> run.labels
    ('0', '1')
    >>> run.model.base.config.width, run.tokenizer.vocab_size <= 300
    (16, True)
    >>> from headstart.inference.predict import predict
    >>> [answer.label in run.labels for answer in predict(run, ["oh yes", "oh no"])]
    [True, True]
    """
    return open_any_run(Path(folder).expanduser())


def save_run(run: Run, folder: Path) -> None:
    """Write what `open_run` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    write_format(folder)
    run.tokenizer.save(folder)
    if run.task is not None:
        write_task(run.task, run.encoding, folder)
        write_temperature(run.temperature, folder)
    save_model(run.model, folder)


def write_task(task: Task[Any], encoding: TextEncoding, folder: Path) -> None:
    """Keep what is needed to predict with the run later."""
    content = {
        "task": task.name,
        "labels": task.labels,
        "length": encoding.length,
        "long": encoding.long,
    }
    write_text(folder / TASK, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_task(folder: Path) -> dict[str, Any]:
    """What `write_task` kept; nothing for a pretrained base."""
    path = folder / TASK
    if not path.is_file():
        return {}
    again = "copy the run again"
    content = read_object(path, fix=again)
    name, labels = content.get("task"), content.get("labels")
    length, long = content.get("length"), content.get("long")
    if (
        not isinstance(name, str)
        or not isinstance(labels, list)
        or not all(isinstance(label, str) for label in labels)
        or not isinstance(length, int)
        or bound_problem("length", length, smallest=1)
        or long not in ("cut", "windows")
    ):
        raise HeadstartError(f"{TASK} is damaged", where=path, fix=again)
    return {"task": find_task(name)(labels), "length": length, "long": long}


def read_summary(folder: Path, *, needs: Collection[str] = ()) -> dict[str, Any]:
    """What `write_summary` wrote; without what the caller `needs` it is damaged."""
    again = "delete it; the same training with --resume writes it again"
    return read_object(folder / SUMMARY, fix=again, needs=needs, forms=SUMMARY_FORMS)


def is_unfinished(folder: Path) -> bool:
    """Whether a training began here that has not ended: it has a recipe and no summary."""
    return (folder / "recipe.toml").is_file() and not (folder / SUMMARY).is_file()


def name_place(folder: Path, place: Path) -> None:
    """Let the summary of the run in `folder` name the place that the run is kept in."""
    write_summary({**read_summary(folder), "run": str(place)}, folder)


def write_summary(summary: dict[str, Any], folder: Path) -> None:
    """Write `summary.json`."""
    write_text(folder / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def open_task_run(folder: Path) -> OpenedRun:
    """A run that predicts: of `headstart finetune`, or the best of a study."""
    run = open_any_run(folder)
    if run.task is None:
        raise HeadstartError(
            "this run has no task: it is a base that was not fine-tuned yet",
            where=folder,
            fix=f"fine-tune it: headstart finetune DATASET --base {folder} --out RUN",
        )
    return run
