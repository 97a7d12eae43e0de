"""Which columns of a table hold the text and the label: given, found by name, or the only one left.

The names in a table are never its data: a table that has no first row of names, or several columns
that could be meant, is an error. `Columns.words` says what was chosen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
# Columns with these names hold neither, unless they are given.
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
SHOWN_NAMES = 20  # in a message


@dataclass(frozen=True)
class ReadOptions:
    """How to read: the columns, where they are not to be found, and the encoding."""

    text_column: str | None = None
    label_column: str | None = None
    second_column: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Columns:
    """The names of the columns that are read."""

    text: str = ""
    second: str | None = None
    label: str | None = None

    @property
    def texts(self) -> list[str]:
        """The columns of the texts: one, or two for pairs."""
        return [self.text] if self.second is None else [self.text, self.second]

    def words(self, labelled: bool) -> str:
        """Describe the columns for the user to check."""
        label = f", label: '{self.label}'" if labelled else ""
        return f"text: {' and '.join(repr(name) for name in self.texts)}{label}"


def choose_columns(
    names: Sequence[str],
    options: ReadOptions,
    *,
    pairs: bool = False,
    labelled: bool = True,
    where: str = "",
) -> Columns:
    """Choose the columns of a table.

    Parameters
    ----------
    names : the columns of the table.
    options : the names that were given.
    pairs : whether a row has two texts.
    labelled : whether a label is needed; without one, it is found if possible.
    """
    for role in ("text", "second", "label"):
        name = getattr(options, f"{role}_column")
        if name is not None and name not in names:
            raise _column_error(f"there is no column {short_label(name)}", role, names, where)
    text, second, label = options.text_column, None, options.label_column
    if pairs:
        text, second = _choose_pair(names, options, where)
    elif text is None:
        others = (label, *LABEL_NAMES, *OTHER_NAMES)
        text = names[0] if len(names) == 1 else _find_column(names, TEXT_NAMES, others)
    if text is None:
        raise _column_error("no text column was found", "text", names, where)
    label = label or _find_column(names, LABEL_NAMES, (text, second, *TEXT_NAMES, *OTHER_NAMES))
    if label is None and labelled:
        raise _column_error("no label column was found", "label", names, where)
    if any(names.count(name) > 1 for name in (text, second, label)):
        raise HeadstartError(
            f"several of the columns {listed(names, SHOWN_NAMES)} have the same name",
            where=where,
            fix="give the file a first row with different names, such as text,label",
            code="column-names",
        )
    return Columns(text, second, label)


def _find_column(
    names: Sequence[str], usual: Sequence[str], others: Sequence[str | None]
) -> str | None:
    """Find the one column with the first or any of the usual names, or else the only one left."""
    left = [name for name in dict.fromkeys(names) if name not in others]
    named = [name for name in left if _plain(name) in usual]
    first = [name for name in named if _plain(name) == usual[0]]
    rest = [name for name in left if _plain(name) not in others]
    return next((found[0] for found in (first, named, rest) if len(found) == 1), None)


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


def _column_error(what: str, role: str, names: Sequence[str], where: str) -> HeadstartError:
    return HeadstartError(
        f"{what}; the columns are {listed(names, SHOWN_NAMES) or 'none'}",
        where=where,
        fix=f"say which one it is: --{role}-column NAME; if these are not names but data, give "
        "the file a first row with the names, such as text,label",
        code=f"{role}-column",
    )


def _plain(name: str) -> str:
    return name.strip().casefold()
