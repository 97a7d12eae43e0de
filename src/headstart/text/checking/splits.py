"""Splits and label budgets that depend on the seed and the set of (text, label) pairs alone.

Part are ordered by a keyed hash of their own content, never by their position, so that another
order of the file, another machine or another Python gives the same rows. `FileParts` is for what is
not a table: tagged sentences and questions, from files of their own or cut from the training file.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Generic, TypeVar

from headstart.errors import HeadstartError
from headstart.text.checking.duplicates import SimilarTexts, text_key
from headstart.text.reading.dataset import Dataset, Splits

TEST_SHARE = 0.1
VALIDATION_SHARE = 0.1


def split(dataset: Dataset, seed: int, *, with_test: bool = True) -> Splits:
    """Cut one dataset into stratified parts without a text in common.

    Of equal texts (case and spacing aside) one stays; those with several labels are all removed.
    A text that is nearly equal to one of a later part is removed from the earlier one.

    Parameters
    ----------
    dataset : Dataset
    seed : int
        The same seed gives the same split, whatever the order of the rows.
    with_test : bool
        Without it there are only train and validation.
    """
    rows, duplicates, conflicting = _distinct(dataset, seed)
    test, validation, train = [], [], []
    for members in _by_class(dataset, rows).values():
        tests = _share(len(members), TEST_SHARE, least=2) if with_test else 0
        checks = _share(len(members), VALIDATION_SHARE, least=3 if with_test else 2)
        test += members[:tests]
        validation += members[tests : tests + checks]
        train += members[tests + checks :]
    kept = _interleave(dataset, train, seed)
    parts = Splits(
        train=dataset.pick(kept, duplicate=duplicates, conflicting=conflicting),
        validation=_part(dataset, validation, seed),
        test=_part(dataset, test, seed) if with_test else None,
    )
    return drop_overlap(parts)


def take_budget(dataset: Dataset, budget: str, seed: int) -> Dataset:
    """The rows of a label budget; a smaller budget is part of every larger one.

    Every prefix of the order below is stratified, so a budget is simply its first rows.

    Parameters
    ----------
    dataset : Dataset
    budget : str
        A number of rows, a share or everything: `100`, `10%`, `all`.
    seed : int
        Which rows; the same ones whatever the order of the dataset.
    """
    rows, duplicates, _ = _distinct(dataset, seed, conflicts=True)
    size = _budget_size(budget, len(rows), len(dataset.label_names))
    order = _interleave(dataset, rows, seed)
    return dataset.pick(order[:size], duplicate=duplicates)


def drop_overlap(splits: Splits) -> Splits:
    """Take out of training what validation or test hold, and out of validation what test holds.

    Nearly equal texts go too. The test part stays whole, so that results remain comparable.
    """
    held_out = _HeldOut()
    if splits.test is not None:
        held_out.add(splits.test)
    validation = held_out.taken_out_of(splits.validation)
    held_out.add(validation)
    return replace(splits, train=held_out.taken_out_of(splits.train), validation=validation)


class _HeldOut:
    """Validation and test texts, which must not be trained on."""

    def __init__(self) -> None:
        self._equal: set[bytes] = set()
        self._similar = SimilarTexts()

    def add(self, dataset: Dataset) -> None:
        signatures = self._similar.signatures(dataset.texts)
        for text, signature in zip(dataset.texts, signatures, strict=True):
            self._equal.add(text_key(text))
            self._similar.add(text, signature)

    def taken_out_of(self, dataset: Dataset) -> Dataset:
        signatures = self._similar.signatures(dataset.texts)
        kept = [
            row
            for row, (text, signature) in enumerate(zip(dataset.texts, signatures, strict=True))
            if text_key(text) not in self._equal and not self._similar.find(text, signature)
        ]
        return dataset.pick(kept, overlap=len(dataset) - len(kept))


def _part(dataset: Dataset, rows: list[int], seed: int) -> Dataset:
    fresh = Dataset(dataset.name, dataset.texts, dataset.labels, dataset.label_names)
    return fresh.pick(_interleave(dataset, rows, seed))


def _rank(dataset: Dataset, row: int, seed: int) -> bytes:
    """A row's place in the shuffled order: random-looking, and a function of its content."""
    hashed = blake2b(digest_size=16, key=str(seed).encode())
    hashed.update(dataset.label_names[dataset.labels[row]].encode())
    hashed.update(b"\0")
    hashed.update(dataset.texts[row].encode())
    return hashed.digest()


def _distinct(
    dataset: Dataset, seed: int, *, conflicts: bool = False
) -> tuple[list[int], int, int]:
    """One row of each text, in shuffled order; with `conflicts`, one of each (text, label)."""
    ranked = sorted(range(len(dataset)), key=lambda row: _rank(dataset, row, seed))
    first: dict[object, int] = {}
    labels: dict[object, set[int]] = defaultdict(set)
    for row in ranked:
        key: object = text_key(dataset.texts[row])
        if conflicts:
            key = (key, dataset.labels[row])
        first.setdefault(key, row)
        labels[key].add(dataset.labels[row])
    rows = [row for key, row in first.items() if len(labels[key]) == 1]
    unclear = {key for key, found in labels.items() if len(found) > 1}
    conflicting = 0
    if unclear:
        conflicting = sum(text_key(text) in unclear for text in dataset.texts)
    return rows, len(dataset) - len(rows) - conflicting, conflicting


def _by_class(dataset: Dataset, rows: Iterable[int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {number: [] for number in range(len(dataset.label_names))}
    for row in rows:
        members[dataset.labels[row]].append(row)
    return members


def _interleave(dataset: Dataset, rows: list[int], seed: int) -> list[int]:
    """Order rows so that every prefix has the classes in their shares, and all of them early."""
    placed = []
    ranked = sorted(rows, key=lambda row: _rank(dataset, row, seed))
    for members in _by_class(dataset, ranked).values():
        for position, row in enumerate(members):
            share = (position + 0.5) / len(members) if position else 0.0
            placed.append((share, _rank(dataset, row, seed), row))
    return [row for _, _, row in sorted(placed)]


def _share(count: int, share: float, *, least: int) -> int:
    """A part's rows of one class: at least one where the class has `least` rows or more."""
    return 0 if count < least else max(1, round(count * share))


def _budget_size(budget: str, available: int, classes: int) -> int:
    written = budget.strip().lower()
    if written == "all":
        return available
    if re.fullmatch(r"\d+(\.\d+)?%", written) and 0 < float(written[:-1]) <= 100:
        size = round(available * float(written[:-1]) / 100)
    elif re.fullmatch(r"\d+", written):
        size = int(written)
    else:
        raise HeadstartError(
            f"'{budget}' is not a label budget", fix="write a number, a share or all: 100, 10%, all"
        )
    if size > available:
        raise HeadstartError(
            f"a budget of {size:,} labels, but there are only {available:,} different texts",
            fix="take a smaller one, or all",
        )
    if size < classes:
        raise HeadstartError(
            f"a budget of {size:,} labels is too small for {classes} classes",
            fix="every class needs at least one",
        )
    return size


Part = TypeVar("Part")


@dataclass(frozen=True)
class FileParts(Generic[Part]):
    """The parts of a dataset that is read file by file."""

    train: Part
    validation: Part
    test: Part | None
    notes: tuple[str, ...] = ()  # what was made of several files


def given_parts(
    whole: Part,
    read: Callable[[str], Part],
    *,
    validation: str | None,
    test: str | None,
    cut: Callable[[bool], FileParts[Part]],
    notes: tuple[str, ...] = (),
) -> FileParts[Part]:
    """The parts that have files; `cut(with_test)` makes the others."""
    test_part = None if test is None else read(test)
    if validation is not None:
        return FileParts(whole, read(validation), test_part, notes)
    parts = cut(test is None)
    test_part = parts.test if test is None else test_part
    return FileParts(parts.train, parts.validation, test_part, notes)


def cut_parts(
    name: str,
    texts: Sequence[str],
    pick: Callable[[Dataset], Part],
    *,
    seed: int,
    with_test: bool,
    of: str,
) -> FileParts[Part]:
    """Parts without a text in common, by the same rules as a table's; `pick` finds their rows."""
    cut = split(Dataset(name, list(texts), [0] * len(texts), ("",)), seed, with_test=with_test)
    if not len(cut.validation):
        raise HeadstartError(
            f"{len(texts)} {of} are too few to cut a validation part from",
            where=name,
            fix=f"give more {of}, or --validation FILE",
        )
    test = None if cut.test is None else pick(cut.test)
    return FileParts(pick(cut.train), pick(cut.validation), test)
