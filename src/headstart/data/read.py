"""Read labelled files as checked, split datasets; guess the task that they are for."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from headstart.data.dataset import Dataset, Splits, Text, listed, short_label
from headstart.data.readers import (
    SPLIT_SEED,
    Labels,
    ReadOptions,
    open_hub,
    open_rows,
    strict,
)
from headstart.data.sources import (
    TABLES,
    Given,
    Source,
    find_kind,
    find_parts,
    find_source,
    part_of,
)
from headstart.data.splits import make_splits
from headstart.data.stream import Lines
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback

PROGRESS_ROWS = 1_000
GUESS_ROWS = 1_000  # whose labels are looked at to guess the task
SHOWN = 5  # groups of labels in a message


class _LabelledRows:
    """Rows of one or several sources, checked, with the places they come from."""

    def __init__(
        self, options: ReadOptions, labels: Labels, pairs: bool, progress: ProgressCallback | None
    ) -> None:
        self.options = options
        self.kind: Labels = labels
        self.pairs = pairs
        self.progress = progress
        self.texts: list[Text] = []
        self.labels: list[str] = []
        self.rows: list[int] = []
        self.files: list[str] = []
        self.found: list[str] = []
        self.notes: list[str] = []
        self.empty = 0
        self.declared: list[str] | None = None
        self.spellings: dict[str, set[str]] = defaultdict(set)

    def add(self, source: Source, role: str) -> None:
        """Read one source to its end; the first bad row is an error."""
        opened = open_rows(source, self.options, labels=self.kind, pairs=self.pairs, role=role)
        self.found.append(f"{source.name}: {opened.found}")
        if opened.columns.guessed:
            self.notes.append(self.found[-1])
        self.declared = self.declared or opened.label_names
        self.source = source
        before = len(self.texts) + self.empty
        for row in strict(opened):
            if row.problem is not None:
                self.empty += 1
                continue
            assert row.label is not None
            self.texts.append(row.text)
            self.labels.append(row.label)
            self.rows.append(row.number)
            self.files.append(row.file or source.name)
            if self.progress and len(self.texts) % PROGRESS_ROWS == 0:
                self.progress(len(self.texts), None)
        for name, written in opened.spellings.items():
            self.spellings[name] |= written
        if len(self.texts) + self.empty == before:
            raise HeadstartError(
                "the file holds no rows", where=source.name, fix="add rows, or name another file"
            )

    def dataset(self, name: str, label_names: Sequence[str] | None = None) -> Dataset:
        """Number the labels, by `label_names` or in a fixed order."""
        if label_names is None:
            label_names = _sort_labels(set(self.labels), self.declared)
        numbers = {label: number for number, label in enumerate(label_names)}
        for place, label in enumerate(self.labels):
            if label not in numbers:
                raise HeadstartError(
                    f"label {short_label(label)} does not occur in the training texts; known are "
                    + listed(label_names, 20),
                    where=self.source.row(self.rows[place]),
                    fix="correct it, or give the training file examples of it",
                )
        return Dataset(
            name,
            self.texts,
            [numbers[label] for label in self.labels],
            tuple(label_names),
            several_labels=self.kind == "several",
            rows=self.rows,
            files=self.files if len(set(self.files)) > 1 else [],
            dropped={"empty": self.empty} if self.empty else {},
        )

    def label_notes(self) -> list[str]:
        """Report labels that may be the same class, and spellings that are one class."""
        notes = [
            f"labels {listed(group)} differ only in case, white space or Unicode form, and are "
            "different classes here"
            for group in similar_labels(self.spellings)[:SHOWN]
        ]
        for name, written in self.spellings.items():
            if len(written) > 1 and self.declared is None:
                notes.append(f"labels {listed(sorted(written))} are one class: {short_label(name)}")
        return notes


def read_dataset(
    source: Given | Sequence[Given],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    encoding: str = "utf-8",
    validation: Given | None = None,
    test: Given | None = None,
    seed: int = 0,
    drop_overlap: bool = False,
    pairs: bool = False,
    second_column: str | None = None,
    several_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> Splits[Dataset]:
    """Read labelled texts and their splits.

    Several files are the parts that their names imply (`find_parts`), else one training file. A
    part that is not given is split off the training texts, stratified and without duplicates;
    only with `validation` alone there is no test part, as the file was split already. Every row of
    a file is used, counted in `dropped`, or an error.

    Parameters
    ----------
    source : path, name or a list of them
        Files, a folder with files called train, validation and test, a folder with one subfolder
        per class, `rotten-tomatoes`, `imdb` or `hub:owner/name`.
    text_column, label_column, second_column : str, optional
        The columns of a table; by default they are found by name or guessed.
    encoding : str
    validation, test : path, optional
        Separate files for these parts.
    seed : int
        Of the split, where parts are split off.
    drop_overlap : bool
        Drop training texts that overlap with given validation or test files.
    pairs : bool
        A text is a tuple of two texts.
    several_labels : bool
        A label is a combination of labels; rare ones are no problem.
    progress : callable, optional
        Called with the rows read so far.

    Returns
    -------
    Splits

    Example
    -------
    >>> splits = read_dataset("rotten-tomatoes")
    >>> splits.train.label_names
    ('negative', 'positive')
    """
    options = ReadOptions(text_column, label_column, second_column, encoding)
    kind: Labels = "several" if several_labels else "one"
    given = [source] if isinstance(source, str | Path) else list(source)
    files = find_parts(given, validation=validation, test=test)
    later = {"validation": files.validation, "test": files.test}
    if len(files.train) == 1 and files.train[0].kind == "hub":
        parts = open_hub(files.train[0].name)[1]
        later = {part: later[part] or (files.train[0] if part in parts else None) for part in later}

    train = _LabelledRows(options, kind, pairs, progress)
    for one in files.train:
        train.add(one, "train")
    name = ", ".join(Path(str(one)).name for one in given)
    whole = train.dataset(name)
    if not several_labels:
        present = Counter(whole.label_names[label] for label in whole.labels)
        _check_classes(present, ", ".join(map(str, given)))
    found, notes = list(train.found), [*files.notes, *train.notes, *train.label_notes()]
    read: dict[str, Dataset] = {}
    for role, file in later.items():
        if file is not None:
            rows = _LabelledRows(options, kind, pairs, progress)
            rows.add(file, role)
            read[role] = rows.dataset(name, None if several_labels else whole.label_names)
            found += rows.found
    embedded = any(one.kind == "embedded" for one in files.train)
    splits = make_splits(
        whole,
        read.get("validation"),
        read.get("test"),
        seed=SPLIT_SEED if embedded else seed,
        drops_overlap=drop_overlap,
        found=found,
        notes=dict.fromkeys(notes),
    )
    if not several_labels and "validation" not in read:
        _check_classes(_learnable(splits), f"{name}, after removing duplicates")
    return splits


def read_labelled(
    source: Given,
    label_names: Sequence[str],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    encoding: str = "utf-8",
    pairs: bool = False,
    second_column: str | None = None,
    several_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> Dataset:
    """Read every row of one source, with labels that are known already.

    With `several_labels` the names are those of the combinations in the file.
    """
    options = ReadOptions(text_column, label_column, second_column, encoding)
    rows = _LabelledRows(options, "several" if several_labels else "one", pairs, progress)
    rows.add(find_source(source), "test")
    return rows.dataset(Path(str(source)).name, None if several_labels else label_names)


def read_texts(sources: Iterable[Given], *, encoding: str = "utf-8") -> list[Text]:
    """Read the texts of labelled or unlabelled files, to keep them out of a corpus.

    Of a dataset with parts, only validation and test are read.
    """
    texts: list[Text] = []
    for given in sources:
        source, options = find_parts([given]), ReadOptions(encoding=encoding)
        if source.train[0].kind in ("embedded", "hub") or source.test or source.validation:
            splits = read_dataset(given, encoding=encoding)
            held_out = [part for name, part in splits.parts().items() if name != "train"]
            texts += [text for part in held_out for text in part.texts]
        else:
            for file in source.train:
                texts += [row.text for row in strict(open_rows(file, options)) if row.text]
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
    if not path.is_file() or find_kind(path)[0] is None:
        return "classification", None
    source = find_source(path)
    if source.kind == "conll":
        return "tagging", f"{path.name} has words and tags: the task is tagging"
    if source.kind == "json":
        start = Lines(source, options.encoding).start
        if '"paragraphs"' in start and '"qas"' in start:
            return "spans", f"{path.name} has questions in SQuAD's form: the task is spans"
    if source.kind not in TABLES:
        return "classification", None
    try:
        opened = open_rows(source, options, labels="several")
        cells = [row.columns.get(opened.columns.label or "") for row in islice(opened, GUESS_ROWS)]
    except HeadstartError:  # the reading of all rows has the message
        return "classification", None
    if any(isinstance(one, list) or (isinstance(one, str) and "|" in one) for one in cells):
        return "multi-label", f"rows of {path.name} have several labels: the task is multi-label"
    return "classification", None


def _check_classes(counts: Mapping[str, int], where: str) -> None:
    """Check that there are two classes of two texts each: one to train, one to validate."""
    if not counts:
        raise HeadstartError("there is no text in it", where=where)
    if len(counts) == 1:
        (name, count) = next(iter(counts.items()))
        raise HeadstartError(
            f"there is one class only: all {count:,} texts are {short_label(name)}",
            where=where,
            fix="add texts of another class, or name the right column with --label-column",
            code="label-column",
        )
    rare = [name for name, count in counts.items() if count < 2]
    if rare:
        many = "; so many classes look like the wrong column: --label-column NAME"
        raise HeadstartError(
            f"{len(rare)} of {len(counts)} classes have fewer than two different texts: "
            + listed(rare),
            where=where,
            fix="add texts, join rare classes, or delete their rows"
            + (many if len(counts) > 50 else ""),
        )


def _learnable(splits: Splits[Dataset]) -> dict[str, int]:
    """Count the texts of each class over all parts; none if training has none of them."""
    counts = [part.class_counts() for part in splits.parts().values()]
    return {
        name: sum(count[name] for count in counts) if in_train else 0
        for name, in_train in counts[0].items()
    }


def _sort_labels(labels: set[str], declared: Sequence[str] | None) -> list[str]:
    """Sort labels as the file declares them; else numbers by size and words by alphabet."""
    if declared is not None:
        return [label for label in declared if label in labels]

    def key(label: str) -> tuple[bool, float, str]:
        try:
            return (False, float(label), label)
        except ValueError:
            return (True, 0.0, label)

    return sorted(labels, key=key)
