"""Bad input, found early: each problem is one message with the file, the row and the fix.

`odd_characters` finds what is no error but a sign of damage: lost accents, double encodings,
markup, invisible characters.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from headstart.errors import HeadstartError
from headstart.text.reading.stream import LONGEST_DOCUMENT, too_long

Where = Callable[[], str]

LABELS_MARK = "|"
# How programs write "no value" into a label column.
_MISSING_LABELS = {"", "nan", "null", "<na>"}
_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


def checked_text(value: object, where: Where) -> str:
    """The text of a row; a missing one is empty. Whatever is not text is an error."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        raise HeadstartError(
            f"the text is not text but a {type(value).__name__} ({str(value)[:40]})",
            where=where(),
            fix="choose another column with --text-column NAME",
            code="text-column",
        )
    if "\0" in value:
        raise HeadstartError(
            "a NUL character (U+0000) in the text", where=where(), fix="remove it from the file"
        )
    if len(value) > LONGEST_DOCUMENT:
        raise too_long(where())
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise HeadstartError(
                f"half of a surrogate pair (U+{ord(value[error.start]):04X}) in the text: "
                "no encoding can store it",
                where=where(),
                fix="write the character whole; it was probably cut in two",
            ) from None
    return value if not value.isspace() else ""


def checked_label(value: object, label_names: Sequence[str] | None, where: Where) -> str:
    """The label of a row as a name: 1, 1.0 and "1" are the same class, a missing one is none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and label_names is not None:
        if 0 <= value < len(label_names):
            return label_names[value]
        raise HeadstartError(
            f"label {value}, but the file names only {len(label_names)} classes",
            where=where(),
        )
    if value is not None and not isinstance(value, str | int | float):
        raise HeadstartError(
            f"the label is not one value but a {type(value).__name__} ({str(value)[:40]})",
            where=where(),
            fix="one label per text; choose another column with --label-column NAME",
            code="label-column",
        )
    name = "" if value is None else str(value).strip()
    if name.lower() in _MISSING_LABELS:
        raise HeadstartError(
            f"the label is missing ({name or 'empty'})",
            where=where(),
            fix="fill it in, or take the row out of the file (its text can go into --corpus)",
        )
    whole = _WHOLE_NUMBER.fullmatch(name)
    return whole[1] if whole else name


def checked_labels(value: object, label_names: Sequence[str] | None, where: Where) -> str:
    """Any number of labels of a row, as one name: sorted, each once, with a bar between them.

    They may be a list, or written with a bar, a semicolon or a comma in between.
    """
    if isinstance(value, list | tuple):
        parts: list[object] = list(value)
    elif isinstance(value, str):
        mark = next((mark for mark in "|;," if mark in value), LABELS_MARK)
        parts = [part.strip() for part in value.split(mark) if part.strip()]
    else:
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        parts = [] if missing else [value]
    return LABELS_MARK.join(sorted({checked_label(part, label_names, where) for part in parts}))


def check_classes(counts: Mapping[str, int], where: str) -> None:
    """A classifier needs two classes, and a class two texts: one to learn, one to check."""
    if not counts:
        raise HeadstartError("there is no text in it", where=where)
    if len(counts) == 1:
        (name, count) = next(iter(counts.items()))
        raise HeadstartError(
            f"there is one class only: all {count:,} texts are '{name}'",
            where=where,
            fix="add texts of another class, or name the right column with --label-column",
            code="label-column",
        )
    rare = [name for name, count in counts.items() if count < 2]
    if rare:
        shown = ", ".join(f"'{name}'" for name in rare[:5]) + (", …" if len(rare) > 5 else "")
        raise HeadstartError(
            f"{len(rare)} of {len(counts)} classes have fewer than two different texts: {shown}",
            where=where,
            fix="add texts, join rare classes, or take their rows out"
            + (
                "; so many classes look like the wrong column: --label-column NAME"
                if len(counts) > 50
                else ""
            ),
        )


def unknown_label(name: str, known: Sequence[str], where: str) -> HeadstartError:
    """A label that the training part does not have can be neither learned nor scored."""
    return HeadstartError(
        f"label '{name}' does not occur in the training texts; known are "
        + ", ".join(f"'{label}'" for label in known[:20]),
        where=where,
        fix="correct it, or give the training file examples of it",
    )


_TAGS = "br|p|div|span|a|b|i|u|em|strong|li|ul|ol|td|tr|table|img|font|h[1-6]|html|body|script"
# Each pattern begins with the rarest character it needs: most texts are passed over quickly.
_KINDS = {
    "replacement characters (�): damaged when the file was made": "\ufffd",
    "doubly encoded letters (Ã©, â€™)": (
        "[ÃÂâ](?:(?<=Ã)[\u0080-\u00bf]|(?<=Â)[\u00a0-\u00bf]|(?<=â)€)"
    ),
    "question marks inside words (l?amour): lost apostrophes or accents": (
        r"\?(?<=[^\W\d_]\?)[a-zß-öø-ÿ]"  # a capital tells of a missing space
    ),
    "HTML tags or entities (<br />, &amp;)": (
        rf"[<&](?:(?<=<)/?(?:{_TAGS})\b[^<>]{{0,200}}>|(?<=&)(?:[a-z]{{2,6}}|#\d+);)"
    ),
    "control characters (often Windows punctuation read as Latin-1)": (
        "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
    ),
    "invisible characters (zero width, text direction)": (
        "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
    ),
    "private-use characters": "[\ue000-\uf8ff]",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _KINDS.items()}
DECOMPOSED = "letters stored as letter + accent (Unicode form NFD)"
# The kinds that a plain ASCII text can have.
_IN_ASCII = [kind for kind in _KINDS if kind.startswith(("question", "HTML", "control"))]
_AROUND = 40


def odd_characters(text: str) -> dict[str, str]:
    """The kinds of odd characters in a text, each with the words around the first one."""
    ascii_text = text.isascii()
    found = {}
    for kind in _IN_ASCII if ascii_text else _PATTERNS:
        if match := _PATTERNS[kind].search(text):
            found[kind] = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
    if not ascii_text and not unicodedata.is_normalized("NFC", text):
        found[DECOMPOSED] = text[: 2 * _AROUND]
    return found
