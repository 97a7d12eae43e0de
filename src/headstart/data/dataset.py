"""Labelled rows in memory, and their splits into train, validation and test."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, Generic, Self, TypeVar

Text = str | tuple[str, str]  # a text, or two that belong together
Answer = tuple[int, str]  # its first character in the context, and its text

LABELS_MARK = "|"  # between several labels of one text
SHOWN_NAME = 40  # characters of a label or column in a message


@dataclass(frozen=True)
class Part(ABC):
    """The rows of a dataset, for any task. Every list has one item per row."""

    name: str  # in messages and reports
    # The numbers of the rows in the user's file, from 1; by default 1, 2, …
    rows: list[int] = field(default_factory=list, kw_only=True)
    files: list[str] = field(default_factory=list, kw_only=True)  # of each row, if several
    dropped: dict[str, int] = field(default_factory=dict, kw_only=True)  # rows, by reason

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self._per_row().values()}
        assert len(lengths) < 2, f"lists of different lengths: {lengths}"
        if not self.rows:
            object.__setattr__(self, "rows", list(range(1, sum(lengths) + 1)))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    @abstractmethod
    def keys(self) -> Sequence[Any]:
        """The text that identifies each row, wherever the row comes from."""

    @property
    def groups(self) -> Sequence[Any]:
        """A text for each row; rows with the same text go to the same part of a split."""
        return self.keys

    @property
    @abstractmethod
    def targets(self) -> Sequence[Hashable]:
        """The labels of each row, to find equal texts with different ones."""

    @property
    def classes(self) -> tuple[list[int], tuple[str, ...]]:
        """A class number for each row, and the names of these classes; splits are stratified."""
        return [0] * len(self), ("",)

    @abstractmethod
    def label_counts(self) -> dict[str, int]:
        """Count how often each label occurs."""

    def place(self, number: int) -> dict[str, int | str]:
        """Say which row of the user's files one is: `row`, and `file` where there are several."""
        found: dict[str, int | str] = {"row": self.rows[number]}
        return found | {"file": self.files[number]} if self.files else found

    def pick(self, numbers: Sequence[int], **dropped: int) -> Self:
        """Select rows by position, from 0, in this order; `dropped` is added to the account."""
        picked: dict[str, Any] = {
            name: [values[number] for number in numbers] for name, values in self._per_row().items()
        }
        return replace(self, dropped=dict(Counter(self.dropped) + Counter(dropped)), **picked)

    def _per_row(self) -> dict[str, list[Any]]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: one for name, one in values.items() if isinstance(one, list) and one}


@dataclass(frozen=True)
class Dataset(Part):
    """Texts and their labels as numbers; with `several_labels` a label is like "comedy|drama"."""

    texts: list[Any]  # str, or tuples of two for pairs
    labels: list[int]
    label_names: tuple[str, ...]
    weights: list[float] | None = None  # how much each text counts; None: all the same
    several_labels: bool = False

    @property
    def keys(self) -> Sequence[Any]:
        return self.texts

    @property
    def targets(self) -> Sequence[Hashable]:
        return self.labels

    @property
    def classes(self) -> tuple[list[int], tuple[str, ...]]:
        # Combinations of labels are too many and too rare to have each in every part.
        return super().classes if self.several_labels else (self.labels, self.label_names)

    def label_counts(self) -> dict[str, int]:
        counts = _count(self.labels, self.label_names)
        if not self.several_labels:
            return counts
        single = Counter[str]()
        for combination, count in counts.items():
            single.update(dict.fromkeys(split_labels(combination), count))
        return dict(sorted(single.items()))


@dataclass(frozen=True)
class Sentences(Part):
    """Words and the numbers of their tags; `texts`, where the words were split from texts."""

    words: list[list[str]]
    tags: list[list[int]]
    label_names: tuple[str, ...]
    texts: list[str] = field(default_factory=list, kw_only=True)

    @property
    def keys(self) -> Sequence[Any]:
        return self.texts or [" ".join(words) for words in self.words]

    @property
    def targets(self) -> Sequence[Hashable]:
        return [tuple(tags) for tags in self.tags]

    def label_counts(self) -> dict[str, int]:
        return _count(chain.from_iterable(self.tags), self.label_names)


@dataclass(frozen=True)
class Questions(Part):
    """Questions, the texts that hold the answers, and where: (start, text), none or several."""

    questions: list[str]
    contexts: list[str]
    answers: list[list[Answer]]

    @property
    def keys(self) -> Sequence[Any]:
        return list(zip(self.questions, self.contexts, strict=True))

    @property
    def groups(self) -> Sequence[Any]:
        return self.contexts

    @property
    def targets(self) -> Sequence[Hashable]:
        return [tuple(answers) for answers in self.answers]

    def label_counts(self) -> dict[str, int]:
        return _count([not answers for answers in self.answers], ("answer", "no answer"))


def _count(numbers: Iterable[int], names: Sequence[str]) -> dict[str, int]:
    counts = Counter(numbers)
    return {name: counts[number] for number, name in enumerate(names)}


PartT = TypeVar("PartT", bound=Part)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Splits(Generic[PartT]):
    """The parts of a dataset: for training, for model selection, and for the final evaluation."""

    train: PartT
    validation: PartT
    test: PartT | None
    found: tuple[str, ...] = ()  # how each file was read
    notes: tuple[str, ...] = ()  # what was guessed, for the user to check
    whole: PartT | None = None  # of a split: the rows of all parts, with overlapping ones

    def parts(self) -> dict[str, PartT]:
        """Return the parts that exist, by name."""
        parts = {"train": self.train, "validation": self.validation}
        return parts if self.test is None else parts | {"test": self.test}


def split_labels(combination: str) -> list[str]:
    """List the labels of a combination."""
    return [name for name in combination.split(LABELS_MARK) if name]


def short_label(name: str) -> str:
    """Quote a name for a message, shortened."""
    return f"'{name if len(name) <= SHOWN_NAME else name[: SHOWN_NAME - 1] + '…'}'"


def listed(names: Sequence[str], most: int = 5) -> str:
    """List the first names for a message."""
    return ", ".join(map(short_label, names[:most])) + (", …" if len(names) > most else "")


def as_text(text: Text) -> str:
    """Return one text, with a bar between the texts of a pair."""
    return text if isinstance(text, str) else " ¦ ".join(text)


def batched(
    items: Iterable[Item],
    size: Callable[[Any], int] = lambda text: len(as_text(text)),
    *,
    most: int = 1 << 20,
    count: int = 1 << 12,
) -> Iterator[list[Item]]:
    """Group items, by default texts, into lists of a total size `most` or of `count` of them."""
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= most or len(batch) >= count:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
