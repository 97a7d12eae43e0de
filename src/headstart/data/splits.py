"""Read labelled files as checked, split datasets; guess their task; draw folds and label budgets.

Splits, folds and budgets depend on the seed and the set of (text, label) pairs alone: rows are
ordered by a keyed hash of their content, never by their position, so that another order of the
file, another machine or another Python gives the same rows.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

from headstart.data.columns import ReadOptions, names_a_pair
from headstart.data.dataset import (
    Dataset,
    Part,
    PartT,
    Questions,
    Sentences,
    Splits,
    Text,
    batched,
    listed,
    short_label,
    split_labels,
)
from headstart.data.overlap import HeldOutTexts, text_key
from headstart.data.readers import SAMPLE_ROWS, SPLIT_SEED, Labels, Row, open_hub, open_rows, strict
from headstart.data.sources import (
    TABLES,
    Given,
    Lines,
    Source,
    find_kind,
    find_parts,
    find_source,
    part_of,
)
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback

FILE_KINDS = {"tagging": "conll", "spans": "squad"}  # of tasks that do not read tables


def read_dataset(
    source: Given | Sequence[Given],
    *,
    task: str = "classification",
    validation: Given | None = None,
    test: Given | None = None,
    seed: int = 0,
    drop_overlap: bool = False,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Splits[Any]:
    """Read labelled rows and their splits.

    Several files are the parts that their names imply (`find_parts`), else one training file. A
    part that is not given is split off the training rows, stratified and without duplicates; only
    with `validation` alone there is no test part, as the file was split already. Every row of a
    file is used, counted in `dropped`, or an error. A label of the task multi-label is a
    combination of labels.

    `drop_overlap` drops training texts that overlap with given validation or test files;
    `progress` is called with the rows read so far; `options` are those of `ReadOptions`.

    >>> splits = read_dataset("rotten-tomatoes")
    >>> splits.train.label_names
    ('negative', 'positive')
    """
    given = [source] if isinstance(source, str | Path) else list(source)
    sources, notes = find_parts(given, validation=validation, test=test, kind=FILE_KINDS.get(task))
    first, where = sources["train"][0], ", ".join(map(str, given))
    of_hub = open_hub(first.name)[1] if first.kind == "hub" else {}
    for part in ("validation", "test"):
        if part in of_hub and not sources[part]:
            sources[part] = [replace(first, part=part)]

    name = ", ".join(Path(one).name for one in given)
    how = ReadOptions(**options)
    train, found, more = _read_part(name, task, sources["train"], how, progress=progress)
    parts = {"train": train}
    known = None if task == "multi-label" else getattr(train, "label_names", None)
    for part in ("validation", "test"):
        if sources[part]:
            parts[part], how_found, _ = _read_part(name, task, sources[part], how, known, progress)
            found += how_found

    if "validation" in parts:
        splits: Splits[Any] = Splits(train, parts["validation"], parts.get("test"))
    else:
        seed = SPLIT_SEED if first.kind == "embedded" else seed
        splits = split(train, seed, with_test="test" not in parts)
        splits = replace(splits, test=parts.get("test", splits.test))
    if task not in ("multi-label", "spans"):
        _check_classes(splits, where, least=0 if task == "tagging" else 2)
    if task in FILE_KINDS and not len(splits.validation):
        raise HeadstartError(
            "there are too few different texts to make a validation part",
            where=where,
            fix="give more, or --validation FILE",
        )
    if drop_overlap and len(parts) > 1:
        splits = drop_overlapping(splits)
    return replace(splits, found=tuple(found), notes=tuple(dict.fromkeys([*notes, *more])))


def read_labelled(
    source: Given,
    label_names: Sequence[str],
    *,
    task: str = "classification",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Any:
    """Read every row of one source, whose labels (for multi-label: combinations) are known."""
    known = None if task == "multi-label" else label_names
    sources, how = [find_source(source, FILE_KINDS.get(task))], ReadOptions(**options)
    return _read_part(Path(source).name, task, sources, how, known, progress)[0]


def _read_part(
    name: str,
    task: str,
    sources: Sequence[Source],
    options: ReadOptions,
    label_names: Sequence[str] | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Any, list[str], list[str]]:
    """Read sources to their ends; return the rows, how they were read, and notes for the user."""
    rows, found, notes = list[Row](), list[str](), list[str]()
    declared: list[str] | None = None
    for source in sources:
        if source.kind == "conll" and task != "tagging":
            raise HeadstartError(
                "the file has words and tags, not texts with labels",
                where=source.name,
                fix="give --task tagging, or a table with a text and a label column",
            )
        several: Labels = "several" if task == "multi-label" else "one"
        opened = open_rows(source, options, labels=several, pairs=task in ("pairs", "spans"))
        found.append(f"{source.name}: {opened.found}")
        notes += found[-1:] if opened.columns.guessed or source.kind == "classes" else []
        for row in strict(opened):
            rows.append(row._replace(columns={}))
            if progress and len(rows) % 1_000 == 0:
                progress(len(rows), None)
        declared = declared or opened.label_names
    used = [row for row in rows if row.problem is None]
    if not used:
        where = ", ".join(source.name for source in sources)
        raise HeadstartError("there is no row with text in it", where=where, fix="add rows")
    files = [row.file for row in used]
    place: dict[str, Any] = {
        "rows": [row.number for row in used],
        "files": files if len(set(files)) > 1 else [],
        "dropped": {"empty": len(rows) - len(used)} if len(used) < len(rows) else {},
    }
    texts = [row.text for row in used]
    if task == "spans":
        questions, contexts = map(list, zip(*texts, strict=True))
        answers = [row.label for row in used]
        return Questions(name, questions, contexts, answers, **place), found, notes

    labels = [row.label if task == "tagging" else [row.label] for row in used]
    if label_names is None:
        label_names = _sort_labels(set(chain.from_iterable(labels)), declared, task)
    notes += _label_notes(label_names)
    numbers = {label: number for number, label in enumerate(label_names)}
    for row, names in zip(used, labels, strict=True):
        unknown = [label for label in names if label not in numbers]
        if unknown:
            raise HeadstartError(
                f"label {short_label(unknown[0])} does not occur in the training rows; "
                f"the labels there are {listed(label_names, 20)}",
                where=replace(sources[0], name=row.file).row(row.number, row.line),
                fix="correct it, or add rows with this label to the training file",
            )
    numbered = [[numbers[label] for label in names] for names in labels]
    if task == "tagging":
        words = [row.words or [] for row in used]
        return Sentences(name, words, numbered, tuple(label_names), **place), found, notes
    part = Dataset(
        name,
        texts,
        [number for (number,) in numbered],
        tuple(label_names),
        several_labels=task == "multi-label",
        **place,
    )
    return part, found, notes


def _label_notes(labels: Iterable[str]) -> list[str]:
    """Report labels that differ only in case, white space, Unicode form or invisible characters."""
    similar: dict[str, list[str]] = defaultdict(list)
    for name in sorted({one for label in labels for one in split_labels(label)}):
        plain = unicodedata.normalize("NFKC", name).casefold()
        visible = (c for c in plain if not c.isspace() and unicodedata.category(c) != "Cf")
        similar["".join(visible)].append(name)
    several = [names for names in similar.values() if len(names) > 1]
    return [
        f"labels {listed(names)} differ only in case, white space or Unicode form, and are "
        "different classes here"
        for names in several[:5]
    ]


def read_texts(sources: Iterable[Given], *, encoding: str = "utf-8") -> list[Text]:
    """Read texts to keep out of a corpus: validation and test of a dataset with parts, else all."""
    texts: list[Text] = []
    for given in sources:
        parts, _ = find_parts([given])
        kinds = {source.kind for source in parts["train"]}
        if kinds & {"embedded", "hub"} or parts["test"] or parts["validation"]:
            for name, part in read_dataset(given, encoding=encoding).parts().items():
                texts += [] if name == "train" else part.texts
        else:
            for source in parts["train"]:
                rows = open_rows(source, ReadOptions(encoding=encoding))
                texts += [row.text for row in strict(rows) if row.text]
    return texts


def guess_task(
    sources: Sequence[Given], options: ReadOptions | None = None
) -> tuple[str, str | None]:
    """Guess the task of a dataset from its first file; say why, if it is not classification."""
    options = options or ReadOptions()
    path = Path(sources[0]).expanduser()
    if path.is_dir():
        files = [one for one in sorted(path.iterdir()) if part_of(one) == "train"]
        path = next((one for one in files if find_kind(one)[0] in (*TABLES, "conll")), path)
    kind = find_kind(path)[0] if path.is_file() else None
    if kind == "conll":
        return "tagging", f"{path.name} has words and tags: the task is tagging"
    if kind not in TABLES:
        return "classification", None
    try:
        start = Lines(find_source(path), options.encoding).start if kind == "json" else ""
        if '"paragraphs"' in start and '"qas"' in start:
            return "spans", f"{path.name} has questions in SQuAD's format: the task is spans"
        rows = open_rows(find_source(path), options, labels="several")
        first = list(islice(rows, SAMPLE_ROWS))
    except HeadstartError:  # the reading of all rows has the message
        return "classification", None
    if first and names_a_pair(first[0].columns, options):
        return "pairs", f"{path.name} has two columns of texts: the task is pairs"
    cells = [row.columns.get(rows.columns.label or "") for row in first]
    if any(isinstance(one, list) or (isinstance(one, str) and "|" in one) for one in cells):
        return "multi-label", f"rows of {path.name} have several labels: the task is multi-label"
    return "classification", None


def _check_classes(splits: Splits[Any], where: str, *, least: int) -> None:
    """Check that there are two classes of two texts each: one to train, one to validate."""
    parts = [part.label_counts() for part in splits.parts().values()]
    counts = {name: n and sum(part[name] for part in parts) for name, n in parts[0].items()}
    if len(counts) == 1:
        raise HeadstartError(
            f"there is one class only: {short_label(*counts)}",
            where=where,
            fix="add texts of another class, or name the right column with --label-column",
            code="label-column",
        )
    rare = [name for name, count in counts.items() if count < least]
    if rare:
        raise HeadstartError(
            f"{len(rare)} of {len(counts)} classes have fewer than two different texts: "
            + listed(rare),
            where=where,
            fix="add texts, merge rare classes, or delete their rows; many such classes look like "
            "the wrong column: --label-column NAME",
        )


def _sort_labels(labels: set[str], declared: Sequence[str] | None, task: str) -> list[str]:
    """Sort labels as declared; else numbers by size, words by alphabet, and O before other tags."""
    if declared is not None:
        return [label for label in declared if label in labels]

    def key(label: str) -> tuple[bool, float, str, str]:
        if task == "tagging":
            return (label != "O", 0.0, label.partition("-")[2], label)
        try:
            return (False, float(label), "", label)
        except ValueError:
            return (True, 0.0, "", label)

    return sorted(labels, key=key)


# Splits, folds and label budgets


def _ranks(texts: Sequence[Text], part: Part, seed: int) -> list[bytes]:
    """Return each row's place in the shuffled order: a hash of its class and a text of it."""
    ranks = []
    numbers, names = part.classes
    for text, number in zip(texts, numbers, strict=True):
        hashed = blake2b(digest_size=16, key=str(seed).encode())
        hashed.update(names[number].encode())
        hashed.update(b"\0")
        hashed.update((text if isinstance(text, str) else "\ufdd0".join(text)).encode())
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
        tests = _tenth(len(members), least=2) if with_test else 0
        end = tests + _tenth(len(members), least=3 if with_test else 2)
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


def _tenth(count: int, *, least: int) -> int:
    """Size a part's rows of one class: at least one where the class has `least` rows or more."""
    return 0 if count < least else max(1, round(count * 0.1))


def deal_folds(part: Part, count: int, seed: int) -> list[list[int]]:
    """Deal rows into stratified folds, by group text; return the positions of each, ascending."""
    classes, ranks = part.classes[0], _ranks(part.keys, part, seed)
    groups = [text_key(text) for text in part.groups]
    count = min(count, len(set(groups)))
    places: dict[bytes, int] = {}
    for row in sorted(range(len(part)), key=lambda row: (classes[row], ranks[row])):
        places.setdefault(groups[row], len(places) % count)
    rows = range(len(part))
    return [[row for row in rows if places[groups[row]] == fold] for fold in range(count)]


def drop_overlapping(splits: Splits[PartT]) -> Splits[PartT]:
    """Drop training rows that overlap with validation or test, and validation rows with test."""
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
    """Select a label budget, `100`, `10%` or `all`: a prefix of one order that is stratified."""
    texts, (classes, names) = part.keys, part.classes
    ranks = _ranks(texts, part, seed)
    first: dict[object, int] = {}
    for row in sorted(range(len(part)), key=ranks.__getitem__):
        first.setdefault((text_key(texts[row]), classes[row]), row)
    size = _budget_size(budget, len(first), len(names))
    rows = _interleave(first.values(), part, ranks)
    return part.pick(rows[:size], duplicate=len(part) - len(first))


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
            fix="choose a smaller one, or all",
        )
    if size < classes:
        raise HeadstartError(
            f"a budget of {size:,} labels is too small for {classes} classes",
            fix="every class needs at least one",
        )
    return size
