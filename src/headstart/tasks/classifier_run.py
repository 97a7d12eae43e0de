"""Classifiers without a network of their own as runs: `classifier.json` names the kind.

The kind is looked up in a registry, its class reads the arrays beside the file. Nothing in them is
code, and each file's hash is kept, so that one of another run is noticed.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from headstart.errors import HeadstartError
from headstart.files import check_format, read_object, write_format, write_text
from headstart.progress import ProgressCallback
from headstart.registry import Registry
from headstart.tasks import find_task
from headstart.tasks.classification import Classification
from headstart.tasks.opened_run import Contribution, OpenedRun, RunAnswers
from headstart.tasks.temperature import read_temperature, write_temperature
from headstart.text.reading.dataset import Dataset
from headstart.text.tokenizers.tokenizer import hash_of

CLASSIFIER = "classifier.json"
UNSEEN = -1e4  # the score of a class that training had no row of: its probability is 0
AGAIN = "copy the run again, with all of its files"


class TextScorer(ABC):
    """Texts to one score (a logit) per class, and the files that this is kept in.

    `classes_` are the class numbers of the columns: those that the training rows had.
    """

    kind: ClassVar[str]
    classes_: NDArray[Any]

    @abstractmethod
    def scores(
        self, texts: Sequence[str], *, progress: ProgressCallback | None = None
    ) -> NDArray[np.float64]:
        """(texts, classes) whose softmax are the probabilities."""

    @abstractmethod
    def write(self, folder: Path) -> tuple[dict[str, Any], list[Path]]:
        """Write arrays and words into `folder`: settings for `read`, and the files written."""

    @classmethod
    @abstractmethod
    def read(cls, folder: Path, settings: dict[str, Any]) -> Self:
        """Read what `write` wrote; a KeyError, TypeError or ValueError says that it is damaged."""

    def contributions(self, text: str, column: int) -> list[Contribution] | None:
        """What each word adds to the score of a class over the others, where that is a sum."""
        return None

    def facts(self) -> dict[str, Any]:
        """Sizes in plain values."""
        return {}


SCORERS: Registry[type[TextScorer]] = Registry(
    "kind of classifier",
    group="headstart.classifiers",
    base=TextScorer,
    built_in={
        "tfidf": "headstart.baselines.tfidf:TfidfClassifier",
        "nb": "headstart.baselines.nb:NaiveBayesClassifier",
        "cooccurrence": "headstart.baselines.cooccurrence:CooccurrenceClassifier",
        "stack": "headstart.baselines.stack_run:StackScorer",
    },
    of_classes=True,
)


@dataclass(frozen=True)
class ClassifierRun:
    """A classifier of one of the registered kinds, opened from (or for) a folder."""

    folder: Path
    task: Classification
    scorer: TextScorer
    temperature: float = 1.0

    @property
    def labels(self) -> tuple[str, ...]:
        return self.task.labels

    def answers(self, part: Dataset, *, progress: ProgressCallback | None = None) -> RunAnswers:
        own = self.scorer.scores(part.texts, progress=progress)
        spread = np.full((len(own), len(self.labels)), UNSEEN)
        spread[:, self.scorer.classes_] = own
        return RunAnswers(spread)

    def contributions(self, text: str, column: int) -> list[Contribution] | None:
        columns = self.scorer.classes_.tolist()
        return self.scorer.contributions(text, columns.index(column)) if column in columns else []

    def facts(self) -> dict[str, Any]:
        return {"kind": self.scorer.kind, **self.scorer.facts()}

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_format(folder)
        settings, files = self.scorer.write(folder)
        write_temperature(self.temperature, folder)
        content = {
            "kind": self.scorer.kind,
            "task": self.task.name,
            "labels": self.labels,
            "settings": settings,
            "files": {path.name: hash_of(path.read_bytes()) for path in files},
        }
        # Last: with it, the folder is a run.
        write_text(folder / CLASSIFIER, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def open_classifier(folder: Path) -> OpenedRun:
    """Read a folder with a `classifier.json`; whatever is damaged is one clear error."""
    check_format(folder)
    path = folder / CLASSIFIER
    content = read_object(path, fix=AGAIN)
    kind = content.get("kind")
    scorer = SCORERS.get(kind) if isinstance(kind, str) else None
    if scorer is None:
        raise HeadstartError(
            f"unknown kind of classifier {kind!r}; there are {', '.join(SCORERS.entries())}",
            where=path,
            fix="install the package that brings it, or copy the run again",
        )
    try:
        _check_files(folder, content["files"])
        labels = [str(name) for name in content["labels"]]
        task: Any = find_task(content["task"])(labels)
        found = scorer.read(folder, content["settings"])
        if not np.isin(found.classes_, np.arange(len(labels))).all():
            raise ValueError("it scores classes that have no label")
    except (KeyError, TypeError, ValueError, AttributeError, OSError, SafetensorError) as error:
        raise HeadstartError(
            f"this {kind} classifier is damaged: {error}", where=folder, fix=AGAIN
        ) from None
    return ClassifierRun(folder, task, found, read_temperature(task, folder))


def _check_files(folder: Path, files: dict[str, str]) -> None:
    for name, wanted in files.items():
        if Path(name).name != name:
            raise ValueError(f"{name} is not in the folder")
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
        if hash_of((folder / name).read_bytes()) != wanted:
            raise ValueError(f"{name} is not the file that was saved")
