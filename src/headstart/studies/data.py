"""The data of a study: labelled parts, the corpus without held-out texts, and warnings."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headstart.config import PretrainConfig
from headstart.data.corpus import Corpus, read_corpus
from headstart.data.dataset import Dataset, Splits
from headstart.data.inspect import NO_TEST_PART, inspect_data
from headstart.data.overlap import OverlapKind, text_key
from headstart.data.tokenizers import hash_of
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.studies.recipe import DEFAULT_LABELS, StudyRecipe, arms_without_corpus
from headstart.studies.study_task import has_classes, take_rows, task_of
from headstart.tasks import find_task
from headstart.tasks.task import Task
from headstart.training.corpus import open_corpus

FEW_TEST_ROWS = 100
LEAST_OWN_BYTES = 4_096  # of training texts, to be pretrained on: some rows of 128 tokens


@dataclass(frozen=True)
class StudyData:
    """What a study reads: labelled parts, the corpus, and the label budgets."""

    splits: Splits[Any]
    test: Any  # rows of the task
    corpus: Corpus | None  # without validation and test rows, and with the training texts
    left_out: dict[OverlapKind, int]  # documents of the corpus, by how they hold a held-out text
    warnings: list[str]
    budgets: list[int]
    task: Task[Any]

    @property
    def overlap_dropped(self) -> int:
        return sum(self.left_out.values())

    @property
    def identity(self) -> dict[str, str]:
        parts = [_content(part) for part in self.splits.parts().values()]
        identity = {"dataset": hash_of(json.dumps(parts).encode())}
        if self.corpus is not None:
            identity["corpus"] = self.corpus.fingerprint
        return identity


def read_data(recipe: StudyRecipe, stages: Callable[[str], ProgressCallback]) -> StudyData:
    """Read and check everything; nothing is written."""
    stage = stages("reading the dataset")
    how = recipe.read_options()
    splits: Any = find_task(recipe.task).read(recipe.dataset, **how, progress=stage)
    task = task_of(recipe.task, splits.train)
    notes = list(splits.notes)
    shared = splits.test is None and recipe.selection == "none"
    if shared:
        splits = replace(splits, test=splits.validation)
        notes.append(
            f"there is no test part: the validation part, {len(splits.validation):,} rows, is "
            "reported on: it chooses no setting, only which arm is kept (--test FILE)"
        )
    elif splits.test is None:
        splits = _with_test(task, splits, recipe.split_seed)
        assert splits.test is not None
        notes.append(
            f"there is no test part: half of the validation part, {len(splits.test):,} rows, "
            "became one (--test FILE)"
        )
    assert splits.test is not None
    budgets = find_budgets(recipe, splits.train, task)
    _check_parts(splits)
    if len(splits.test) < FEW_TEST_ROWS:
        notes.append(
            f"the test part has only {len(splits.test):,} rows: each of them is "
            f"{100 / len(splits.test):.1f} points of {_spoken(task.metric)}"
        )
    held_out = [text for part in (splits.validation, splits.test) for text in task.texts(part)]
    corpus = None
    if recipe.corpus:
        whole = read_corpus(
            recipe.corpus,
            encoding=recipe.encoding,
            documents=recipe.documents,
        )
        corpus = whole.without(held_out)
    different = replace(splits, test=None) if shared else splits
    found = inspect_data(different, corpus, progress=stages("looking at the data"))
    left_out = dict(corpus.overlapping or {}) if corpus is not None else {}
    if corpus is not None and recipe.task_text:
        corpus = corpus.with_task_text(task.texts(splits.train))
    if recipe.uses_own_texts:
        name = f"the training texts of {splits.train.name}"
        corpus = Corpus(name).without(held_out)
        corpus = corpus.with_task_text(task.texts(splits.train))
        if sum(len(text.encode()) for text in corpus.task_text) < LEAST_OWN_BYTES:
            raise HeadstartError(
                f"there is no corpus, and {name}, {len(corpus.task_text):,} of them, are too "
                "little text to pretrain on",
                fix="give text without labels with --corpus FILE, or choose --arms "
                f"{arms_without_corpus()}",
                code="no-corpus",
            )
        notes.append(
            f"no corpus was given: {name}, {len(corpus.task_text):,} of them, are the corpus, "
            "without their labels"
        )
    if recipe.base:
        notes += _seen_by_base(Path(recipe.base), held_out)
    warnings = [*notes, *(one for one in found.warnings if not (shared and one == NO_TEST_PART))]
    return StudyData(splits, splits.test, corpus, left_out, warnings, budgets, task)


def _content(part: Any) -> list[Any]:
    """What a part holds, as plain values."""
    if isinstance(part, Dataset):
        return [part.texts, part.labels]
    apart = ("name", "dropped", "rows", "files")
    return [value for name, value in vars(part).items() if name not in apart]


def _spoken(metric: str) -> str:
    return metric.replace("_", "-").replace("f1", "F1")


def find_budgets(recipe: StudyRecipe, train: Any, task: Task[Any] | None = None) -> list[int]:
    """The numbers of labelled rows, ascending; the usual ones as far as there are rows."""
    task = task or task_of(recipe.task, train)
    least = 2 * len(task.labels) if has_classes(task) else 2
    if recipe.labels:
        budgets = sorted({len(take_rows(task, train, budget, 0)) for budget in recipe.labels})
        if not has_classes(task) and budgets[0] < least:
            raise HeadstartError(
                f"a budget of {budgets[0]} is too small for a study of {task.row_name}: one row "
                "trains, and another one chooses the epoch",
                fix=f"give --labels {least} or more",
            )
        return budgets
    rows = len(take_rows(task, train, "all", 0))
    usual = [int(n) for n in DEFAULT_LABELS if n.isdigit()]
    return [n for n in usual if least <= n < rows] + [rows]


def _with_test(task: Task[Any], splits: Splits[Any], seed: int) -> Splits[Any]:
    """Half of validation becomes the test part; training rows stay as they were given."""
    part = splits.validation
    if len(part) < (2 * len(task.labels) if has_classes(task) else 2):
        raise HeadstartError(
            f"there is no test part, and the {len(part):,} validation rows are too few to share",
            fix="give one with --test FILE",
        )
    test = take_rows(task, part, "50%", seed)
    taken = set(task.row_texts(test))
    rest = task.pick(
        part, [row for row, text in enumerate(task.row_texts(part)) if text not in taken]
    )
    return replace(splits, validation=rest, test=test)


def _check_parts(splits: Splits[Any]) -> None:
    for name, part in splits.parts().items():
        if not len(part):
            raise HeadstartError(
                f"the {name} part has no rows: there are too few texts to split",
                fix="label more texts, or give the parts as files: --validation FILE --test FILE",
            )


def _seen_by_base(base: Path, held_out: list[str]) -> list[str]:
    """Whether a base that exists already was pretrained on texts of validation or test."""
    try:
        corpus = open_corpus(PretrainConfig.load(base)).without(held_out)
    except (HeadstartError, KeyError):
        return ["the base's corpus is not here, so whether it holds test rows is not known"]
    for _ in corpus:  # those that are left out are counted on the way
        pass
    wanted = {text_key(text) for text in held_out}
    seen = sum((corpus.overlapping or {}).values()) + sum(
        text_key(text) in wanted for text in corpus.task_text
    )
    if not seen:
        return []
    return [
        f"the base was pretrained on {seen:,} texts that equal, contain or nearly equal one of "
        "validation or test: its results may look too good"
    ]
