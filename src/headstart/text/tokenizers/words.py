"""Where the words of a text are, in scripts with spaces between them and without."""

import re
import unicodedata

_WORD = re.compile(r"\w+|[^\w\s]")
_BETWEEN_BLANKS = re.compile(r"\S+")
_ABBREVIATION = re.compile(r"(?:\w\.){2,}")  # U.S., e.g.
_SENTENCE = re.compile(r".*?(?:[.!?](?=\s)|[。！？]|\Z)", re.DOTALL)

Places = list[tuple[int, int]]
# Scripts without spaces between words: first and last code point.
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0x20000, 0x323AF),  # Han, extensions B to H
)


def unspaced(character: str) -> bool:
    """Whether the character belongs to a script without spaces between words."""
    code = ord(character)
    return any(first <= code <= last for first, last in UNSPACED)


def find_words(text: str) -> Places:
    """Start and end of every word and every mark; in scripts without blanks, of every character."""
    words: Places = []
    for match in _WORD.finditer(text):
        words += _apart(text, *match.span())
    return words


def first_sentence(text: str) -> str:
    """Everything up to the first full stop, question or exclamation mark.

    Example
    -------
    >>> first_sentence("It costs 3.50 here. Not there.")
    'It costs 3.50 here.'
    """
    found = _SENTENCE.match(text)
    return text if found is None else found[0]


def split_words(text: str) -> Places:
    """Start and end of the words as CoNLL files have them.

    Marks around a word stand alone, marks inside it stay (`don't`, `3.5`, `Paris-based`), and so
    does the last full stop of `U.S.`.
    """
    words: Places = []
    for match in _BETWEEN_BLANKS.finditer(text):
        start, end = match.span()
        while start < end and _is_mark(text[start]):
            words.append((start, start + 1))
            start += 1
        last = end
        while last > start and _is_mark(text[last - 1]):
            if _ABBREVIATION.fullmatch(text, start, last):
                break
            last -= 1
        words += _apart(text, start, last)
        words += [(place, place + 1) for place in range(last, end)]
    return words


def _apart(text: str, start: int, end: int) -> Places:
    """One word, or more: characters of scripts without blanks are words of their own."""
    words: Places = []
    for place in range(start, end):
        if unspaced(text[place]):
            if start < place:
                words.append((start, place))
            words.append((place, place + 1))
            start = place + 1
    return [*words, (start, end)] if start < end else words


def _is_mark(character: str) -> bool:
    """Punctuation or a symbol, in any script; accents and vowel signs are neither."""
    return unicodedata.category(character)[0] in "PS"
