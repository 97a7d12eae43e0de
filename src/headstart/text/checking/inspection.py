"""The result of `inspect_data`: plain values, and the warnings that follow from them."""

from dataclasses import dataclass, field

# A class this much rarer than the largest one is easily never predicted.
_RARE = 0.1
NO_TEST_PART = (
    "there is no test part: results on validation, which also selects the settings, will look too "
    "good (--test FILE)"
)


@dataclass
class PartReport:
    """What one part holds: train, validation, test or corpus."""

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
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass
class Example:
    """Two texts that are the same or nearly so, or of which the first contains the other."""

    text: str
    other: str
    similarity: float
    equal: bool = False  # case and spacing aside
    inside: bool = False


@dataclass
class Overlap:
    """Texts of `part` that also stand in `other`: equal, nearly so, or inside a longer one.

    `inside` is None where that was not looked for: between labelled parts, and for training texts.
    """

    part: str
    other: str
    texts: int
    equal: int = 0
    similar: int = 0
    inside: int | None = None
    examples: list[Example] = field(default_factory=list)


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


def find_warnings(inspection: Inspection, unread_files: list[str]) -> list[str]:
    """Every warning, the gravest first."""
    parts = {part.name: part for part in inspection.parts}
    warnings = [_overlap(overlap) for overlap in inspection.overlaps if _count(overlap)]
    if inspection.conflicts:
        warnings.append(
            f"{_texts(inspection.conflicts)} with several labels: at most one of them is right"
        )
    warnings += _classes(parts)
    if "train" in parts and "test" not in parts:
        warnings.append(NO_TEST_PART)
    for part in inspection.parts:
        warnings += _losses(part)
    warnings += _cut(inspection)
    warnings += _odd_characters(inspection)
    if unread_files:
        warnings.append(
            f"{len(unread_files):,} files of other kinds were not read, such as {unread_files[0]}"
        )
    return warnings


def _count(overlap: Overlap) -> int:
    return overlap.equal + overlap.similar + (overlap.inside or 0)


def _overlap(overlap: Overlap) -> str:
    inside = "" if overlap.inside is None else f", {overlap.inside:,} inside a longer document"
    start = (
        f"{_count(overlap):,} of {overlap.texts:,} {overlap.part} texts are also in "
        f"{overlap.other} ({overlap.equal:,} equal, {overlap.similar:,} nearly{inside})"
    )
    if overlap.other != "corpus":
        return f"{start}: results would look too good (--drop-overlap removes them)"
    if overlap.part == "train":
        return f"{start}: harmless, but pretraining sees them without their labels"
    return (
        f"{start}: pretraining would see validation or test texts (--drop-overlap leaves these "
        "documents out)"
    )


def _classes(parts: dict[str, PartReport]) -> list[str]:
    warnings = []
    for part in parts.values():
        if part.labels is None:
            continue
        if not part.documents:
            warnings.append(f"{part.name} is empty: there are too few texts to split")
            continue
        missing = [name for name, count in part.labels.items() if not count]
        if missing:
            warnings.append(f"{part.name} has no text of class {_names(missing)}")
        largest = max(part.labels.values())
        rare = [name for name, count in part.labels.items() if 0 < count < _RARE * largest]
        if rare and part.name == "train":
            warnings.append(
                f"class {_names(rare)} is less than a tenth of the largest class: "
                "look at macro-F1, not at accuracy alone"
            )
    return warnings


def _losses(part: PartReport) -> list[str]:
    warnings = []
    reasons = {
        "empty": "without text were left out",
        "duplicate": "were left out of the splits: they repeat another text",
        "conflicting": "were left out of the splits: the same text has several labels",
        "overlap": "were removed: equal or nearly equal texts are in validation or test",
        "held-out": "were left out: each equals, contains or nearly equals a held-out text",
    }
    for reason, count in part.dropped.items():
        why = reasons[reason].replace("were", "was") if count == 1 else reasons[reason]
        warnings.append(f"{part.name}: {_rows(count)} {why}")
    if part.duplicates or part.near_duplicates:
        among = ""
        if part.compared < part.documents:
            among = f" among the first {part.compared:,} documents"
        counts = [(part.duplicates, "repeated"), (part.near_duplicates, "nearly repeated")]
        found = " and ".join(f"{count:,} {how}" for count, how in counts if count)
        texts = "text" if part.duplicates + part.near_duplicates == 1 else "texts"
        warnings.append(f"{part.name}: {found} {texts}{among}")
    return warnings


def _cut(inspection: Inspection) -> list[str]:
    """Pretraining reads long documents in rows, so only labelled texts are ever cut."""
    cut = [
        f"{part.name} {part.cut_documents:,} of {part.documents:,} ({part.cut_tokens:,} "
        f"{inspection.unit}, {part.cut_tokens / part.tokens:.1%}, would not be read)"
        for part in inspection.parts
        if part.cut_documents and part.name != "corpus"
    ]
    start = f"texts longer than {inspection.length:,} {inspection.unit}: "
    return [start + "; ".join(cut)] if cut else []


def _odd_characters(inspection: Inspection) -> list[str]:
    counts = [
        f"{part.name} {part.odd_documents:,}" for part in inspection.parts if part.odd_documents
    ]
    kinds = "; ".join(kind.split(" (")[0] for kind in inspection.odd_examples)
    return [f"texts with odd characters: {', '.join(counts)} ({kinds})"] if counts else []


def _names(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:5]) + (", …" if len(names) > 5 else "")


def _texts(count: int) -> str:
    return f"{count:,} {'text' if count == 1 else 'texts'}"


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
