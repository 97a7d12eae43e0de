"""Look at data before training: sizes, labels, what would be cut, what is in two places.

`inspect_data` reads every text once, in the order train, validation, test, corpus. Texts of
validation and test are looked for in everything before them and in the corpus. Duplicates within a
corpus are looked for among its first documents only, so that memory is limited.
"""

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.data.corpus import Corpus
from headstart.data.dataset import Dataset, Part, Splits, Text, as_text, batched, listed
from headstart.data.overlap import (
    HeldOutTexts,
    OverlapKind,
    SimilarTexts,
    minhash,
    text_key,
)
from headstart.data.tokenizers import Tokenizer
from headstart.progress import ProgressCallback

PERCENTILES = {"5": 5, "25": 25, "50": 50, "75": 75, "95": 95, "max": 100}
EXAMPLES = 3
# Duplicates within a corpus are looked for up to here. What is remembered of a document takes as
# much memory as a text of SIGNATURE characters.
CORPUS_CHARACTERS = 150_000_000
SIGNATURE = 1_500
RARE = 0.1  # a class this much rarer than the largest one is easily never predicted
NO_TEST_PART = (
    "there is no test part: results on validation, which also selects the settings, will look too "
    "good (--test FILE)"
)
# How a document relates to a text, seen from the text.
INVERSE: dict[OverlapKind, OverlapKind] = {"contains": "inside", "inside": "contains"}
KIND_WORDS: dict[OverlapKind, str] = {
    "equal": "equal",
    "similar": "nearly equal",
    "inside": "inside a longer text",
    "contains": "around a shorter one",
}
DROPPED = {
    "empty": "they have no text",
    "duplicate": "they repeat another text",
    "conflicting": "the same text has several labels",
    "overlap": "they overlap with a text of validation or test",
    "held-out": "they overlap with a held-out text",
}


@dataclass
class PartReport:
    """What one part holds: train, validation, test or corpus.

    `labels` counts every label; `labelled` is what they are shares of: rows, or words of tags.
    `classes` says whether each row has exactly one of them.
    """

    name: str
    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    percentiles: dict[str, int] = field(default_factory=dict)
    cut_documents: int = 0
    cut_tokens: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    compared: int = 0  # documents that duplicates were looked for among
    odd_characters: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] | None = None
    labelled: int = 0
    classes: bool = False
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass
class Example:
    """Two texts that overlap: `kind` says how `text` relates to `other`."""

    text: str
    other: str
    kind: OverlapKind
    similarity: float


@dataclass
class Overlap:
    """Texts of `part` that are also in `other`, each counted once.

    Parameters
    ----------
    part, other : the names of the parts.
    texts : how many different texts the part has.
    counts : how many of them equal a text of the other part, are nearly equal (`similar`), are
        inside of a longer one, or contain one.
    examples : a few of the pairs.
    """

    part: str
    other: str
    texts: int
    counts: dict[OverlapKind, int]
    examples: list[Example]


@dataclass
class Inspection:
    """Everything that `headstart inspect` shows; `warnings` is what other commands repeat."""

    length: int
    unit: str
    found: list[str]
    conflicts: int  # texts with several labels
    conflict_examples: dict[str, list[str]]
    parts: list[PartReport] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    odd_examples: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def inspect_data(
    splits: Splits[Any] | None,
    corpus: Corpus | None = None,
    *,
    length: int = 512,
    tokenizer: Tokenizer | None = None,
    progress: ProgressCallback | None = None,
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
    notes = (*splits.notes, *splits.found) if splits is not None else ()
    conflicts = _find_conflicts(given.values())
    inspection = Inspection(
        length=length,
        unit="words" if tokenizer is None else "tokens",
        found=list(dict.fromkeys([*notes, *(corpus.found if corpus else ())])),
        conflicts=len(conflicts),
        conflict_examples=dict(conflicts[:EXAMPLES]),
    )
    total = corpus.size if corpus else 0
    if total is not None:
        total += sum(_size(part.keys) for part in given.values())
    indexes = {
        name: HeldOutTexts(part.keys, contained=name != "train")
        for name, part in given.items()
        if name != "train" or corpus is not None
    }
    names = list(given)
    for place, (name, part) in enumerate(given.items(), start=1):
        counts = part.label_counts()
        report = PartReport(name, labels=counts, dropped=dict(part.dropped))
        report.classes = isinstance(part, Dataset) and not part.several_labels
        report.labelled = len(part) if isinstance(part, Dataset) else sum(counts.values())
        others = {other: indexes[other] for other in names[place:]}
        _look_at(inspection, report, part.keys, others, tokenizer, progress, total)
    if corpus is not None:
        report = PartReport("corpus")
        _look_at(inspection, report, corpus, indexes, tokenizer, progress, total)
        dropped = {"empty": corpus.empty, "held-out": corpus.overlapping.total()}
        report.dropped = {reason: count for reason, count in dropped.items() if count}
    inspection.warnings = _find_warnings(inspection, corpus.unread_files if corpus else [])
    return inspection


def _look_at(
    inspection: Inspection,
    report: PartReport,
    texts: Iterable[Text],
    others: Mapping[str, HeldOutTexts],
    tokenizer: Tokenizer | None,
    progress: ProgressCallback | None,
    total: int | None,
) -> None:
    """Fill one part's report, and look for the texts of other parts in it."""
    inspection.parts.append(report)
    lengths = array("L")
    odd: Counter[str] = Counter()
    seen: set[bytes] = set()
    similar = SimilarTexts()
    room = CORPUS_CHARACTERS if report.name == "corpus" else float("inf")
    # For each other part: the number of a text → how it is in a document of this one.
    overlaps: dict[str, dict[int, Example]] = {name: {} for name in others}
    for batch in batched(texts):
        plain = [as_text(text) for text in batch]
        units = tokenizer.encode(plain) if tokenizer else map(str.split, plain)
        lengths.extend(map(len, units))
        signatures = minhash(plain)
        for name, index in others.items():
            for text, matches in zip(plain, index.matches(batch, signatures), strict=True):
                for match in matches:  # of several documents with a text the closest counts
                    kind = INVERSE.get(match.kind, match.kind)
                    held_out = as_text(index.texts[match.text])
                    new = Example(held_out, text, kind, match.similarity)
                    old = overlaps[name].get(match.text, new)
                    overlaps[name][match.text] = min(old, new, key=_closeness)
        for given, one, signature in zip(batch, plain, signatures, strict=True):
            found = odd_characters(one)
            odd.update(found.keys())
            inspection.odd_examples = found | inspection.odd_examples
            if room <= 0:
                continue
            room -= len(one) + SIGNATURE
            key = text_key(given)
            if key in seen:
                report.duplicates += 1
            elif similar.find(one, signature):
                report.near_duplicates += 1  # one of a family is enough in the index
            else:
                similar.add(one, signature)
            seen.add(key)
            report.compared += 1
        report.bytes += _size(batch)
        if progress:
            progress(sum(part.bytes for part in inspection.parts), total)
    report.odd_characters = dict(odd.most_common())
    _measure(report, np.frombuffer(lengths, dtype=np.dtype("L")), inspection.length)
    for name, found_texts in overlaps.items():
        examples = sorted(found_texts.values(), key=_closeness)
        kinds = Counter(example.kind for example in examples)
        counts = {kind: kinds[kind] for kind in KIND_WORDS}
        distinct = len(others[name].texts)
        overlap = Overlap(name, report.name, distinct, counts, examples[:EXAMPLES])
        inspection.overlaps.append(overlap)


def _closeness(example: Example) -> tuple[int, float]:
    return list(KIND_WORDS).index(example.kind), -example.similarity


def _measure(report: PartReport, counts: NDArray[np.uint64], length: int) -> None:
    """Fill in how long the texts of a part are."""
    report.documents, report.tokens = len(counts), int(counts.sum())
    if len(counts):
        values = np.percentile(counts, list(PERCENTILES.values()), method="nearest")
        report.percentiles = dict(zip(PERCENTILES, map(int, values), strict=True))
    beyond = counts[counts > length] - length
    report.cut_documents, report.cut_tokens = len(beyond), int(beyond.sum())


def _find_conflicts(parts: Iterable[Part]) -> list[tuple[str, list[str]]]:
    """List the texts with several labels, and these labels."""
    found: dict[bytes, tuple[str, dict[str, None]]] = {}
    for part in parts:
        if isinstance(part, Dataset):
            for text, label in zip(part.texts, part.labels, strict=True):
                _, labels = found.setdefault(text_key(text), (as_text(text), {}))
                labels[part.label_names[label]] = None
    return [(text, list(labels)) for text, labels in found.values() if len(labels) > 1]


def _size(texts: Iterable[Text]) -> int:
    return sum(len(as_text(text).encode("utf-8", "surrogatepass")) for text in texts)


# Characters that are not an error but a sign of damage


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
    warnings = [*filter(None, map(_overlap_warning, inspection.overlaps))]
    if inspection.conflicts:
        warnings.append(
            f"texts with several labels: {inspection.conflicts:,}; at most one of the labels is "
            "correct"
        )
    for part in inspection.parts:
        warnings += _class_warnings(part)
    if "train" in parts and "test" not in parts:
        warnings.append(NO_TEST_PART)
    for part in inspection.parts:
        for reason, count in part.dropped.items():
            warnings.append(f"{part.name}: rows dropped because {DROPPED[reason]}: {count:,}")
        if part.duplicates or part.near_duplicates:
            among = f" among the first {part.compared:,}" if part.compared < part.documents else ""
            warnings.append(
                f"{part.name}: {part.duplicates:,} repeated and {part.near_duplicates:,} nearly "
                f"repeated texts{among}"
            )
    cut = [
        f"{part.name} {part.cut_documents:,} of {part.documents:,} ({part.cut_tokens:,} "
        f"{inspection.unit}, {part.cut_tokens / part.tokens:.1%}, would not be read)"
        for part in inspection.parts
        if part.cut_documents and part.name != "corpus"  # pretraining reads all of a document
    ]
    if cut:
        limit = f"{inspection.length:,} {inspection.unit}"
        warnings.append(f"texts longer than {limit}: {'; '.join(cut)}")
    odd = [
        f"{part.name} {count:,} with {kind.split(' (')[0]}"
        for part in inspection.parts
        for kind, count in part.odd_characters.items()
    ]
    if odd:
        warnings.append(f"texts with odd characters: {', '.join(odd)}")
    if unread_files:
        warnings.append(
            f"{len(unread_files):,} files of other kinds were not read, such as {unread_files[0]}"
        )
    return warnings


def _overlap_warning(overlap: Overlap) -> str | None:
    total = sum(overlap.counts.values())
    if not total:
        return None
    counts = overlap.counts.items()
    how = ", ".join(f"{count:,} {KIND_WORDS[kind]}" for kind, count in counts if count)
    if overlap.other != "corpus":
        effect = "results would look too good (--drop-overlap drops them)"
    elif overlap.part == "train":
        effect = "harmless, but pretraining sees them without their labels"
    else:
        effect = (
            "pretraining would see validation or test texts (--drop-overlap drops these documents)"
        )
    return (
        f"{total:,} of {overlap.texts:,} {overlap.part} texts are also in {overlap.other} ({how}): "
        f"{effect}"
    )


def _class_warnings(part: PartReport) -> list[str]:
    if part.labels is not None and not part.documents:
        return [f"{part.name} is empty: there are too few texts to split"]
    if part.labels is None or not part.classes:
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
