"""The report of a look at the data: plain values, for a page, for JSON, for other commands."""

from dataclasses import dataclass, field


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
    """Two texts that are the same or nearly so."""

    text: str
    other: str
    similarity: float


@dataclass
class Overlap:
    """Texts of `part` that also stand in `other`, equal or nearly so."""

    part: str
    other: str
    texts: int
    equal: int = 0
    similar: int = 0
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
