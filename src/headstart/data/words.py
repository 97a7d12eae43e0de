"""Find words and sentences in scripts with spaces between words and without."""

import re
import unicodedata

# Scripts without spaces between words, of which every character is a word: Thai, Lao, Burmese,
# Khmer, Hiragana, Katakana, Han with its extensions.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\U00020000-\U000323af"
)
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")
_IN_WORD = re.compile(rf"[{UNSPACED}]|[^{UNSPACED}]+")
unspaced = re.compile(f"[{UNSPACED}]").match  # whether a character is of such a script
_ABBREVIATION = re.compile(r"(?:\w\.){2,}")  # U.S., e.g.

Places = list[tuple[int, int]]


def find_words(text: str) -> Places:
    """Return start and end of every word, punctuation mark and unspaced character."""
    return [match.span() for match in _WORD.finditer(text)]


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop, question or exclamation mark.

    >>> first_sentence("It costs 3.50 here. Not there.")
    'It costs 3.50 here.'
    """
    found = re.match(r".*?(?:[.!?](?=\s)|[。！？]|\Z)", text, re.DOTALL)
    return text if found is None else found[0]


def split_words(text: str) -> Places:
    """Return start and end of the words as CoNLL files split them.

    Punctuation around a word is separate, punctuation inside it is not (`don't`, `3.5`,
    `Paris-based`), and neither is the last full stop of `U.S.`.
    """
    words: Places = []
    for match in re.finditer(r"\S+", text):
        start, end = match.span()
        while start < end and _is_punctuation(text[start]):
            words.append((start, start + 1))
            start += 1
        last = end
        while last > start and _is_punctuation(text[last - 1]):
            if _ABBREVIATION.fullmatch(text, start, last):
                break
            last -= 1
        words += [found.span() for found in _IN_WORD.finditer(text, start, last)]
        words += [(place, place + 1) for place in range(last, end)]
    return words


def _is_punctuation(character: str) -> bool:
    """Return whether it is punctuation or a symbol; accents and vowel signs are neither."""
    return unicodedata.category(character)[0] in "PS"
