"""Look at data before training: sizes, labels, what would be cut, what is in two places.

`inspect_data` reads every text once, in the order train, validation, test, corpus. Texts of
validation and test are looked for in everything before them and in the corpus. Duplicates within a
corpus are looked for among its first documents only, so that memory is limited.
"""

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headstart.data.corpus import Corpus
from headstart.data.dataset import Dataset, Part, Splits, Text, as_text, batched, listed
from headstart.data.overlap import (
    Example,
    HeldOutTexts,
    Match,
    Overlap,
    OverlapKind,
    SimilarTexts,
    minhash,
    text_key,
)
from headstart.data.read import similar_labels
from headstart.data.tokenizers import Tokenizer

PERCENTILES = (5, 25, 50, 75, 95)
EXAMPLES = 3
# Duplicates within a corpus are looked for up to here.
CORPUS_DOCUMENTS = 100_000
CORPUS_CHARACTERS = 150_000_000
RARE = 0.1  # a class this much rarer than the largest one is easily never predicted
NO_TEST_PART = (
    "there is no test part: results on validation, which also selects the settings, will look too "
    "good (--test FILE)"
)
# How a document relates to a text, seen from the text.
INVERSE: dict[OverlapKind, OverlapKind] = {
    "equal": "equal",
    "similar": "similar",
    "contains": "inside",
    "inside": "contains",
}
ORDER: tuple[OverlapKind, ...] = ("equal", "similar", "inside", "contains")
KIND_WORDS = {
    "equal": "equal",
    "similar": "nearly equal",
    "inside": "inside a longer text",
    "contains": "around a shorter one",
}
DROPPED = {
    "empty": "without text were dropped",
    "duplicate": "were dropped from the splits: they repeat another text",
    "conflicting": "were dropped from the splits: the same text has several labels",
    "overlap": "were dropped: they overlap with a text of validation or test",
    "held-out": "were dropped: each overlaps with a held-out text",
}


@dataclass
class PartReport:
    """What one part holds: train, validation, test or corpus.

    `labels` counts every label; `labelled` is what they are shares of: rows, or words of tags.
    `classes` says whether each row has exactly one of them.
    """

    name: str
    documents: int = 0
    tokens: int = 0
    percentiles: dict[str, int] = field(default_factory=dict)
    cut_documents: int = 0
    cut_tokens: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    compared: int = 0  # documents that duplicates were looked for among
    odd_documents: int = 0
    odd_characters: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] | None = None
    labelled: int = 0
    classes: bool = False
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass
class Conflict:
    """The same text with several labels."""

    text: str
    labels: list[str]


@dataclass
class Inspection:
    """Everything that `headstart inspect` shows; `warnings` is what other commands repeat."""

    length: int
    unit: str
    found: list[str]
    parts: list[PartReport]
    overlaps: list[Overlap]
    conflicts: int
    conflict_examples: list[Conflict]
    odd_examples: dict[str, str]
    warnings: list[str] = field(default_factory=list)


def inspect_data(
    splits: Splits[Any] | None,
    corpus: Corpus | None = None,
    *,
    length: int = 512,
    tokenizer: Tokenizer | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Inspection:
    """Look at a dataset, a corpus or both before training.

    Parameters
    ----------
    splits : Splits, optional
        Of any task.
    corpus : Corpus, optional
    length : int
        Texts longer than this would be cut.
    tokenizer : Tokenizer, optional
        Counts lengths in tokens; without it they are counted in words.
    progress : callable, optional
        Called with the bytes of text read so far and, where it is known, the total.

    Returns
    -------
    Inspection
        Sizes, labels, duplicates, overlaps and odd characters, and the warnings that follow.
    """
    given: dict[str, Part] = {} if splits is None else splits.parts()
    total = corpus.size if corpus else 0
    if total is not None:
        total += sum(_size(part.keys) for part in given.values())
    indexes = {
        name: HeldOutTexts(part.keys, contained=name != "train")
        for name, part in given.items()
        if name != "train" or corpus is not None
    }
    inspector = _Inspector(length, tokenizer, indexes, progress, total)
    names = list(given)
    for place, (name, part) in enumerate(given.items(), start=1):
        counts = part.label_counts()
        one_each = isinstance(part, Dataset) and not part.several_labels
        labelled = len(part) if isinstance(part, Dataset) else sum(counts.values())
        report = PartReport(name, labels=counts, labelled=labelled, classes=one_each)
        report.dropped = dict(part.dropped)
        inspector.look_at(report, part.keys, names[place:])
    if corpus is not None:
        report = PartReport("corpus")
        inspector.look_at(report, corpus, names)
        overlapping = corpus.overlapping.total() if corpus.overlapping else 0
        dropped = {"empty": corpus.empty or 0, "held-out": overlapping}
        report.dropped = {reason: count for reason, count in dropped.items() if count}
    conflicts = _conflicts(given.values())
    notes = (*splits.notes, *splits.found) if splits is not None else ()
    inspection = Inspection(
        length=length,
        unit="words" if tokenizer is None else "tokens",
        found=list(dict.fromkeys([*notes, *(corpus.found if corpus else ())])),
        parts=inspector.reports,
        overlaps=inspector.overlaps(),
        conflicts=len(conflicts),
        conflict_examples=conflicts[:EXAMPLES],
        odd_examples=inspector.odd_examples,
    )
    inspection.warnings = _find_warnings(inspection, corpus.unread_files if corpus else [])
    return inspection


class _Inspector:
    """Reads the parts and remembers what it has seen."""

    def __init__(
        self,
        length: int,
        tokenizer: Tokenizer | None,
        indexes: dict[str, HeldOutTexts],
        progress: Callable[[int, int | None], None] | None,
        bytes_total: int | None,
    ) -> None:
        self.length = length
        self.tokenizer = tokenizer
        self.progress = progress
        self.bytes_total = bytes_total
        self.bytes_done = 0
        self.reports: list[PartReport] = []
        self.odd_examples: dict[str, str] = {}
        self._indexes = indexes  # of the texts that are looked for in other parts
        # (part of the text, part of the document) → number of the text → how it is in there.
        self._found: dict[tuple[str, str], dict[int, Example]] = defaultdict(dict)

    def look_at(self, report: PartReport, texts: Iterable[Text], others: Iterable[str]) -> None:
        """Fill one part's report, and look for the texts of other parts in it."""
        lengths = array("L")
        odd: Counter[str] = Counter()
        characters = 0
        seen: set[bytes] = set()
        similar = SimilarTexts()
        for batch in batched(texts):
            plain = [as_text(text) for text in batch]
            lengths.extend(self._count(plain))
            signatures = minhash(plain)
            for name in others:
                index = self._indexes[name]
                for text, matches in zip(plain, index.matches(batch, signatures), strict=True):
                    self._note(name, report.name, index, text, matches)
            for given, one, signature in zip(batch, plain, signatures, strict=True):
                found = odd_characters(one)
                report.odd_documents += bool(found)
                odd.update(found.keys())
                for kind, example in found.items():
                    self.odd_examples.setdefault(kind, example)
                characters += len(one)
                few = report.compared < CORPUS_DOCUMENTS and characters < CORPUS_CHARACTERS
                if report.name == "corpus" and not few:
                    continue
                key = text_key(given)
                if key in seen:
                    report.duplicates += 1
                elif similar.find(one, signature):
                    report.near_duplicates += 1  # one of a family is enough in the index
                else:
                    similar.add(one, signature)
                seen.add(key)
                report.compared += 1
            self.bytes_done += _size(batch)
            if self.progress:
                self.progress(self.bytes_done, self.bytes_total)
        self._measure(report, lengths)
        report.odd_characters = dict(odd.most_common())
        self.reports.append(report)

    def _count(self, texts: Sequence[str]) -> list[int]:
        if self.tokenizer is None:
            return [len(text.split()) for text in texts]
        return [len(ids) for ids in self.tokenizer.encode(texts)]

    def _note(
        self, part: str, other: str, index: HeldOutTexts, document: str, matches: list[Match]
    ) -> None:
        """Note how texts of `part` are in a document of `other`; each counts once."""
        found = self._found[part, other]
        for match in matches:
            kind = INVERSE[match.kind]
            old = found.get(match.text)
            if old is None or ORDER.index(kind) < ORDER.index(old.kind):
                text = as_text(index.texts[match.text])
                found[match.text] = Example(text, document, kind, match.similarity)

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

    def overlaps(self) -> list[Overlap]:
        """List every pair of parts, also those without overlap."""
        found = []
        for place, other in enumerate(self.reports):
            for report in self.reports[place + 1 :]:
                part, within = (other, report) if report.name == "corpus" else (report, other)
                examples = list(self._found[part.name, within.name].values())
                counts = Counter(example.kind for example in examples)
                examples.sort(key=lambda one: (ORDER.index(one.kind), -one.similarity))
                found.append(
                    Overlap(
                        part.name,
                        within.name,
                        part.documents,
                        **{kind: counts[kind] for kind in ORDER},
                        examples=examples[:EXAMPLES],
                    )
                )
        return found


def _conflicts(parts: Iterable[Part]) -> list[Conflict]:
    labels: dict[bytes, dict[str, None]] = defaultdict(dict)
    texts: dict[bytes, str] = {}
    for part in parts:
        if isinstance(part, Dataset):
            for text, label in zip(part.texts, part.labels, strict=True):
                key = text_key(text)
                labels[key][part.label_names[label]] = None
                texts.setdefault(key, as_text(text))
    return [Conflict(texts[key], list(found)) for key, found in labels.items() if len(found) > 1]


def _size(texts: Iterable[Text]) -> int:
    return sum(len(as_text(text).encode("utf-8", "surrogatepass")) for text in texts)


# Characters that are no error but a sign of damage


TAGS = "br|p|div|span|a|b|i|u|em|strong|li|ul|ol|td|tr|table|img|font|h[1-6]|html|body|script"
# Each pattern begins with the rarest character it needs: most texts are searched quickly.
ODD_KINDS = {
    "replacement characters (�): damaged when the file was made": "\ufffd",
    "doubly encoded letters (Ã©, â€™)": (
        "[ÃÂâ](?:(?<=Ã)[\u0080-\u00bf]|(?<=Â)[\u00a0-\u00bf]|(?<=â)€)"
    ),
    "question marks inside words (l?amour): lost apostrophes or accents": (
        r"\?(?<=[^\W\d_]\?)[a-zß-öø-ÿ]"  # before a capital, a space is missing
    ),
    "HTML tags or entities (<br />, &amp;)": (
        rf"[<&](?:(?<=<)/?(?:{TAGS})\b[^<>]{{0,200}}>|(?<=&)(?:[a-z]{{2,6}}|#\d+);)"
    ),
    "control characters (often Windows punctuation read as Latin-1)": (
        "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
    ),
    "invisible characters (zero width, text direction)": (
        "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
    ),
    "private-use characters": "[\ue000-\uf8ff]",
}
ODD_PATTERNS = {kind: re.compile(pattern) for kind, pattern in ODD_KINDS.items()}
IN_ASCII = [kind for kind in ODD_KINDS if kind.startswith(("question", "HTML", "control"))]
DECOMPOSED = "letters stored as letter + accent (Unicode form NFD)"
AROUND = 40


def odd_characters(text: str) -> dict[str, str]:
    """Find the kinds of odd characters in a text, each with the words around the first one."""
    found = {}
    for kind in IN_ASCII if text.isascii() else ODD_PATTERNS:
        if match := ODD_PATTERNS[kind].search(text):
            found[kind] = text[max(0, match.start() - AROUND) : match.end() + AROUND]
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        found[DECOMPOSED] = text[: 2 * AROUND]
    return found


# Warnings


def _find_warnings(inspection: Inspection, unread_files: list[str]) -> list[str]:
    """List every warning, the gravest first."""
    parts = {part.name: part for part in inspection.parts}
    warnings = [_overlap_warning(overlap) for overlap in inspection.overlaps if overlap.total]
    if inspection.conflicts:
        warnings.append(
            f"{_count(inspection.conflicts, 'text')} with several labels: at most one of them is "
            "correct"
        )
    for group in similar_labels(parts["train"].labels or ()) if "train" in parts else ():
        warnings.append(
            f"labels {listed(group)} differ only in case, white space or Unicode form: are they "
            "one class?"
        )
    for part in inspection.parts:
        warnings += _class_warnings(part)
    if "train" in parts and "test" not in parts:
        warnings.append(NO_TEST_PART)
    for part in inspection.parts:
        warnings += _loss_warnings(part)
    cut = [
        f"{part.name} {part.cut_documents:,} of {part.documents:,} ({part.cut_tokens:,} "
        f"{inspection.unit}, {part.cut_tokens / part.tokens:.1%}, would not be read)"
        for part in inspection.parts
        if part.cut_documents and part.name != "corpus"  # pretraining reads all of a document
    ]
    if cut:
        limit = f"{inspection.length:,} {inspection.unit}"
        warnings.append(f"texts longer than {limit}: {'; '.join(cut)}")
    odd = [f"{part.name} {part.odd_documents:,}" for part in inspection.parts if part.odd_documents]
    if odd:
        kinds = "; ".join(kind.split(" (")[0] for kind in inspection.odd_examples)
        warnings.append(f"texts with odd characters: {', '.join(odd)} ({kinds})")
    if unread_files:
        warnings.append(
            f"{len(unread_files):,} files of other kinds were not read, such as {unread_files[0]}"
        )
    return warnings


def _overlap_warning(overlap: Overlap) -> str:
    counts = {kind: getattr(overlap, kind) for kind in ORDER}
    how = ", ".join(f"{count:,} {KIND_WORDS[kind]}" for kind, count in counts.items() if count)
    of = f"{overlap.total:,} of {overlap.texts:,} {overlap.part} texts"
    start = f"{of} are also in {overlap.other} ({how})"
    if overlap.other != "corpus":
        return f"{start}: results would look too good (--drop-overlap drops them)"
    if overlap.part == "train":
        return f"{start}: harmless, but pretraining sees them without their labels"
    return (
        f"{start}: pretraining would see validation or test texts (--drop-overlap drops these "
        "documents)"
    )


def _class_warnings(part: PartReport) -> list[str]:
    if part.labels is None:
        return []
    if not part.documents:
        return [f"{part.name} is empty: there are too few texts to split"]
    if not part.classes:
        return []
    warnings = []
    if missing := [name for name, count in part.labels.items() if not count]:
        warnings.append(f"{part.name} has no text of class {listed(missing)}")
    largest = max(part.labels.values())
    rare = [name for name, count in part.labels.items() if 0 < count < RARE * largest]
    if rare and part.name == "train":
        warnings.append(
            f"class {listed(rare)} is less than a tenth of the largest class: look at macro-F1, "
            "not at accuracy alone"
        )
    return warnings


def _loss_warnings(part: PartReport) -> list[str]:
    warnings = []
    for reason, count in part.dropped.items():
        why = DROPPED[reason].replace("were", "was") if count == 1 else DROPPED[reason]
        warnings.append(f"{part.name}: {_count(count, 'row')} {why}")
    if part.duplicates or part.near_duplicates:
        among = ""
        if part.compared < part.documents:
            among = f" among the first {part.compared:,} documents"
        counts = [(part.duplicates, "repeated"), (part.near_duplicates, "nearly repeated")]
        found = " and ".join(f"{count:,} {how}" for count, how in counts if count)
        texts = "text" if part.duplicates + part.near_duplicates == 1 else "texts"
        warnings.append(f"{part.name}: {found} {texts}{among}")
    return warnings


def _count(count: int, unit: str) -> str:
    return f"{count:,} {unit if count == 1 else unit + 's'}"
