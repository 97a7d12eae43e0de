"""Splits and label budgets that depend on the seed and the set of (text, label) pairs alone.

Rows are ordered by a keyed hash of their content, never by their position, so that another order
of the file, another machine or another Python gives the same rows.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain

from headstart.data.dataset import Part, PartT, Splits, Text, batched
from headstart.data.overlap import HeldOutTexts, text_key
from headstart.errors import HeadstartError

TEST_SHARE = 0.1
VALIDATION_SHARE = 0.1
BETWEEN = "\ufdd0"  # two texts, in a hash


@dataclass(frozen=True)
class _Units:
    """What is split: distinct texts with a class each."""

    texts: Sequence[Text]
    classes: Sequence[int]
    names: Sequence[str]
    seed: int

    @cached_property
    def ranks(self) -> list[bytes]:
        """The place of each row in the shuffled order: a hash of its content."""
        found = []
        for text, number in zip(self.texts, self.classes, strict=True):
            hashed = blake2b(digest_size=16, key=str(self.seed).encode())
            hashed.update(self.names[number].encode())
            hashed.update(b"\0")
            hashed.update((text if isinstance(text, str) else BETWEEN.join(text)).encode())
            found.append(hashed.digest())
        return found

    def by_class(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Group rows by their class."""
        members: dict[int, list[int]] = {number: [] for number in range(len(self.names))}
        for row in rows:
            members[self.classes[row]].append(row)
        return members

    def distinct(self, targets: Sequence[Hashable]) -> tuple[list[int], int, int]:
        """Return one row of each text in shuffled order, and count duplicates and conflicts.

        Texts that have several targets are all dropped: at most one of them is correct.
        """
        keys = [text_key(text) for text in self.texts]
        found: dict[bytes, set[Hashable]] = defaultdict(set)
        for key, target in zip(keys, targets, strict=True):
            found[key].add(target)
        first: dict[bytes, int] = {}
        for row in sorted(range(len(keys)), key=self.ranks.__getitem__):
            first.setdefault(keys[row], row)
        rows = [row for key, row in first.items() if len(found[key]) == 1]
        conflicting = sum(len(found[key]) > 1 for key in keys)
        return rows, len(keys) - len(rows) - conflicting, conflicting

    def interleave(self, rows: Iterable[int]) -> list[int]:
        """Order rows so that every prefix has the classes in their shares, all of them early."""
        placed = []
        for members in self.by_class(sorted(rows, key=self.ranks.__getitem__)).values():
            for position, row in enumerate(members):
                share = (position + 0.5) / len(members) if position else 0.0
                placed.append((share, self.ranks[row], row))
        return [row for _, _, row in sorted(placed)]


def split(part: PartT, seed: int, *, with_test: bool = True) -> Splits[PartT]:
    """Split rows into stratified parts without a text in common.

    Of equal texts (case and spacing aside) one stays; those with several labels are all dropped.
    A text that overlaps with one of a later part is dropped from the earlier one.

    Parameters
    ----------
    part : Part
    seed : int
        The same seed gives the same split, whatever the order of the rows.
    with_test : bool
        Without it there are only train and validation.
    """
    dropped: dict[str, int] = {}
    if part.groups == part.keys:
        units = _Units(part.keys, *part.classes, seed)
        rows, dropped["duplicate"], dropped["conflicting"] = units.distinct(part.targets)
        sides = [units.interleave(side) for side in _stratify(units, rows, with_test)]
    else:
        sides = _split_groups(part, seed, with_test)
    train, validation, test = sides
    fresh = replace(part, dropped={})
    later = fresh.pick(test) if with_test else None
    whole = part.pick([*train, *validation, *test], **dropped) if with_test else None
    parts = Splits(part.pick(train, **dropped), fresh.pick(validation), later, whole=whole)
    return drop_overlapping(parts)


def deal_folds(part: Part, count: int, seed: int) -> list[list[int]]:
    """Deal rows into stratified folds; rows with the same group text are in the same fold.

    Parameters
    ----------
    count : int
        How many folds; fewer where there are fewer groups.
    seed : int
        The same seed gives the same folds, whatever the order of the rows.

    Returns
    -------
    list of lists of int
        The positions of the rows of each fold, ascending; every row is in one fold.
    """
    classes, names = part.classes
    units = _Units(part.keys, classes, names, seed)
    groups = [text_key(text) for text in part.groups]
    count = min(count, len(set(groups)))
    places: dict[bytes, int] = {}
    for row in sorted(range(len(part)), key=lambda row: (classes[row], units.ranks[row])):
        places.setdefault(groups[row], len(places) % count)
    rows = range(len(part))
    return [[row for row in rows if places[groups[row]] == fold] for fold in range(count)]


def _split_groups(part: Part, seed: int, with_test: bool) -> list[list[int]]:
    """Split rows so that those with the same group text, such as a context, stay together."""
    texts = sorted(set(part.groups), key=str)
    units = _Units(texts, [0] * len(texts), ("",), seed)
    rows, *_ = units.distinct([0] * len(texts))
    groups = [text_key(text) for text in part.groups]
    sides = []
    for side in _stratify(units, rows, with_test):
        keys = {text_key(texts[row]) for row in side}
        sides.append([row for row, group in enumerate(groups) if group in keys])
    return sides


def _stratify(
    units: _Units, rows: Sequence[int], with_test: bool
) -> tuple[list[int], list[int], list[int]]:
    test: list[int] = []
    validation: list[int] = []
    train: list[int] = []
    for members in units.by_class(rows).values():
        tests = _share(len(members), TEST_SHARE, least=2) if with_test else 0
        checks = _share(len(members), VALIDATION_SHARE, least=3 if with_test else 2)
        test += members[:tests]
        validation += members[tests : tests + checks]
        train += members[tests + checks :]
    return train, validation, test


def _share(count: int, share: float, *, least: int) -> int:
    """Size a part's rows of one class: at least one where the class has `least` rows or more."""
    return 0 if count < least else max(1, round(count * share))


def drop_overlapping(splits: Splits[PartT]) -> Splits[PartT]:
    """Drop from training what overlaps with validation or test, and from validation with test.

    The test part stays whole, so that results remain comparable.
    """
    test = [] if splits.test is None else list(splits.test.groups)
    validation = _without(splits.validation, test)
    train = _without(splits.train, [*test, *validation.groups])
    return replace(splits, train=train, validation=validation)


def _without(part: PartT, texts: Sequence[Text]) -> PartT:
    held_out = HeldOutTexts(texts)
    found = list(chain.from_iterable(held_out.find(batch) for batch in batched(part.groups)))
    kept = [row for row, kind in enumerate(found) if kind is None]
    return part.pick(kept, overlap=len(part) - len(kept))


def take_budget(part: PartT, budget: str, seed: int) -> PartT:
    """Select the rows of a label budget; a smaller budget is part of every larger one.

    Every prefix of the order is stratified, so a budget is its first rows.

    Parameters
    ----------
    part : Part
    budget : str
        A number of rows, a share or everything: `100`, `10%`, `all`.
    seed : int
        Which rows; the same ones whatever the order of the dataset.
    """
    units = _Units(part.keys, *part.classes, seed)
    first: dict[object, int] = {}
    for row in sorted(range(len(part)), key=units.ranks.__getitem__):
        first.setdefault((text_key(units.texts[row]), units.classes[row]), row)
    rows = list(first.values())
    size = _budget_size(budget, len(rows), len(units.names))
    return part.pick(units.interleave(rows)[:size], duplicate=len(part) - len(rows))


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
