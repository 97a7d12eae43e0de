"""Find the text and the label column of a table by name; never guess between two."""

from collections.abc import Sequence

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
# Names of the two columns of text pairs.
PAIR_NAMES = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_1", "sentence_2"),
    ("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b"), ("first", "second"),
    ("question1", "question2"), ("question", "answer"), ("query", "document"),
    ("question", "sentence"),
)
# fmt: on


def find_text_column(columns: Sequence[str], wanted: str | None, where: str) -> str:
    """The column that holds the text."""
    if wanted is None and len(columns) == 1:
        return columns[0]
    return _find("text", columns, TEXT_NAMES, wanted, where)


def find_pair_columns(
    columns: Sequence[str], first: str | None, second: str | None, where: str
) -> tuple[str, str]:
    """The two columns whose texts belong together."""
    if first is not None or second is not None:
        return (
            _find("text", columns, TEXT_NAMES, first, where),
            _find("second", columns, (), second, where),
        )
    by_name = {column.strip().casefold(): column for column in columns}
    found = [pair for pair in PAIR_NAMES if by_name.keys() >= set(pair)]
    if len(found) != 1:
        listed = ", ".join(f"'{_shorten(column)}'" for column in columns)
        raise HeadstartError(
            f"no two text columns were found; the columns are {listed}"
            if not found
            else f"several pairs of columns could be the texts: {found}",
            where=where,
            fix="say which ones they are: --text-column NAME --second-column NAME",
        )
    return by_name[found[0][0]], by_name[found[0][1]]


def find_label_column(columns: Sequence[str], wanted: str | None, where: str) -> str:
    """The column that holds the label."""
    return _find("label", columns, LABEL_NAMES, wanted, where)


def _find(
    role: str, columns: Sequence[str], names: Sequence[str], wanted: str | None, where: str
) -> str:
    listed = ", ".join(f"'{_shorten(column)}'" for column in columns) or "none"
    option = f"--{role}-column"
    if wanted is not None:
        found = [column for column in columns if column == wanted]
        if not found:
            raise HeadstartError(
                f"there is no column '{wanted}' ({option}); the columns are {listed}", where=where
            )
    else:
        found = [column for column in columns if column.strip().casefold() in names]
        if not found:
            raise HeadstartError(
                f"no {role} column was found; the columns are {listed}",
                where=where,
                fix=f"say which one it is: {option} NAME; if these are not names but data, "
                "give the file a first row with the names, such as text,label",
            )
    if len(found) > 1:
        unclear = ", ".join(f"'{column}'" for column in found)
        raise HeadstartError(
            f"several columns could be the {role}: {unclear}; the columns are {listed}",
            where=where,
            fix=f"say which one it is: {option} NAME"
            if len(set(found)) > 1
            else "give each column a name of its own in the first row",
        )
    return found[0]


def _shorten(name: str, length: int = 40) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"
