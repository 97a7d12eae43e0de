"""Where the words of a text stand, in scripts with blanks between them and without."""

import re

from headstart.text.scripts import unspaced

_WORD = re.compile(r"\w+|[^\w\s]")


def find_words(text: str) -> list[tuple[int, int]]:
    """Start and end of every word and every mark; in scripts without blanks, of every character."""
    words = []
    for match in _WORD.finditer(text):
        start = match.start()
        for place in range(match.start(), match.end()):
            if unspaced(text[place]):
                if start < place:
                    words.append((start, place))
                words.append((place, place + 1))
                start = place + 1
        if start < match.end():
            words.append((start, match.end()))
    return words
