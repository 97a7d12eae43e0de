"""Find words and sentences in scripts with spaces between words and without."""

import re
import unicodedata

_WORD = re.compile(r"\w+|[^\w\s]")
_NO_SPACE = re.compile(r"\S+")
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
    """Return start and end of every word, punctuation mark and unspaced character."""
    words: Places = []
    for match in _WORD.finditer(text):
        words += _split_unspaced(text, *match.span())
    return words


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop, question or exclamation mark.

    >>> first_sentence("It costs 3.50 here. Not there.")
    'It costs 3.50 here.'
    """
    found = _SENTENCE.match(text)
    return text if found is None else found[0]


def split_words(text: str) -> Places:
    """Return start and end of the words as CoNLL files split them.

    Punctuation around a word is separate, punctuation inside it is not (`don't`, `3.5`,
    `Paris-based`), and neither is the last full stop of `U.S.`.
    """
    words: Places = []
    for match in _NO_SPACE.finditer(text):
        start, end = match.span()
        while start < end and _is_punctuation(text[start]):
            words.append((start, start + 1))
            start += 1
        last = end
        while last > start and _is_punctuation(text[last - 1]):
            if _ABBREVIATION.fullmatch(text, start, last):
                break
            last -= 1
        words += _split_unspaced(text, start, last)
        words += [(place, place + 1) for place in range(last, end)]
    return words


def _split_unspaced(text: str, start: int, end: int) -> Places:
    """Split a word at characters of scripts without spaces; each of them is a word."""
    words: Places = []
    for place in range(start, end):
        if unspaced(text[place]):
            if start < place:
                words.append((start, place))
            words.append((place, place + 1))
            start = place + 1
    if start < end:
        words.append((start, end))
    return words


def _is_punctuation(character: str) -> bool:
    """Return whether it is punctuation or a symbol; accents and vowel signs are neither."""
    return unicodedata.category(character)[0] in "PS"
