"""Labelled texts in memory: `Dataset`, and the three of them that a study needs: `Splits`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Dataset:
    """Texts and their labels as numbers into `label_names`.

    `dropped` says why rows of the source are not here, and how many: nothing is lost silently.
    """

    name: str
    texts: list[str]
    labels: list[int]
    label_names: tuple[str, ...]
    dropped: dict[str, int] = field(default_factory=dict)
    weights: list[float] | None = None  # how much each text counts; None: all the same

    def __post_init__(self) -> None:
        assert len(self.texts) == len(self.labels), (len(self.texts), len(self.labels))

    def __len__(self) -> int:
        return len(self.texts)

    def class_counts(self) -> dict[str, int]:
        """How many texts each class has, in the order of `label_names`."""
        counts = Counter(self.labels)
        return {name: counts[number] for number, name in enumerate(self.label_names)}

    def pick(self, rows: Sequence[int], **dropped: int) -> "Dataset":
        """The dataset of these rows, in this order; `dropped` is added to the account."""
        reasons = Counter(self.dropped)
        reasons.update({reason: count for reason, count in dropped.items() if count})
        return replace(
            self,
            texts=[self.texts[row] for row in rows],
            labels=[self.labels[row] for row in rows],
            dropped=dict(reasons),
            weights=None if self.weights is None else [self.weights[row] for row in rows],
        )


@dataclass(frozen=True)
class Splits:
    """Train fits the weights, validation selects settings, test reports, once.

    `found` says how each file was understood and `notes` what was made of several files, for the
    person to check.
    """

    train: Dataset
    validation: Dataset
    test: Dataset | None
    found: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def parts(self) -> dict[str, Dataset]:
        """The parts that exist, by name."""
        parts = {"train": self.train, "validation": self.validation}
        return parts if self.test is None else parts | {"test": self.test}
