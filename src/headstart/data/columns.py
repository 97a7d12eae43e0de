"""Which columns of a table hold the text and the label: given, found by name, or guessed.

A guess is by the values of the first rows: texts are the longest cells, labels are values that
recur. What was guessed is part of `Columns.words`, which every command prints.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstart.data.dataset import listed, short_label
from headstart.errors import HeadstartError

# fmt: off
TEXT_NAMES = (
    "text", "texts", "review", "reviews", "review_text", "review_body", "sentence", "sentences",
    "content", "contents", "document", "comment", "comments", "body", "message", "tweet", "post",
    "article", "passage", "utterance", "texte", "avis", "phrase", "commentaire", "contenu",
)
LABEL_NAMES = (
    "label", "labels", "sentiment", "class", "classes", "category", "target", "tag", "intent",
    "topic", "polarity", "rating", "stars", "classe", "catégorie", "étiquette",
)
# Columns with these names are labels only if no other column can be.
OTHER_NAMES = (
    "", "id", "ids", "idx", "index", "number", "row", "date", "time", "timestamp", "url", "title",
    "author", "source", "file", "filename", "lang", "language",
)
CLEAR_PAIRS = (  # no other task has such columns
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"),
    ("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b"), ("question1", "question2"),
)
PAIR_NAMES = (
    *CLEAR_PAIRS, ("first", "second"), ("question", "answer"), ("query", "document"),
    ("question", "sentence"), ("question", "context"),
)
# fmt: on
MOST_LABELS = 1_000  # a column with more values is not one of labels
SHOWN_NAMES = 20  # in a message

Sample = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ReadOptions:
    """How to read: the columns, where they are not to be guessed, and the encoding."""

    text_column: str | None = None
    label_column: str | None = None
    second_column: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read; `guessed` says why those without a clear name are."""

    text: str = ""
    second: str | None = None
    label: str | None = None
    guessed: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The columns of the texts: one, or two for pairs."""
        return [self.text] if self.second is None else [self.text, self.second]

    def words(self, labelled: bool) -> str:
        """Describe the columns for the user to check."""
        label = f", label: '{self.label}'" if labelled else ""
        guessed = f" (guessed: {'; '.join(self.guessed)})" if self.guessed else ""
        return f"text: {' and '.join(repr(name) for name in self.texts)}{label}{guessed}"


def choose_columns(
    names: Sequence[str],
    sample: Sample,
    options: ReadOptions,
    *,
    pairs: bool = False,
    labelled: bool = True,
    where: str = "",
) -> Columns:
    """Choose the columns of a table: two texts for `pairs`, and a label if `labelled`."""
    for role in ("text", "second", "label"):
        name = getattr(options, f"{role}_column")
        if name is not None and name not in names:
            raise _column_error(f"there is no column {short_label(name)}", role, names, where)
    second, why = None, ""
    if pairs:
        text, second = _choose_pair(names, options, where)
    else:
        text, why = _choose_text(names, sample, options, where)
    label, guessed = options.label_column, [why]
    if label is None:
        label, why = _choose_label(names, sample, (text, second))
        guessed += [why] if labelled else []
    if label is None and labelled:
        raise _column_error("no label column was found", "label", names, where)
    labels = {str(row.get(label or "")) for row in sample}
    # The name of a column has fewer than five words.
    data = any(guessed) and (len(text.split()) >= 5 or label in labels)
    if data or any(names.count(name) > 1 for name in (text, second, label)):
        raise HeadstartError(
            "the first row looks like data, not like the names of columns"
            if data
            else f"several of the columns {listed(names, SHOWN_NAMES)} have the same name",
            where=where,
            fix="give the file a first row with different names, such as text,label; or name the "
            "columns: --text-column NAME --label-column NAME",
            code="column-names",
        )
    return Columns(text, second, label, tuple(filter(None, guessed)))


def _choose_text(
    names: Sequence[str], sample: Sample, options: ReadOptions, where: str
) -> tuple[str, str]:
    """Choose the column of the texts; return it and, if it is a guess, the reason."""
    others = [name for name in dict.fromkeys(names) if name != options.label_column]
    found = [name for name in others if _plain(name) in TEXT_NAMES]
    if options.text_column is not None or len(names) == 1:
        return options.text_column or names[0], ""
    if len(found) == 1:
        return found[0], ""
    candidates = found or [name for name in others if _plain(name) not in LABEL_NAMES]
    lengths = {name: _mean_words(sample, name) for name in candidates}
    best = max(lengths, key=lengths.__getitem__, default="")
    if lengths.get(best, 0) < 2:
        raise _column_error("no text column was found", "text", names, where)
    return best, f"{short_label(best)} has the longest texts"


def _choose_pair(names: Sequence[str], options: ReadOptions, where: str) -> tuple[str, str]:
    """Choose the two columns of texts: those that are given, or the only ones with such names."""
    first, second = options.text_column, options.second_column
    if first is not None and second is not None:
        return first, second
    by_name = {_plain(name): name for name in names}
    pairs = [pair for pair in PAIR_NAMES if by_name.keys() >= set(pair)]
    if len(pairs) != 1 or first is not None or second is not None:
        raise _column_error("the two texts of a pair were not found", "second", names, where)
    return by_name[pairs[0][0]], by_name[pairs[0][1]]


def names_a_pair(names: Iterable[str], options: ReadOptions) -> bool:
    """Check whether two columns are called as the texts of a pair are, and none is chosen."""
    plain = set(map(_plain, names))
    chosen = options.text_column is not None and options.second_column is None
    return not chosen and any(plain >= set(pair) for pair in CLEAR_PAIRS)


def _choose_label(
    names: Sequence[str], sample: Sample, texts: Sequence[str | None]
) -> tuple[str | None, str]:
    """Choose the column of the labels by its name or values; return it and why it is a guess."""
    others = [name for name in dict.fromkeys(names) if name not in texts]
    named = [name for name in others if _plain(name) in LABEL_NAMES]
    if len(named) > 1:
        named = [name for name in named if _plain(name) == "label"]
    usual = [name for name in others if _plain(name) not in (*OTHER_NAMES, *TEXT_NAMES)]
    if named or (len(others) == 1 and usual):
        return (named or usual)[0], ""
    values = {name: {str(row.get(name)) for row in sample} - {"", "None"} for name in others}
    most = max(2, min(MOST_LABELS, len(sample) // 3))
    recurring = [name for name in others if 2 <= len(values[name]) <= most]
    candidates = [name for name in recurring if name in usual] or recurring
    if len(candidates) != 1:
        return None, ""
    (name,) = candidates
    return name, f"{short_label(name)} has {len(values[name])} values that recur"


def _column_error(what: str, role: str, names: Sequence[str], where: str) -> HeadstartError:
    return HeadstartError(
        f"{what}; the columns are {listed(names, SHOWN_NAMES) or 'none'}",
        where=where,
        fix=f"say which one it is: --{role}-column NAME; if these are not names but data, give "
        "the file a first row with the names, such as text,label",
        code=f"{role}-column",
    )


def _mean_words(sample: Sample, name: str) -> float:
    cells = [row.get(name) for row in sample]
    words = [len(cell.split()) + len(cell) / 100 for cell in cells if isinstance(cell, str)]
    return sum(words) / max(1, len(words))


def _plain(name: str) -> str:
    return name.strip().casefold()
