"""What a training is given: its rows, the study's files, and what other trainings have shared."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headstart.data.dataset import Dataset, Splits, as_text
from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.folds import Fold, make_folds
from headstart.studies.arms.arm import Arm, HeldOutPart
from headstart.studies.outcomes import Outcome, RunKey, read_training, training_name
from headstart.studies.recipe import StudyRecipe
from headstart.studies.study_task import take_rows, task_of
from headstart.tasks.classification import Classification
from headstart.tasks.examples import Examples, TextEncoding
from headstart.tasks.task import Task

OnEpoch = Callable[[RunKey, int, float], None]  # a run, its epoch, its validation accuracy


def ignore(*event: object) -> None:
    """Receives any event and does nothing."""


@dataclass(frozen=True)
class StudyContext:
    """What every training of a study shares. It is sent to each worker process once."""

    folder: Path
    recipe: StudyRecipe
    splits: Splits[Any]
    epochs: dict[int, int]  # of each budget, usually
    tries: int = 1  # settings that a network tries
    bases: dict[str, list[str]] = field(default_factory=dict)  # objective -> run folders
    tokenizer: str = ""
    vectors: str = ""
    threads: int = 1
    arms: tuple[Arm, ...] = ()  # as objects: a worker may not know those registered at run time
    encoded: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def stacks(self) -> bool:
        """Whether an arm of the study joins others."""
        return self.recipe.has_need("arms")

    def for_run(self, run: RunKey, on_epoch: OnEpoch = ignore) -> "ArmContext":
        """The context of one training."""
        return ArmContext(self, run, on_epoch)

    @cached_property
    def task(self) -> Task[Any]:
        """The study's task, with the labels of all training rows."""
        return task_of(self.recipe.task, self.splits.train)

    @property
    def reads_whole_texts(self) -> bool:
        """Whether a row is one text, so that its ids serve every arm."""
        return isinstance(self.task, Classification) and self.task.texts_per_row == 1

    def run_folder(self, run: RunKey) -> Path:
        return self.folder / "runs" / training_name(run)

    def ids(self, tokenizer: Tokenizer, part: HeldOutPart) -> list[Any]:
        """The token ids of a held-out part: tokenized once for each tokenizer."""
        key = ("ids", tokenizer.fingerprint, part)
        if key not in self.encoded:
            self.encoded[key] = tokenizer.encode_arrays(list(map(as_text, self._part(part).texts)))
        found: list[Any] = self.encoded[key]
        return found

    def examples(self, encoding: TextEncoding, part: HeldOutPart) -> Examples:
        """A held-out part as a network reads it, from the same ids."""
        key = ("examples", encoding.tokenizer.fingerprint, part, encoding.length, encoding.long)
        if key not in self.encoded:
            rows = self._part(part)
            if self.reads_whole_texts:
                ids = self.ids(encoding.tokenizer, part)
                remembered: Any = _Remembered(encoding.tokenizer, rows.texts, ids)
                encoding = replace(encoding, tokenizer=remembered)
            self.encoded[key] = self.task.encode(rows, encoding)
        found: Examples = self.encoded[key]
        return found

    def _part(self, part: HeldOutPart) -> Dataset:
        found = self.splits.validation if part == "validation" else self.splits.test
        assert found is not None
        return found


@dataclass(frozen=True)
class ArmContext:
    """One training of a study: which one, on which rows, beside which files."""

    study: StudyContext
    run: RunKey
    on_epoch: OnEpoch = ignore

    @cached_property
    def splits(self) -> Splits[Any]:
        """The rows of the run's budget and seed: the same for every arm, nested in larger ones."""
        whole = self.study.splits
        rows = take_rows(self.task, whole.train, str(self.run.labels), self.run.seed)
        return Splits(rows, whole.validation, whole.test)

    @property
    def task(self) -> Task[Any]:
        return self.study.task

    @property
    def has_all_rows(self) -> bool:
        """Whether the budget is every training row, the same ones for every seed."""
        return len(self.splits.train) == len(
            take_rows(self.task, self.study.splits.train, "all", 0)
        )

    def own_folds(self) -> list[Fold]:
        """Folds of the run's own rows, by their content: the same ones for arms that share rows."""
        train = self.splits.train
        rows = zip(train.texts, train.labels, strict=True)
        order = np.array([row for _, row in sorted((one, row) for row, one in enumerate(rows))])
        labels = np.asarray(train.labels)[order]
        return [
            Fold(np.sort(order[fold.train]), np.sort(order[fold.held]))
            for fold in make_folds(labels)
        ]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The study's own tokenizer, trained on its corpus or its training texts."""
        return load_tokenizer(self.study.tokenizer)

    @property
    def base(self) -> str | None:
        """The folder of the base that this training starts from; several bases take turns."""
        found = self.study.bases.get(self.run.objective)
        return found[self.run.seed % len(found)] if found else None

    @property
    def folder(self) -> Path:
        """Where the training keeps its checkpoints, and its model if it may be the best one."""
        return self.study.run_folder(self.run)

    @property
    def may_be_best(self) -> bool:
        """Whether the training has the study's largest budget, whose runs are kept to the end."""
        return self.run.labels == max(self.study.epochs)

    @property
    def label_names(self) -> tuple[str, ...]:
        return self.splits.train.label_names

    def report_epoch(self, epoch: int, accuracy: float) -> None:
        """Tell the study how the training is going."""
        self.on_epoch(self.run, epoch, accuracy)

    def outcome(self, run: RunKey) -> Outcome:
        """What another training of the study, which is finished, came to."""
        return read_training(self.study.folder, run)


class _Remembered:
    """A tokenizer that knows the ids of these texts already."""

    def __init__(self, tokenizer: Tokenizer, texts: list[str], ids: list[Any]) -> None:
        self._tokenizer = tokenizer
        self._ids = dict(zip(texts, ids, strict=True))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode_arrays(self, texts: list[str]) -> list[Any]:
        return [self._ids[text] for text in texts]
