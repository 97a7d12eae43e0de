"""The data of a study: labelled parts, the corpus without held-out texts, label budgets, notes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from headstart.arms import CLASS_TASKS
from headstart.config import PretrainConfig, StudyConfig
from headstart.data.corpus import Corpus, read_corpus
from headstart.data.dataset import Dataset, Splits
from headstart.data.inspect import NO_TEST_PART, inspect_data
from headstart.data.overlap import OverlapKind
from headstart.data.splits import deal_folds, drop_overlapping, take_budget
from headstart.errors import HeadstartError
from headstart.tasks import find_task
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback
from headstart.training.corpus import open_corpus

LEAST_TEST_ROWS, FOLDS = 200, 5  # with fewer that are split off, a study is made in folds


class Fold(NamedTuple):
    """One fold of a seed."""

    rows: list[int]  # their positions
    splits: Splits[Any]  # test and validation: these rows; train: others that do not overlap
    corpus: Corpus | None


@dataclass(frozen=True)
class StudyData:
    """What a study reads. In a study in folds, each seed assigns the rows to other folds."""

    task: Task[Any]  # with the labels of all training rows
    splits: Splits[Any]  # in a study in folds, each part is all rows
    corpus: Corpus | None  # with the training texts, without validation and test
    budgets: list[int]  # numbers of labelled rows, ascending
    all_labels: int  # labelled rows that a training could have; in a study in folds, in any fold
    # Whether every seed has all labels in the same order, so that it can use what another seed has
    # selected; otherwise in the order in which `finetune` draws them.
    one_order: bool = True
    notes: list[str] = field(default_factory=list)  # what a person should know about the data
    dropped: dict[OverlapKind, int] = field(default_factory=dict)  # documents of the corpus
    shared_test: bool = False  # the rows that are reported on select the arm that is saved
    folds: dict[tuple[int, int], Fold] = field(default_factory=dict)  # by seed and number from 1

    def rows(self, labels: int, seed: int, fold: int = 0) -> Splits[Any]:
        """Return the rows of a budget, the same for every arm; a larger budget contains them."""
        splits = self.fold(seed, fold).splits
        seed = 0 if self.one_order and labels == self.all_labels else seed
        return replace(splits, train=take_budget(splits.train, str(labels), seed))

    def fold(self, seed: int, fold: int) -> Fold:
        """Return a fold; number 0 is the whole study, with one test part."""
        rows = list(range(len(self.splits.test or ())))
        return self.folds[seed, fold] if fold else Fold(rows, self.splits, self.corpus)

    @property
    def fold_count(self) -> int:
        """The number of folds; 1 in a study with one test part."""
        return max((fold for _, fold in self.folds), default=1)


def read_data(config: StudyConfig, callback: Callback) -> StudyData:
    """Read and check everything; nothing is written."""
    kind = find_task(config.task)
    splits: Any = kind.read(
        config.dataset, **config.read_options(), progress=callback.stage("reading the dataset")
    )
    notes, inspected = list(splits.notes), splits
    task = kind.from_rows(splits.train)
    shared = splits.test is None and config.selection == "none"
    if splits.test is None:
        splits, note = _make_test(task, splits, config.split_seed, shared=shared)
        notes.append(note)
    for name, part in splits.parts().items():
        if len(part) < (2 if name == "test" else 1):  # one row gives no interval
            raise HeadstartError(
                f"the {name} part has too few rows: {len(part)}",
                fix="label more texts, or give the parts as files: --validation FILE --test FILE",
            )
    dealt, every = _deal_folds(config, splits), splits.whole
    splits = replace(splits, whole=None)
    if dealt:
        notes.append(
            f"evaluated in {max(fold for _, fold in dealt)} folds: each of the {len(every):,} "
            f"labelled rows once per seed (a test part would have {len(splits.test):,} rows)"
        )
        task, shared = kind.from_rows(every), config.selection == "none"
        splits, inspected = Splits(every, every, every), Splits(every, every.pick([]), None)
    held_out = [text for part in (splits.validation, splits.test) for text in task.texts(part)]
    corpus = None
    if config.corpus:
        how: dict[str, Any] = {"encoding": config.encoding, "documents": config.documents}
        corpus = read_corpus(config.corpus, **how).without(held_out)
    found = inspect_data(inspected, corpus, progress=callback.stage("looking at the data"))
    notes += [
        one
        for one in found.warnings
        if one != NO_TEST_PART  # there is a note about it
        and not (dealt and one.startswith("validation"))
    ]
    dropped: dict[OverlapKind, int] = {} if corpus is None else dict(corpus.overlapping)
    if corpus is not None and config.task_text and not dealt:
        corpus = corpus.with_task_text(task.texts(splits.train))
    folds = {}
    for key, rows in dealt.items():
        held, others = every.pick(rows), sorted(set(range(len(every))) - set(rows))
        parts: Splits[Any] = drop_overlapping(Splits(every.pick(others), held, None))
        own = corpus
        if config.uses_own_texts:
            own = _own_texts(config, task, parts.train, task.texts(held))
        folds[key] = Fold(rows, replace(parts, test=held), own)
    if config.uses_own_texts:
        corpus = _own_texts(config, task, splits.train, [] if dealt else held_out)
        notes.append(
            f"no corpus was given: pretraining reads {corpus.name} ({len(corpus.task_text):,}), "
            "without their labels" + (", in each fold without its test rows" if dealt else "")
        )
    if config.base:
        notes += _seen_by_base(Path(config.base), held_out)
    trains = [fold.splits.train for fold in folds.values()] or [splits.train]
    least = min((take_budget(train, "all", 0) for train in trains), key=len)
    return StudyData(
        task,
        splits,
        corpus,
        find_budgets(config, task, least),
        all_labels=len(least),
        one_order=config.selection == "budget",
        notes=notes,
        dropped=dropped,
        shared_test=shared,
        folds=folds,
    )


def _deal_folds(config: StudyConfig, splits: Any) -> dict[tuple[int, int], list[int]]:
    """Return the positions of each fold's rows by seed and number; none without folds."""
    few = splits.whole is not None and len(splits.test) < LEAST_TEST_ROWS
    count = config.folds or (FOLDS if few else 1)
    if count == 1:
        return {}
    if splits.whole is None:
        raise HeadstartError(
            "--folds needs a dataset in one part; this one has separate validation or test rows",
            fix="omit --folds, or give all rows in one file",
        )
    found: dict[tuple[int, int], list[int]] = {}
    for seed in range(config.seeds):
        dealt = deal_folds(splits.whole, count, 1_000 * config.split_seed + seed)
        found |= {(seed, number): rows for number, rows in enumerate(dealt, start=1)}
    return found


def split_sizes(data: StudyData) -> dict[str, int]:
    """Return the rows of each part by name; in a study in folds, all of them are one part."""
    parts = {"labelled": data.splits.train} if data.folds else data.splits.parts()
    return {name: len(part) for name, part in parts.items()}


def has_classes(task: Task[Any]) -> bool:
    """Whether each row has one class, so that it has a probability for each of them."""
    return task.name in CLASS_TASKS


def find_budgets(config: StudyConfig, task: Task[Any], train: Any) -> list[int]:
    """Return the numbers of labelled rows, ascending; the usual ones as far as there are rows."""
    least = 2 * len(task.labels) if has_classes(task) else 2
    if not config.labels:
        return [*(n for n in (100, 400) if least <= n < len(train)), len(train)]
    budgets = sorted({len(take_budget(train, budget, 0)) for budget in config.labels})
    if not has_classes(task) and budgets[0] < least:
        raise HeadstartError(
            f"a budget of {budgets[0]} is too small for a study of {task.row_name}: one row "
            "trains, and another one selects the setting",
            fix=f"give --labels {least} or more",
        )
    return budgets


def gold_names(task: Task[Any], part: Any) -> list[str]:
    """Return the correct label of each row, for people."""
    if isinstance(part, Dataset):
        return [part.label_names[label] for label in part.labels]
    if hasattr(part, "answers"):
        return [answers[0][1] if answers else "" for answers in part.answers]
    return [" ".join(task.labels[tag] for tag in tags) for tags in part.tags]


def _make_test(
    task: Task[Any], splits: Splits[Any], seed: int, *, shared: bool
) -> tuple[Splits[Any], str]:
    """Report on the validation part where it selects nothing; else half of it becomes the test."""
    part = splits.validation
    if shared:
        return replace(splits, test=part), (
            f"there is no test part (--test FILE): the results are those of the {len(part):,} "
            "validation rows, which also select the arm that is saved, but no settings"
        )
    if len(part) < (2 * len(task.labels) if has_classes(task) else 2):
        raise HeadstartError(
            f"there is no test part, and the {len(part):,} validation rows are too few to share",
            fix="give one with --test FILE",
        )
    test = take_budget(part, "50%", seed)
    taken = set(test.keys)
    rest = part.pick([row for row, text in enumerate(part.keys) if text not in taken])
    return replace(splits, validation=rest, test=test), (
        f"there is no test part (--test FILE): half of the validation part, {len(test):,} rows, "
        "is used as the test part"
    )


def _own_texts(config: StudyConfig, task: Task[Any], train: Any, held_out: Sequence[str]) -> Corpus:
    """Make a corpus of the training texts."""
    name = f"the training texts of {train.name}"
    corpus = Corpus(name).without(held_out).with_task_text(task.texts(train))
    if sum(len(text.encode()) for text in corpus.task_text) < 4_096:  # some rows of 128 tokens
        raise HeadstartError(
            f"there is no corpus, and {name} ({len(corpus.task_text):,} texts) are too short to "
            "pretrain on",
            fix="give text without labels with --corpus FILE, or choose --arms "
            f"{','.join(config.arms_without_corpus())}",
            code="no-corpus",
        )
    return corpus


def _seen_by_base(base: Path, held_out: list[str]) -> list[str]:
    """Say whether a base that exists already was pretrained on validation or test texts."""
    try:
        corpus = open_corpus(PretrainConfig.load(base)).without(held_out)
    except (HeadstartError, KeyError):
        return ["the base's corpus was not found, so it cannot be searched for test rows"]
    for _ in corpus:  # counts the dropped ones
        pass
    seen = corpus.overlapping.total()
    if not seen:
        return []
    return [
        f"the base was pretrained on {seen:,} texts that equal, contain or nearly equal one of "
        "validation or test: its results may look too good"
    ]
