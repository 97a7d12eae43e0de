"""The documents of a plain text file: its lines, its paragraphs, or the whole file."""

from collections.abc import Iterator
from typing import Literal

from headstart.errors import HeadstartError
from headstart.text.reading import records
from headstart.text.reading.sources import Source
from headstart.text.reading.stream import LONGEST_DOCUMENT, read_checked, too_long

# What one document of a plain text file is.
Documents = Literal["line", "blank-line", "file"]


def read_documents(source: Source, documents: Documents, encoding: str) -> Iterator[str]:
    """Every document of a file; one without text is empty."""
    if documents == "file":
        yield _whole_file(source, encoding)
    elif documents == "blank-line":
        yield from _paragraphs(source, encoding)
    else:  # the stream has checked all that `checked_text` checks
        yield from (line.strip() and line for line in records.read_lines(source, encoding))


def _whole_file(source: Source, encoding: str) -> str:
    blocks, length = [], 0
    for block in read_checked(source, encoding, lines=False):
        blocks.append(block)
        length += len(block)
        if length > LONGEST_DOCUMENT:
            raise HeadstartError(
                f"the file is longer than {LONGEST_DOCUMENT >> 20} MB, too much for one document",
                where=source.name,
                fix="a file of a folder is one document, unless you say --documents line "
                "or --documents blank-line",
            )
    return b"".join(blocks).decode().strip()


def _paragraphs(source: Source, encoding: str) -> Iterator[str]:
    lines: list[str] = []
    length = 0
    for number, line in enumerate(records.read_lines(source, encoding), start=1):
        if line.strip():
            lines.append(line)
            length += len(line)
            if length > LONGEST_DOCUMENT:
                raise too_long(source.row(number))
        elif lines:
            yield "\n".join(lines)
            lines, length = [], 0
    if lines:
        yield "\n".join(lines)
