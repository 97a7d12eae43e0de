"""Splits and label budgets that depend on the seed and the set of (text, label) pairs alone.

Rows are ordered by a keyed hash of their content, never by their position, so that another order
of the file, another machine or another Python gives the same rows.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain

from headstart.data.dataset import Part, PartT, Splits, Text, batched
from headstart.data.overlap import HeldOutTexts, text_key
from headstart.errors import HeadstartError

TEST_SHARE = 0.1
VALIDATION_SHARE = 0.1
BETWEEN = "\ufdd0"  # two texts, in a hash


def _ranks(texts: Sequence[Text], part: Part, seed: int) -> list[bytes]:
    """Return each row's place in the shuffled order: a hash of its class and a text of it."""
    ranks = []
    numbers, names = part.classes
    for text, number in zip(texts, numbers, strict=True):
        hashed = blake2b(digest_size=16, key=str(seed).encode())
        hashed.update(names[number].encode())
        hashed.update(b"\0")
        hashed.update((text if isinstance(text, str) else BETWEEN.join(text)).encode())
        ranks.append(hashed.digest())
    return ranks


def _by_class(rows: Iterable[int], part: Part) -> Iterable[list[int]]:
    """Group rows by their class."""
    members, (classes, _) = defaultdict[int, list[int]](list), part.classes
    for row in rows:
        members[classes[row]].append(row)
    return members.values()


def _interleave(rows: Iterable[int], part: Part, ranks: Sequence[bytes]) -> list[int]:
    """Order rows so that every prefix has the classes in their shares, all of them early."""
    placed = []
    for members in _by_class(sorted(rows, key=ranks.__getitem__), part):
        for position, row in enumerate(members):
            share = (position + 0.5) / len(members) if position else 0.0
            placed.append((share, ranks[row], row))
    return [row for _, _, row in sorted(placed)]


def split(part: PartT, seed: int, *, with_test: bool = True) -> Splits[PartT]:
    """Split rows into stratified parts without a text in common.

    Of equal texts (case and spacing aside) one stays; those with several labels are all dropped:
    at most one of them is correct. Rows with the same group text, such as a context, stay together.
    A text that overlaps with one of a later part is dropped from the earlier one.

    Parameters
    ----------
    part : Part
    seed : int
        The same seed gives the same split, whatever the order of the rows.
    with_test : bool
        Without it there are only train and validation.
    """
    groups, ranks = [text_key(text) for text in part.groups], _ranks(part.groups, part, seed)
    first: dict[bytes, int] = {}  # a row of each group, in shuffled order
    for row in sorted(range(len(part)), key=ranks.__getitem__):
        first.setdefault(groups[row], row)
    units, dropped = list(first.values()), dict[str, int]()
    if part.groups == part.keys:
        found: dict[bytes, set[Hashable]] = defaultdict(set)
        for group, target in zip(groups, part.targets, strict=True):
            found[group].add(target)
        units = [row for row in units if len(found[groups[row]]) == 1]
        conflicting = sum(len(found[group]) > 1 for group in groups)
        dropped = {"duplicate": len(part) - len(units) - conflicting, "conflicting": conflicting}
    sides: list[list[int]] = [[], [], []]
    for members in _by_class(units, part):
        tests = _share(len(members), TEST_SHARE, least=2) if with_test else 0
        end = tests + _share(len(members), VALIDATION_SHARE, least=3 if with_test else 2)
        parts = (members[end:], members[tests:end], members[:tests])
        sides = [side + more for side, more in zip(sides, parts, strict=True)]
    if part.groups == part.keys:
        sides = [_interleave(side, part, ranks) for side in sides]
    else:
        kept = [{groups[row] for row in side} for side in sides]
        sides = [[row for row, group in enumerate(groups) if group in side] for side in kept]
    train, validation, test = sides
    fresh = replace(part, dropped={})
    later = fresh.pick(test) if with_test else None
    whole = part.pick([*train, *validation, *test], **dropped) if with_test else None
    return drop_overlapping(
        Splits(part.pick(train, **dropped), fresh.pick(validation), later, whole=whole)
    )


def _share(count: int, share: float, *, least: int) -> int:
    """Size a part's rows of one class: at least one where the class has `least` rows or more."""
    return 0 if count < least else max(1, round(count * share))


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
    classes, ranks = part.classes[0], _ranks(part.keys, part, seed)
    groups = [text_key(text) for text in part.groups]
    count = min(count, len(set(groups)))
    places: dict[bytes, int] = {}
    for row in sorted(range(len(part)), key=lambda row: (classes[row], ranks[row])):
        places.setdefault(groups[row], len(places) % count)
    rows = range(len(part))
    return [[row for row in rows if places[groups[row]] == fold] for fold in range(count)]


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
    texts, (classes, names) = part.keys, part.classes
    ranks = _ranks(texts, part, seed)
    first: dict[object, int] = {}
    for row in sorted(range(len(part)), key=ranks.__getitem__):
        first.setdefault((text_key(texts[row]), classes[row]), row)
    size = _budget_size(budget, len(first), len(names))
    rows = _interleave(first.values(), part, ranks)[:size]
    return part.pick(rows, duplicate=len(part) - len(first))


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
