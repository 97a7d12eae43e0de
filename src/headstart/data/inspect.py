"""Look at data before training: sizes, labels, what is in two places.

`inspect_data` reads every text once, in the order train, validation, test, corpus. Texts of
validation and test are looked for in everything before them and in the corpus.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from headstart.data.corpus import Corpus, with_progress
from headstart.data.dataset import Dataset, Part, Splits, Text, as_text, batched, listed
from headstart.data.overlap import HeldOutTexts, OverlapKind, text_key
from headstart.progress import ProgressCallback

PERCENTILES = {"5": 5, "50": 50, "95": 95, "max": 100}
LONG_DOCUMENT = 1_000  # words: a file with more probably contains several texts
NO_TEST_PART = (
    "there is no test part: results on validation, which also selects the settings, will look too "
    "good (--test FILE)"
)
# How a document relates to a text, seen from the text.
INVERSE: dict[OverlapKind, OverlapKind] = {"contains": "inside", "inside": "contains"}
KIND_WORDS: dict[OverlapKind, str] = {  # the closest first
    "equal": "equal",
    "similar": "nearly equal",
    "inside": "inside a longer text",
    "contains": "around a shorter one",
}
DROPPED = {
    "empty": "they have no text",
    "duplicate": "they repeat another text",
    "conflicting": "the same text has several labels, and at most one of them is correct",
    "overlap": "they overlap with a text of validation or test",
    "held-out": "they overlap with a text of validation or test",
}


@dataclass
class Inspection:
    """Everything that `headstart inspect` shows; `warnings` is what other commands repeat.

    `parts` are train, validation, test and corpus. `labels` are the counts of a part, and
    `labelled` is their total: rows, or words for tags. `overlaps` count for two parts how many of
    the different `texts` of `part` are in `other`, by kind; each text counts once, as its closest.
    """

    found: list[str]  # how the files were read, and what was guessed
    parts: list[dict[str, Any]] = field(default_factory=list)
    overlaps: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def inspect_data(
    splits: Splits[Any] | None,
    corpus: Corpus | None = None,
    *,
    progress: ProgressCallback | None = None,
) -> Inspection:
    """Look at a dataset, a corpus or both; `progress` is called with the bytes of each part."""
    parts: dict[str, Part] = {} if splits is None else splits.parts()
    notes = [] if splits is None else [*splits.notes, *splits.found]
    notes += [] if corpus is None else corpus.found
    inspection = Inspection(list(dict.fromkeys(notes)))
    indexes = {
        name: HeldOutTexts(part.keys, contained=name != "train")
        for name, part in parts.items()
        if name != "train" or corpus is not None
    }
    later = list(parts)
    for name, part in parts.items():
        later.remove(name)
        others = {other: indexes[other] for other in later}
        labels = part.label_counts()
        labelled = len(part) if isinstance(part, Dataset) else sum(labels.values())
        report = _look_at(inspection, name, part.keys, others, progress)
        report |= {"labels": labels, "labelled": labelled, "dropped": part.dropped}
    if corpus is not None:
        report = _look_at(inspection, "corpus", corpus, indexes, progress)
        dropped = {"empty": corpus.empty, "held-out": corpus.overlapping.total()}
        report["dropped"] = {reason: count for reason, count in dropped.items() if count}
    inspection.warnings = _find_warnings(inspection, parts)
    if corpus is not None and (unread := corpus.unread_files):
        inspection.warnings.append(
            f"{len(unread):,} files of other kinds were not read, such as {unread[0]}"
        )
    return inspection


def _look_at(
    inspection: Inspection,
    name: str,
    texts: Iterable[Text],
    others: Mapping[str, HeldOutTexts],
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """Add the sizes and duplicates of one part, and the texts of others that are in it."""
    lengths, duplicates, seen = array("L"), 0, set[bytes]()
    # For each other part: the number of a text → how it is in a document of this one.
    kinds: dict[str, dict[int, OverlapKind]] = {other: {} for other in others}
    for batch in batched(with_progress(texts, progress)):
        lengths.extend(len(as_text(text).split()) for text in batch)
        for other, index in others.items():
            for match in chain.from_iterable(index.matches(batch)):
                kind = INVERSE.get(match.kind, match.kind)
                both = {kind, kinds[other].get(match.text, kind)}
                kinds[other][match.text] = min(both, key=[*KIND_WORDS].index)
        for key in map(text_key, batch):
            duplicates += key in seen
            if len(seen) < 1_000_000:  # 100 bytes each
                seen.add(key)
    for other, found in kinds.items():
        counts, held_out = Counter(found.values()), others[other].texts
        inspection.overlaps.append(
            {
                "part": other,
                "other": name,
                "texts": len(held_out),
                "counts": {kind: counts[kind] for kind in KIND_WORDS},
                "examples": [as_text(held_out[number]) for number in [*found][:3]],
            }
        )
    shares = list(PERCENTILES.values())
    values: Any = np.percentile(lengths, shares, method="nearest") if lengths else []
    report = {
        "name": name,
        "documents": len(lengths),
        "words": sum(lengths),
        "percentiles": dict(zip(PERCENTILES, map(int, values), strict=False)),
        "duplicates": duplicates,
        "labels": None,  # of a corpus
        "labelled": 0,
    }
    inspection.parts.append(report)
    return report


def _find_warnings(inspection: Inspection, parts: Mapping[str, Part]) -> list[str]:
    """List the warnings, the gravest first."""
    warnings = [
        _overlap_warning(**one) for one in inspection.overlaps if any(one["counts"].values())
    ]
    warnings += chain.from_iterable(map(_class_warnings, parts, parts.values()))
    if parts and "test" not in parts:
        warnings.append(NO_TEST_PART)
    for report in inspection.parts:
        name = report["name"]
        for reason, count in report["dropped"].items():
            what = f"{count:,} rows"
            if name == "corpus":
                what = f"{count:,} of {count + report['documents']:,} documents"
            warnings.append(f"{name}: dropped {what} because {DROPPED[reason]}")
            if reason == "held-out" and report["percentiles"].get("95", 0) > LONG_DOCUMENT:
                warnings[-1] += " (--documents blank-line or line drops less text)"
        if report["duplicates"]:
            warnings.append(f"{name}: {report['duplicates']:,} repeated texts")
    return warnings


def _overlap_warning(
    part: str, other: str, texts: int, counts: Mapping[OverlapKind, int], examples: list[str]
) -> str:
    how = ", ".join(f"{count:,} {KIND_WORDS[kind]}" for kind, count in counts.items() if count)
    effect = "results would look too good (--drop-overlap drops them)"
    if other == "corpus":
        effect = (
            "pretraining would see them (compare and pretrain --task-text drop these documents)"
        )
    if other == "corpus" and part == "train":
        effect = "harmless, but pretraining sees them without their labels"
    found = f"{sum(counts.values()):,} of {texts:,} {part} texts"
    return f"{found} are also in {other} ({how}): {effect}"


def _class_warnings(name: str, part: Part) -> list[str]:
    if not len(part):
        return [f"{name} is empty: there are too few texts to split"]
    if not isinstance(part, Dataset) or part.several_labels:
        return []
    warnings, counts = [], part.label_counts()
    if missing := [label for label, count in counts.items() if not count]:
        warnings.append(f"{name} has no text of class {listed(missing)}")
    largest = max(counts.values())
    rare = [label for label, count in counts.items() if 0 < 10 * count < largest]
    if rare and name == "train":
        warnings.append(
            f"class {listed(rare)} is less than a tenth of the largest class: look at macro-F1, "
            "not at accuracy alone"
        )
    return warnings
