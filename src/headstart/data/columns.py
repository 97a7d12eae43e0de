"""Which columns of a table hold the text and the label: given, found by name, or guessed.

A guess is by the values of the first rows: texts are the longest cells, labels are values that
recur. What was guessed is part of `Columns.words`, which every command prints.
"""

from collections.abc import Mapping, Sequence
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
PAIR_NAMES = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"),
    ("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b"), ("first", "second"),
    ("question1", "question2"), ("question", "answer"), ("query", "document"),
    ("question", "sentence"), ("question", "context"),
)
# fmt: on
LEAST_WORDS = 2  # of a guessed text, on average
MOST_LABELS = 1_000  # a column with more values is not one of labels
HEADER_WORDS = 5  # a column's name has fewer
SHOWN_NAMES = 20  # in a message

Sample = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read; `guessed` says why those without a clear name are."""

    text: str | None = None
    second: str | None = None
    label: str | None = None
    guessed: tuple[str, ...] = ()

    def words(self, labelled: bool) -> str:
        """Describe the columns for the user to check."""
        texts = [f"'{name}'" for name in (self.text, self.second) if name is not None]
        found = f"text: {' and '.join(texts)}"
        if labelled:
            found += f", label: '{self.label}'"
        return found + (f" (guessed: {'; '.join(self.guessed)})" if self.guessed else "")


def choose_columns(
    names: Sequence[str],
    sample: Sample,
    wanted: Columns,
    *,
    pairs: bool = False,
    labelled: bool = True,
    where: str = "",
) -> Columns:
    """Choose the columns of a table.

    Parameters
    ----------
    names : the columns of the table.
    sample : its first rows.
    wanted : the names that were given.
    pairs : whether a row has two texts.
    labelled : whether a label is needed; without one, it is found if possible.
    """
    guessed: list[str] = []
    for role, name in (("text", wanted.text), ("second", wanted.second), ("label", wanted.label)):
        if name is not None:
            _check_given(role, name, names, where)
    if pairs:
        text, second = _choose_pair(names, wanted, where, guessed)
    else:
        text, second = wanted.text or _choose_text(names, sample, wanted, where, guessed), None
    texts = [one for one in (text, second) if one is not None]
    label = wanted.label or _label_by_name(names, texts, where)
    if label is None:
        label, why = _guess_label(names, sample, texts)
        guessed += [why] if why and labelled else []
    if label is None and labelled:
        raise _not_found("label", names, where)
    if guessed:
        _check_header(sample, text, label, where)
    return Columns(text, second, label, tuple(guessed))


def _choose_text(
    names: Sequence[str], sample: Sample, wanted: Columns, where: str, guessed: list[str]
) -> str:
    if len(names) == 1:
        return names[0]
    found = [name for name in names if _plain(name) in TEXT_NAMES and name != wanted.label]
    if len(found) == 1:
        return found[0]
    _check_distinct("text", found, where)
    labels = {wanted.label, *(name for name in names if _plain(name) in LABEL_NAMES)}
    candidates = found or [name for name in names if name not in labels]
    lengths = {name: _mean_words(sample, name) for name in candidates}
    best = max(lengths, key=lengths.__getitem__, default=None)
    if best is None or lengths[best] < LEAST_WORDS:
        raise _not_found("text", names, where)
    guessed.append(f"{short_label(best)} has the longest texts")
    return best


def _choose_pair(
    names: Sequence[str], wanted: Columns, where: str, guessed: list[str]
) -> tuple[str, str]:
    if wanted.text is not None and wanted.second is not None:
        return wanted.text, wanted.second
    by_name = {_plain(name): name for name in names}
    pairs = [pair for pair in PAIR_NAMES if by_name.keys() >= set(pair)]
    if len(pairs) == 1 and wanted.text is None and wanted.second is None:
        return by_name[pairs[0][0]], by_name[pairs[0][1]]
    taken = {wanted.text, wanted.second, wanted.label}
    texts = [n for n in names if n not in taken and _plain(n) not in (*LABEL_NAMES, *OTHER_NAMES)]
    given = [name for name in (wanted.text, wanted.second) if name is not None]
    if pairs or len(texts) + len(given) != 2:
        raise HeadstartError(
            f"several pairs of columns could be the texts: {pairs}"
            if pairs
            else f"no two text columns were found; the columns are {listed(names, SHOWN_NAMES)}",
            where=where,
            fix="say which ones they are: --text-column NAME --second-column NAME",
            code="second-column",
        )
    first, second = (*given, *texts) if wanted.second is None else (*texts, *given)
    guessed.append(f"{short_label(first)} and {short_label(second)} are the only columns left")
    return first, second


def _label_by_name(names: Sequence[str], texts: Sequence[str], where: str) -> str | None:
    found = [name for name in names if _plain(name) in LABEL_NAMES and name not in texts]
    _check_distinct("label", found, where)
    exact = [name for name in found if _plain(name) == "label"]
    if len(found) > 1:
        found = exact
    return found[0] if found else None


def _guess_label(
    names: Sequence[str], sample: Sample, texts: Sequence[str]
) -> tuple[str | None, str]:
    """Guess the column of the labels by its values; return it and the reason."""
    others = [name for name in dict.fromkeys(names) if name not in texts]
    usual = [name for name in others if _plain(name) not in (*OTHER_NAMES, *TEXT_NAMES)]
    if len(others) == 1 and usual:
        return others[0], ""
    values = {name: {str(row.get(name)) for row in sample} - {"", "None"} for name in others}
    most = max(2, min(MOST_LABELS, len(sample) // 3))
    for least in (2, 1):
        recurring = [name for name in others if least <= len(values[name]) <= most]
        candidates = [name for name in recurring if name in usual] or recurring
        if len(candidates) == 1 and sample:
            count = len(values[candidates[0]])
            return candidates[0], f"{short_label(candidates[0])} has {count} values that recur"
        if candidates:
            break
    return None, ""


def _check_header(sample: Sample, text: str, label: str | None, where: str) -> None:
    """Reject a first row of data: it would be lost as the names of the columns."""
    labels = {str(row.get(label or "")) for row in sample}
    if len(text.split()) >= HEADER_WORDS or (label is not None and label in labels):
        raise HeadstartError(
            "the first row looks like data, not like the names of columns",
            where=where,
            fix="give the file a first row with the names, such as text,label; or name the "
            "columns: --text-column NAME --label-column NAME",
            code="column-names",
        )


def _check_given(role: str, wanted: str, names: Sequence[str], where: str) -> None:
    found = [name for name in names if name == wanted]
    if not found:
        raise HeadstartError(
            f"there is no column {short_label(wanted)} (--{role}-column); the columns are "
            f"{listed(names, SHOWN_NAMES)}",
            where=where,
            fix="name one of them",
            code=f"{role}-column",
        )
    _check_distinct(role, found, where)


def _check_distinct(role: str, found: Sequence[str], where: str) -> None:
    if len(set(found)) < len(found):
        raise HeadstartError(
            f"several columns are called {short_label(found[0])}",
            where=where,
            fix="give each column another name in the first row",
            code="column-names",
        )


def _not_found(role: str, names: Sequence[str], where: str) -> HeadstartError:
    return HeadstartError(
        f"no {role} column was found; the columns are {listed(names, SHOWN_NAMES) or 'none'}",
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
