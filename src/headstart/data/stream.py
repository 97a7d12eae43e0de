"""Text files as lines: unzipped, decoded, without byte-order mark, in constant memory.

Bytes that are not text in the file's encoding do not end the reading: they become lone surrogates,
which `check_text` finds in the row that has them.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO

from headstart.data.sources import Source
from headstart.errors import HeadstartError

# A long novel has 3 MB. What is longer than this is not one document but a mistake.
LONGEST_DOCUMENT = 16 << 20
LONGEST_FILE = 1 << 30  # characters of a file that is read as a whole
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UNDECODABLE = 0xDC00  # a byte b that is not text is the lone surrogate UNDECODABLE + b
ERRORS = "headstart-surrogates"


def _as_surrogates(error: UnicodeError) -> tuple[str, int]:
    """Replace undecodable bytes; like `surrogateescape`, but for every byte and encoding."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    seen = error.object[error.start : error.end]
    return "".join(chr(UNDECODABLE + byte) for byte in seen), error.end


codecs.register_error(ERRORS, _as_surrogates)


@contextmanager
def open_unzipped(source: Source) -> Iterator[tuple[BinaryIO, io.BufferedReader | gzip.GzipFile]]:
    """Open a file as it is on the disk, and its unzipped bytes."""
    try:
        with source.file.open("rb") as raw:
            yield raw, gzip.GzipFile(fileobj=raw) if source.gzipped else raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise HeadstartError(
            f"the gzip file is damaged or incomplete ({error})",
            where=source.name,
            fix="copy or download it again; `gzip -t FILE` checks it",
        ) from error


class Lines:
    """The lines of a text file without their ends; every iteration reads it anew.

    A line ends at a line feed, a carriage return or both. A line longer than `LONGEST_DOCUMENT` is
    cut off after that, which `check_text` reports.

    Attributes
    ----------
    start : str
        The beginning of the file, at most a million characters.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self.source = source
        self.encoding = encoding
        self._file: BinaryIO | None = None
        check_encoding(encoding)

    @property
    def share(self) -> float:
        """How much of the file was read so far; 1 while it is not open."""
        if self._file is None or self._file.closed:
            return 1.0
        return self._file.tell() / max(1, self.source.file.stat().st_size)

    @cached_property
    def start(self) -> str:
        with self._open() as file:
            return file.read(1 << 20)

    def __iter__(self) -> Iterator[str]:
        with self._open() as file:
            while line := file.readline(LONGEST_DOCUMENT + 1):
                yield line.removesuffix("\n")
                while line and not line.endswith("\n"):  # the rest of a line that is too long
                    line = file.readline(LONGEST_DOCUMENT)

    def text(self, most: int = LONGEST_FILE) -> str:
        """Read the whole file, up to `most` characters: a small gzip file may be endless."""
        with self._open() as file:
            whole = file.read(most + 1)
        if len(whole) > most:
            raise HeadstartError(
                f"the file is longer than {most >> 20:,} MB, too much to read at once",
                where=self.source.name,
                fix="write it as JSON Lines (.jsonl), one object per line; plain text of a "
                "corpus is read in smaller documents with --documents line or blank-line",
            )
        return whole

    @contextmanager
    def _open(self) -> Iterator[io.TextIOWrapper]:
        """Decode the file; a byte-order mark is skipped, that of another encoding is an error."""
        with open_unzipped(self.source) as (self._file, unzipped):
            start, expected = unzipped.peek(4), codecs.lookup(self.encoding).name
            marks = [name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)]
            # To other encodings these bytes are letters like any others.
            if expected in ("utf-8", "utf-16") and marks and marks[0] != expected:
                raise HeadstartError(
                    f"the file is {marks[0]}, not {expected.upper()}: it has that byte order mark",
                    where=self.source.name,
                    fix=f"--encoding {marks[0]}",
                    code="encoding",
                )
            file = io.TextIOWrapper(unzipped, self.encoding, ERRORS)
            if file.read(1) != "\ufeff":
                file.seek(0)
            yield file


def check_text(value: object, encoding: str = "utf-8") -> str:
    """Return the text of a row; raise what is wrong with it, without a place.

    The error of a missing or blank text has the code "empty".
    """
    if value in (None, "") or value != value or (isinstance(value, str) and value.isspace()):
        fix = "fill it in, or delete the row"
        raise HeadstartError("the text is empty", fix=fix, code="empty")
    if not isinstance(value, str):
        raise HeadstartError(
            f"the text is not text but a {type(value).__name__} ({str(value)[:40]})",
            fix="choose another column with --text-column NAME",
            code="text-column",
        )
    if "\0" in value:
        raise HeadstartError(
            "a NUL character (U+0000): this is not a text file, or it is in another encoding",
            fix="save it as UTF-8 text, or name its encoding: --encoding utf-16",
            code="encoding",
        )
    if len(value) > LONGEST_DOCUMENT:
        raise too_long()
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = ord(value[error.start])
        if not 0 <= code - UNDECODABLE <= 255:
            raise HeadstartError(
                f"half of a surrogate pair (U+{code:04X}) in the text: no encoding can store it",
                fix="write the whole character; it was probably cut in two",
            ) from None
        raise HeadstartError(
            f"byte 0x{code - UNDECODABLE:02X} is not text in {encoding.upper()}",
            fix="name the file's encoding: --encoding cp1252 if it was made on Windows, otherwise "
            "latin-1, utf-16, cp1251 …",
            code="encoding",
        ) from None
    return value


def too_long() -> HeadstartError:
    """Make the error for one document above the limit."""
    return HeadstartError(
        f"one text here is longer than {LONGEST_DOCUMENT >> 20} MB",
        fix="split it into documents, one per line or row; in a CSV file, look for a quotation "
        "mark that opens just before and is never closed",
    )


def storable(value: Any) -> Any:
    """Replace what no UTF-8 file can hold by �, in a text or in texts."""
    if isinstance(value, list | tuple):
        return type(value)(map(storable, value))
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")


def check_encoding(encoding: str) -> None:
    """Reject a name that is not an encoding of text."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)  # rejects rot13 and base64
        codecs.getincrementaldecoder(encoding)().decode(b"")
    except (LookupError, ValueError):
        raise HeadstartError(
            f"there is no encoding named '{encoding}'",
            fix="common ones are utf-8, cp1252 (Windows, Western Europe), latin-1, utf-16, "
            "cp1251 (Cyrillic), shift_jis, gb18030, big5",
            code="encoding",
        ) from None
