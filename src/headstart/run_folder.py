"""A finished run, opened: its model, its tokenizer and its recipe, checked against each other."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.files import check_format, write_format, write_text
from headstart.model.checkpoint import load_model, save_model
from headstart.model.config import LanguageModelingConfig, MaskedNextSentenceConfig
from headstart.model.model import Model
from headstart.tasks import find_task
from headstart.tasks.examples import Long, TextEncoding
from headstart.tasks.task import Task
from headstart.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

TASK = "task.json"
SUMMARY = "summary.json"
VALIDATION = "validation.safetensors"  # the best epoch's answers for the validation rows


@dataclass(frozen=True)
class Run:
    """What a run folder holds, as plain objects. A pretrained base has no task."""

    folder: Path
    model: Model
    tokenizer: Tokenizer
    task: Task[Any] | None = None
    length: int = 512  # of what the task reads at once
    long: Long = "cut"

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


def open_run(folder: Path) -> Run:
    """Load a run's model and tokenizer; their vocabularies must agree."""
    if not folder.is_dir():
        raise HeadstartError("there is no such run", where=folder, fix="check the path")
    check_format(folder)
    model = load_model(folder).eval()
    tokenizer = load_tokenizer(folder)
    if tokenizer.vocab_size != model.base.config.vocab_size:
        raise HeadstartError(
            f"the tokenizer has {tokenizer.vocab_size:,} pieces, the model "
            f"{model.base.config.vocab_size:,}: they do not belong together",
            where=folder,
        )
    return Run(folder, model, tokenizer, **read_task(folder))


def load(folder: str | Path) -> Run:
    """Open a run of `pretrain` or `finetune` as plain objects: model, tokenizer, task.

    A fine-tuned run predicts with the functions of `headstart.inference.predict`: `predict` for
    classes, `predict_tags` for tags, `predict_spans` for answers in a text, `predict_file` for a
    file of any of them.

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
    return open_run(Path(folder).expanduser())


def save_run(run: Run, folder: Path) -> None:
    """Write what `open_run` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    write_format(folder)
    run.tokenizer.save(folder)
    if run.task is not None:
        write_task(run.task, run.encoding, folder)
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
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        task = find_task(content.pop("task"))(content.pop("labels"))
        return {"task": task, "length": content["length"], "long": content["long"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HeadstartError(f"{TASK} is damaged", where=path) from None


def read_summary(folder: Path) -> dict[str, Any]:
    """What `write_summary` wrote."""
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(summary, dict):
            return summary
    except (OSError, ValueError, RecursionError):
        pass
    raise HeadstartError(
        f"{SUMMARY} is missing or damaged",
        where=path,
        fix="delete it; the same training with --resume writes it again",
    )


def name_place(folder: Path, place: Path) -> None:
    """Let the summary of the run in `folder` name the place that the run is kept in."""
    write_summary({**read_summary(folder), "run": str(place)}, folder)


def write_summary(summary: dict[str, Any], folder: Path) -> None:
    """Write `summary.json`."""
    write_text(folder / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def open_task_run(folder: Path) -> Run:
    """A run of `headstart finetune`."""
    run = open_run(folder)
    if run.task is None:
        raise HeadstartError(
            "this run has no task: it is a base that was not fine-tuned yet",
            where=folder,
            fix=f"fine-tune it: headstart finetune DATASET --base {folder} --out RUN",
        )
    return run


def open_language_model(folder: Path, *, causal: bool, to: str) -> Run:
    """A run that can `to` (write, fill …); if it cannot, the message says why and which can."""
    run = open_run(folder)
    kinds = (LanguageModelingConfig, MaskedNextSentenceConfig)
    if not isinstance(run.model.head_config, kinds):
        raise HeadstartError(
            f"this run has no language-modelling head, so it cannot {to}",
            where=folder,
            fix="name a run of headstart pretrain",
        )
    if causal and not run.causal:
        raise HeadstartError(
            f"a masked base cannot {to}: it was trained to read hidden words off both sides of "
            "them, and has never had to go on from the left side alone",
            where=folder,
            fix="use headstart fill with it, or pretrain with --objective causal",
        )
    if not causal and run.causal:
        raise HeadstartError(
            f"a causal base cannot {to}: the square mask keeps it from seeing what stands to the "
            "right of the gap",
            where=folder,
            fix="use headstart generate with it, or pretrain with --objective masked",
        )
    return run
