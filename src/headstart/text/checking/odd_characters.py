"""Characters that tell of damage: lost accents, double encodings, markup, invisible marks."""

import re
import unicodedata

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
