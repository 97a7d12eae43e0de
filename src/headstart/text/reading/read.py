"""From a person's labelled files to checked, split datasets: `read_dataset`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.text.checking.checks import (
    check_classes,
    checked_label,
    checked_labels,
    checked_text,
    unknown_label,
)
from headstart.text.checking.splits import drop_overlap as without_overlap
from headstart.text.checking.splits import split
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.reading.named_sources import SPLIT_SEED, open_hub
from headstart.text.reading.part_files import find_part_files
from headstart.text.reading.rows import ReadOptions, SourceRows, open_rows
from headstart.text.reading.sources import Source, find_parts, find_source

Given = str | Path


class _Labelled:
    """Texts with the names of their labels, and where each came from."""

    def __init__(
        self,
        options: ReadOptions,
        progress: ProgressCallback | None,
        *,
        several_labels: bool = False,
    ) -> None:
        self.options = options
        self.check = checked_labels if several_labels else checked_label
        self.progress = progress
        self.texts: list[str] = []
        self.labels: list[str] = []
        self.places: list[tuple[SourceRows, int]] = []
        self.found: list[str] = []
        self.empty = 0
        self.declared: list[str] | None = None

    def add(self, source: Source, role: str) -> None:
        """Read one source to its end, checking every row."""
        opened = open_rows(source, self.options, labelled=True, role=role)
        self.found.append(f"{source.name}: {opened.found}")
        self.declared = self.declared or opened.label_names
        before = len(self.texts) + self.empty
        for row in opened.rows:
            where = partial(opened.where, row.number, self.options.encoding)
            text = checked_text(row.text, where)
            if not text:
                self.empty += 1
                continue
            self.labels.append(self.check(row.label, opened.label_names, where))
            self.texts.append(text)
            self.places.append((opened, row.number))
            if self.progress and len(self.texts) % 1000 == 0:
                self.progress(len(self.texts), None)
        if len(self.texts) + self.empty == before:
            raise HeadstartError("the file holds no rows", where=source.name)

    def dataset(self, name: str, label_names: Sequence[str] | None = None) -> Dataset:
        """Number the labels, by `label_names` or in an order of our own."""
        if label_names is None:
            label_names = _in_order(set(self.labels), self.declared)
        numbers = {label: number for number, label in enumerate(label_names)}
        for label, (opened, row) in zip(self.labels, self.places, strict=True):
            if label not in numbers:
                raise unknown_label(label, label_names, opened.where(row, self.options.encoding))
        return Dataset(
            name,
            self.texts,
            [numbers[label] for label in self.labels],
            tuple(label_names),
            {"empty": self.empty} if self.empty else {},
        )


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
    """Every row of one source, numbered by labels that are known already.

    With `several_labels` a row's name is that of its combination, and those are as they come.
    """
    options = ReadOptions(text_column, label_column, encoding, pairs, second_column)
    labelled = _Labelled(options, progress, several_labels=several_labels)
    labelled.add(find_source(source), "test")
    name = Path(str(source)).name
    return labelled.dataset(name, None if several_labels else label_names)


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
) -> Splits:
    """Read labelled texts and their splits.

    Several files are the parts that their names tell (`part_files`), else one training file. A part
    that is not given is cut from the training texts, stratified and without duplicates;
    only with `validation` alone there is no test part, as the file was split already.

    Parameters
    ----------
    source : path, name or a list of them
        Files, a folder with files called train, validation and test, `rotten-tomatoes`, `imdb` or
        `hub:owner/name`.
    text_column, label_column, second_column : str, optional
        The columns of a table, where their names do not tell.
    encoding : str
    validation, test : path, optional
        Files of their own for these parts.
    seed : int
        Of the split, where parts are cut.
    drop_overlap : bool
        Remove training texts that given validation or test files also hold.
    pairs : bool
        A text is two texts of a row (`rows.join_pair`).
    several_labels : bool
        A label is a combination of labels (`checks.checked_labels`); rare ones are no problem.
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
    options = ReadOptions(text_column, label_column, encoding, pairs, second_column)
    given = [source] if isinstance(source, str | Path) else list(source)
    train_sources, given_validation, given_test, notes = _parts(given, validation, test)

    train = _Labelled(options, progress, several_labels=several_labels)
    for one in train_sources:
        train.add(one, "train")
    name = ", ".join(Path(str(one)).name for one in given)
    whole = train.dataset(name)
    if not several_labels:
        check_classes(_present(whole), ", ".join(map(str, given)))

    found = list(train.found)
    read: dict[str, Dataset] = {}
    for role, part in (("validation", given_validation), ("test", given_test)):
        if part is not None:
            labelled = _Labelled(options, progress, several_labels=several_labels)
            labelled.add(part, role)
            read[role] = labelled.dataset(name, None if several_labels else whole.label_names)
            found += labelled.found

    if "validation" in read:
        splits = Splits(whole, read["validation"], read.get("test"))
    else:
        embedded = any(one.kind == "embedded" for one in train_sources)
        cut = _unstratified_split if several_labels else split
        splits = cut(whole, SPLIT_SEED if embedded else seed, with_test="test" not in read)
        if not several_labels:
            check_classes(_learnable(splits), f"{name}, after removing duplicates")
        splits = Splits(splits.train, splits.validation, read.get("test", splits.test))
    splits = Splits(splits.train, splits.validation, splits.test, tuple(found), notes)
    return without_overlap(splits) if drop_overlap and read else splits


def _unstratified_split(whole: Dataset, seed: int, *, with_test: bool) -> Splits:
    """Combinations of labels are too many and too rare to have each in every part."""
    alike = replace(whole, labels=[0] * len(whole), label_names=("",))
    label_of = dict(zip(whole.texts, whole.labels, strict=True))

    def labelled(part: Dataset) -> Dataset:
        labels = [label_of[text] for text in part.texts]
        return replace(part, labels=labels, label_names=whole.label_names)

    cut = split(alike, seed, with_test=with_test)
    test = None if cut.test is None else labelled(cut.test)
    return Splits(labelled(cut.train), labelled(cut.validation), test)


def _parts(
    given: Sequence[Given], validation: Given | None, test: Given | None
) -> tuple[list[Source], Source | None, Source | None, tuple[str, ...]]:
    """The sources of the three parts; folders, names of files and the Hub bring parts of their own.

    What was made of several files is said in the last one, for people.
    """
    sources = find_parts(given[0]) if len(given) == 1 else {}
    notes: tuple[str, ...] = ()
    if sources:
        train = [sources["train"]]
    else:
        files = find_part_files(given, validation=validation, test=test)
        train, notes = [find_source(one) for one in files.train], files.notes
        validation, test = files.validation, files.test
        if len(given) == 1 and train[0].kind == "hub":
            opened = open_hub(train[0].name)
            sources = {role: train[0] for role in ("validation", "test") if opened.split(role)}
    if validation is not None:
        sources["validation"] = find_source(validation)
    if test is not None:
        sources["test"] = find_source(test)
    return train, sources.get("validation"), sources.get("test"), notes


def _present(dataset: Dataset) -> Counter[str]:
    return Counter({name: count for name, count in dataset.class_counts().items() if count})


def _learnable(splits: Splits) -> dict[str, int]:
    """How many texts each class has over all parts; none if training has none of them."""
    counts = [part.class_counts() for part in splits.parts().values()]
    return {
        name: sum(count[name] for count in counts) if in_train else 0
        for name, in_train in counts[0].items()
    }


def _in_order(labels: set[str], declared: Sequence[str] | None) -> list[str]:
    """The file's own order where it has one; else numbers by size and words by alphabet."""
    if declared is not None:
        return [label for label in declared if label in labels]

    def key(label: str) -> tuple[bool, float, str]:
        try:
            return (False, float(label), label)
        except ValueError:
            return (True, 0.0, label)

    return sorted(labels, key=key)
