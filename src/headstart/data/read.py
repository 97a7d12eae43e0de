"""Read labelled files as checked, split datasets; guess the task that they are for."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from headstart.data.columns import ReadOptions, names_a_pair
from headstart.data.dataset import (
    Dataset,
    Questions,
    Sentences,
    Splits,
    Text,
    listed,
    short_label,
)
from headstart.data.readers import SPLIT_SEED, Row, open_hub, open_rows, strict
from headstart.data.sources import (
    TABLES,
    Given,
    Source,
    find_kind,
    find_parts,
    find_source,
    part_of,
)
from headstart.data.splits import drop_overlapping, split
from headstart.data.stream import Lines
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback

PROGRESS_ROWS = 1_000
GUESS_ROWS = 1_000  # whose labels are looked at to guess the task
SHOWN = 5  # groups of labels in a message
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
    part that is not given is split off the training rows, stratified and without duplicates;
    only with `validation` alone there is no test part, as the file was split already. Every row of
    a file is used, counted in `dropped`, or an error.

    Parameters
    ----------
    source : path, name or a list of them
        Files, a folder with files called train, validation and test, a folder with one subfolder
        per class, `rotten-tomatoes`, `imdb` or `hub:owner/name`.
    task : str
        classification, pairs, multi-label (a label is a combination of labels), tagging (CoNLL
        files) or spans (SQuAD's JSON).
    validation, test : path, optional
        Separate files for these parts.
    seed : int
        Of the split, where parts are split off.
    drop_overlap : bool
        Drop training texts that overlap with given validation or test files.
    progress : callable, optional
        Called with the rows read so far.
    options : the columns of a table and the encoding, as in `ReadOptions`.

    Returns
    -------
    Splits of Dataset, Sentences or Questions

    Example
    -------
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
    if task not in ("multi-label", "spans"):
        _check_classes(train.label_counts(), where, least=0 if task == "tagging" else 2)
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
        _check_split(task, splits, name)
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
    """Read every row of one source, with labels that are known already.

    For multi-label the names are those of the combinations in the file.
    """
    known = None if task == "multi-label" else label_names
    sources = [find_source(source, FILE_KINDS.get(task))]
    name = Path(source).name
    return _read_part(name, task, sources, ReadOptions(**options), known, progress)[0]


def _read_part(
    name: str,
    task: str,
    sources: Sequence[Source],
    options: ReadOptions,
    label_names: Sequence[str] | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Any, list[str], list[str]]:
    """Read sources to their ends; the first bad row is an error.

    Returns
    -------
    Part, list of str, list of str
        The rows; how the sources were read; and notes on columns and labels, for the user to check.
    """
    rows: list[tuple[Row, str]] = []
    found, notes = list[str](), list[str]()
    spellings: dict[str, set[str]] = defaultdict(set)
    declared: list[str] | None = None
    for source in sources:
        if source.kind == "conll" and task != "tagging":
            raise HeadstartError(
                "the file has words and tags, not texts with labels",
                where=source.name,
                fix="give --task tagging, or a table with a text and a label column",
            )
        opened = open_rows(
            source,
            options,
            labels="several" if task == "multi-label" else "one",
            pairs=task in ("pairs", "spans"),
        )
        found.append(f"{source.name}: {opened.found}")
        notes += found[-1:] if opened.columns.guessed or source.kind == "classes" else []
        before = len(rows)
        for row in strict(opened):
            rows.append((row._replace(columns={}), row.file or source.name))
            if progress and len(rows) % PROGRESS_ROWS == 0:
                progress(len(rows), None)
        if len(rows) == before:
            raise HeadstartError(
                "the file holds no rows", where=source.name, fix="add rows, or name another file"
            )
        declared = declared or opened.label_names
        for label, written in opened.spellings.items():
            spellings[label] |= written
    notes += _spelling_notes(spellings)
    used = [(row, file) for row, file in rows if row.problem is None]
    files = [file for _, file in used]
    place: dict[str, Any] = {
        "rows": [row.number for row, _ in used],
        "files": files if len(set(files)) > 1 else [],
        "dropped": {"empty": len(rows) - len(used)} if len(used) < len(rows) else {},
    }
    texts = [row.text for row, _ in used]
    if task == "spans":
        questions, contexts = [text[0] for text in texts], [text[1] for text in texts]
        answers = [row.label for row, _ in used]
        return Questions(name, questions, contexts, answers, **place), found, notes

    labels = [row.label if task == "tagging" else [row.label] for row, _ in used]
    if label_names is None:
        label_names = _sort_labels({label for names in labels for label in names}, declared, task)
    numbers = {label: number for number, label in enumerate(label_names)}
    for (row, file), names in zip(used, labels, strict=True):
        unknown = [label for label in names if label not in numbers]
        if unknown:
            raise HeadstartError(
                f"label {short_label(unknown[0])} does not occur in the training rows; known are "
                + listed(label_names, 20),
                where=replace(sources[0], name=file).row(row.number, row.line),
                fix="correct it, or give the training file examples of it",
            )
    numbered = [[numbers[label] for label in names] for names in labels]
    if task == "tagging":
        words = [row.words or [] for row, _ in used]
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


def _spelling_notes(spellings: Mapping[str, set[str]]) -> list[str]:
    """Report labels that may be the same class, and spellings that are one class."""
    similar = [
        f"labels {listed(group)} differ only in case, white space or Unicode form, and are "
        "different classes here"
        for group in similar_labels(spellings)[:SHOWN]
    ]
    return similar + [
        f"labels {listed(sorted(written))} are one class: {short_label(name)}"
        for name, written in spellings.items()
        if len(written) > 1
    ]


def read_texts(sources: Iterable[Given], *, encoding: str = "utf-8") -> list[Text]:
    """Read the texts of labelled or unlabelled files, to keep them out of a corpus.

    Of a dataset with parts, only validation and test are read.
    """
    texts: list[Text] = []
    for given in sources:
        parts, _ = find_parts([given])
        kinds = {source.kind for source in parts["train"]}
        if kinds & {"embedded", "hub"} or parts["test"] or parts["validation"]:
            splits = read_dataset(given, encoding=encoding)
            held_out = [part for name, part in splits.parts().items() if name != "train"]
            texts += [text for part in held_out for text in part.texts]
        else:
            for source in parts["train"]:
                rows = open_rows(source, ReadOptions(encoding=encoding))
                texts += [row.text for row in strict(rows) if row.text]
    return texts


def similar_labels(names: Iterable[str]) -> list[list[str]]:
    """Group labels that differ only in case, white space, Unicode form or invisible characters.

    Example
    -------
    >>> similar_labels(["pos", "neg", "Pos", "po s"])
    [['Pos', 'po s', 'pos']]
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        visible = (c for c in plain if not c.isspace() and unicodedata.category(c) != "Cf")
        groups["".join(visible)].append(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def guess_task(
    sources: Sequence[Given], options: ReadOptions | None = None
) -> tuple[str, str | None]:
    """Guess the task that a dataset is for, from its first file.

    Returns
    -------
    str, str or None
        The task, and a sentence that says why it is not classification.
    """
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
    source, first = find_source(path), list[Row]()
    label = ""
    try:
        start = Lines(source, options.encoding).start if kind == "json" else ""
        if '"paragraphs"' in start and '"qas"' in start:
            return "spans", f"{path.name} has questions in SQuAD's form: the task is spans"
        rows = open_rows(source, options, labels="several", all_columns=True)
        label, first = rows.columns.label or "", list(islice(rows, GUESS_ROWS))
    except HeadstartError:
        pass  # the reading of all rows has the message
    if first and names_a_pair(first[0].columns, options):
        return "pairs", f"{path.name} has two columns of texts: the task is pairs"
    cells = [row.columns.get(label) for row in first]
    if any(isinstance(one, list) or (isinstance(one, str) and "|" in one) for one in cells):
        return "multi-label", f"rows of {path.name} have several labels: the task is multi-label"
    return "classification", None


def _check_classes(counts: Mapping[str, int], where: str, *, least: int = 2) -> None:
    """Check that there are two classes of two texts each: one to train, one to validate."""
    if not counts:
        raise HeadstartError("there is no text in it", where=where)
    if len(counts) == 1:
        raise HeadstartError(
            f"there is one class only: {short_label(*counts)}",
            where=where,
            fix="add texts of another class, or name the right column with --label-column",
            code="label-column",
        )
    rare = [name for name, count in counts.items() if count < least]
    if rare:
        many = "; so many classes look like the wrong column: --label-column NAME"
        raise HeadstartError(
            f"{len(rare)} of {len(counts)} classes have fewer than two different texts: "
            + listed(rare),
            where=where,
            fix="add texts, join rare classes, or delete their rows"
            + (many if len(counts) > 50 else ""),
        )


def _check_split(task: str, splits: Splits[Any], name: str) -> None:
    """Check that enough rows are left after a split that dropped duplicates."""
    if task in FILE_KINDS and not len(splits.validation):
        raise HeadstartError(
            "there are too few different texts to split a validation part off",
            where=name,
            fix="give more, or --validation FILE",
        )
    if task in ("classification", "pairs"):
        counts = [part.label_counts() for part in splits.parts().values()]
        in_all = {
            label: sum(count[label] for count in counts) if in_train else 0
            for label, in_train in counts[0].items()
        }
        _check_classes(in_all, f"{name}, after removing duplicates")


def _sort_labels(labels: set[str], declared: Sequence[str] | None, task: str) -> list[str]:
    """Sort labels as the file declares them; else numbers by size and words by alphabet.

    Of tags, O is the first; others are sorted by kind, B before I.
    """
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
