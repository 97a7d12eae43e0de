"""Scripts that are written without spaces between words."""

# First and last code point.
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
