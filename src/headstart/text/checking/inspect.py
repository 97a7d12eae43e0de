"""Look at the data before training: what there is, what would be cut, what is in two places.

`inspect_data` goes through every text once, in the order train, validation, test, corpus. Each
is compared with what came before it; only the first part of a large corpus is kept for that, so
memory stays flat.
"""

import itertools
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol, get_args

import numpy as np

from headstart.text.checking.checks import odd_characters
from headstart.text.checking.containment import ContainedTexts
from headstart.text.checking.duplicates import SimilarTexts, text_key
from headstart.text.checking.inspection import (
    Conflict,
    Example,
    Inspection,
    Overlap,
    PartReport,
    find_warnings,
)
from headstart.text.reading.corpus import Corpus
from headstart.text.reading.dataset import Splits

PERCENTILES = (5, 25, 50, 75, 95)
EXAMPLES = 3
# Duplicates within a corpus are looked for up to here; beyond it, only overlap with the dataset.
CORPUS_DOCUMENTS = 100_000
CORPUS_CHARACTERS = 150_000_000
_BATCH = 500

_How = Literal["equal", "similar", "inside"]
_HOW = get_args(_How)


class Encoder(Protocol):
    """The one ability of a tokenizer that is needed here."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...


class _Inspector:
    """Goes through the parts and remembers what it has seen."""

    def __init__(
        self,
        length: int,
        tokenizer: Encoder | None,
        progress: Callable[[int, int | None], None] | None,
        bytes_total: int | None,
        held_out: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.length = length
        self.tokenizer = tokenizer
        self.progress = progress
        self.bytes_total = bytes_total
        self.bytes_done = 0
        self.index = SimilarTexts()
        self.owners: list[str] = []  # the part of each indexed text
        self.seen: dict[bytes, dict[str, str]] = {}  # text key → part → the text as it is there
        # Pair of parts → text key → how the text stands there.
        self.overlapping: dict[tuple[str, str], dict[bytes, tuple[_How, Example]]] = defaultdict(
            dict
        )
        self.held_out = held_out  # (part, text): what is looked for inside the corpus
        self.contained = ContainedTexts(text for _, text in held_out)
        self.odd_examples: dict[str, str] = {}

    def look_at(self, report: PartReport, texts: Iterable[str]) -> None:
        """Fill one part's report."""
        lengths = array("L")
        odd: Counter[str] = Counter()
        characters = 0
        for batch in _batches(texts):
            lengths.extend(self._count(batch))
            signatures = self.index.signatures(batch)
            if report.name == "corpus":
                self._note_contained(batch)
            for text, signature in zip(batch, signatures, strict=True):
                oddities = odd_characters(text)
                report.odd_documents += bool(oddities)
                for kind, example in oddities.items():
                    odd[kind] += 1
                    self.odd_examples.setdefault(kind, example)
                characters += len(text)
                keep = report.name != "corpus" or (
                    report.compared < CORPUS_DOCUMENTS and characters < CORPUS_CHARACTERS
                )
                self._compare(report, text, signature, keep)
            self.bytes_done += _size(batch)
            if self.progress:
                self.progress(self.bytes_done, self.bytes_total)
        self._measure(report, lengths)
        report.odd_characters = dict(odd.most_common())

    def _count(self, texts: Sequence[str]) -> list[int]:
        if self.tokenizer is None:
            return [len(text.split()) for text in texts]
        return [len(ids) for ids in self.tokenizer.encode(texts)]

    def _compare(self, report: PartReport, text: str, signature: object, keep: bool) -> None:
        key = text_key(text)
        matches = self.index.find(text, signature)
        places = self.seen.get(key, {})
        similar: dict[str, Example] = {}
        for match in matches:
            owner = self.owners[match.key]
            other = self.index.text(match.key)
            similar.setdefault(owner, Example(text, other, match.similarity))
        for owner in {*places, *similar} - {report.name}:
            equal = owner in places
            example = Example(text, places[owner], 1.0) if equal else similar[owner]
            # A corpus may repeat a text: what counts is how many of the dataset's it holds.
            counted = text_key(example.other) if report.name == "corpus" else key
            self._note(report.name, owner, counted, "equal" if equal else "similar", example)
        if not keep:
            return
        report.compared += 1
        if report.name in places:
            report.duplicates += 1
            return
        self.seen.setdefault(key, {})[report.name] = text
        if report.name in similar:
            report.near_duplicates += 1  # one of a family is enough in the index
        else:
            self.index.add(text, signature)
            self.owners.append(report.name)

    def _note_contained(self, documents: Sequence[str]) -> None:
        for document, texts in zip(documents, self.contained.find(documents), strict=True):
            for part, text in (self.held_out[number] for number in texts):
                example = Example(document, text, 1.0, inside=True)
                self._note("corpus", part, text_key(text), "inside", example)

    def _note(self, later: str, owner: str, key: bytes, how: "_How", example: Example) -> None:
        """Each text counts once, as what comes first of equal, similar and inside."""
        pair = self.overlapping[later, owner]
        if key not in pair or _HOW.index(how) < _HOW.index(pair[key][0]):
            pair[key] = (how, example)

    def _measure(self, report: PartReport, lengths: "array[int]") -> None:
        counts = np.frombuffer(lengths, dtype=np.dtype("L"))
        report.documents, report.tokens = len(counts), int(counts.sum())
        if not len(counts):
            return
        values = np.percentile(counts, PERCENTILES, method="nearest")
        report.percentiles = {
            str(p): int(value) for p, value in zip(PERCENTILES, values, strict=True)
        } | {"max": int(counts.max())}
        over = counts[counts > self.length]
        report.cut_documents = len(over)
        report.cut_tokens = int(over.sum()) - self.length * len(over)

    def overlaps(self, parts: Sequence[PartReport]) -> list[Overlap]:
        """Every pair of parts, also those without overlap: that is news too."""
        sizes = {part.name: part.documents for part in parts}
        found = []
        for other, later in itertools.combinations(sizes, 2):
            pairs = self.overlapping[later, other].values()
            part, within = (other, later) if later == "corpus" else (later, other)
            counts = Counter(how for how, _ in pairs)
            looked_inside = within == "corpus" and part != "train"
            examples = sorted((example for _, example in pairs), key=lambda e: -e.similarity)
            found.append(
                Overlap(
                    part,
                    within,
                    sizes[part],
                    counts["equal"],
                    counts["similar"],
                    counts["inside"] if looked_inside else None,
                    _varied(examples),
                )
            )
        return found


def inspect_data(
    splits: Splits | None,
    corpus: Corpus | None = None,
    *,
    length: int = 512,
    tokenizer: Encoder | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Inspection:
    """Look at a dataset, a corpus or both before training.

    Parameters
    ----------
    splits : Splits, optional
    corpus : Corpus, optional
    length : int
        Texts longer than this would be cut.
    tokenizer : Encoder, optional
        Counts lengths in tokens; without it they are counted in words.
    progress : callable, optional
        Called with the bytes of text read so far and, where it is known, the total.

    Returns
    -------
    Inspection
        Sizes, duplicates, overlaps and odd characters, and the warnings that follow.
    """
    total = corpus.size if corpus else 0
    if total is not None and splits is not None:
        total += sum(_size(part.texts) for part in splits.parts().values())
    held_out = _held_out(splits, corpus) if splits and corpus else []
    inspector = _Inspector(length, tokenizer, progress, total, held_out)
    parts = []
    for name, dataset in (splits.parts() if splits else {}).items():
        report = PartReport(name, labels=dataset.class_counts(), dropped=dict(dataset.dropped))
        inspector.look_at(report, dataset.texts)
        parts.append(report)
    if corpus is not None:
        report = PartReport("corpus")
        inspector.look_at(report, corpus)
        report.dropped = {
            reason: count
            for reason, count in (("empty", corpus.empty), ("held-out", corpus.left_out))
            if count
        }
        parts.append(report)
    conflicts = _conflicts(splits)
    inspection = Inspection(
        length=length,
        unit="words" if tokenizer is None else "tokens",
        found=[
            *((*splits.notes, *splits.found) if splits else ()),
            *(corpus.found if corpus else ()),
        ],
        parts=parts,
        overlaps=inspector.overlaps(parts),
        conflicts=len(conflicts),
        conflict_examples=conflicts[:EXAMPLES],
        odd_examples=inspector.odd_examples,
    )
    inspection.warnings = find_warnings(inspection, corpus.unread_files if corpus else [])
    return inspection


def _held_out(splits: Splits, corpus: Corpus) -> list[tuple[str, str]]:
    """The validation and test texts that the corpus may contain, each with its part's name."""
    return [
        (name, text)
        for name, part in splits.parts().items()
        for text in part.texts
        if name != "train" and text_key(text) not in corpus.held_out_keys
    ]


def _conflicts(splits: Splits | None) -> list[Conflict]:
    labels: dict[bytes, dict[str, None]] = defaultdict(dict)
    texts: dict[bytes, str] = {}
    for dataset in (splits.parts() if splits else {}).values():
        for text, label in zip(dataset.texts, dataset.labels, strict=True):
            key = text_key(text)
            labels[key][dataset.label_names[label]] = None
            texts.setdefault(key, text)
    return [Conflict(texts[key], list(found)) for key, found in labels.items() if len(found) > 1]


def _varied(examples: Sequence[Example]) -> list[Example]:
    """A few examples, from the most similar to the least."""
    if len(examples) <= EXAMPLES:
        return list(examples)
    return [examples[round(i * (len(examples) - 1) / (EXAMPLES - 1))] for i in range(EXAMPLES)]


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(texts)
    while batch := list(itertools.islice(iterator, _BATCH)):
        yield batch
