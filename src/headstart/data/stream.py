"""Text files as lines: unzipped, decoded, without byte-order mark, in constant memory.

Bytes that are not text in the file's encoding do not end the reading: they become lone surrogates,
which `check_text` finds in the row that has them.
"""

import codecs
import gzip
import io
import math
import zlib
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import BinaryIO, cast

from headstart.data.sources import Source
from headstart.errors import HeadstartError

# A long novel has 3 MB. What is longer than this is not one document but a mistake.
LONGEST_DOCUMENT = 16 << 20
BLOCK = 1 << 20  # bytes that are read at once
LONGEST_FILE = 1 << 30  # characters of a file that is read as a whole
DAMAGED_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
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


class Lines:
    """The lines of a text file without their ends; every iteration reads it anew.

    A line ends at a line feed, or at a carriage return in files that have no line feed. A line
    longer than `LONGEST_DOCUMENT` is cut off after that, which `check_text` reports.

    Attributes
    ----------
    start : str
        The beginning of the file, at most a megabyte.
    share : float or None
        How much of the file was read so far, where that is known.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self.source = source
        self.encoding = encoding
        self.share: float | None = None
        check_encoding(encoding)

    @cached_property
    def start(self) -> str:
        return next(self.blocks(), "")

    @cached_property
    def line_end(self) -> str:
        """The character that ends a line."""
        return "\r" if "\r" in self.start and "\n" not in self.start else "\n"

    def __iter__(self) -> Iterator[str]:
        end, rest = self.line_end, ""
        blocks: Iterator[str] = self.blocks()
        while (block := next(blocks, None)) is not None:
            lines = (rest + block).split(end)
            rest = lines.pop()
            if "\r" in block and end == "\n":
                lines = [line.removesuffix("\r") for line in lines]
            yield from lines
            if len(rest) > LONGEST_DOCUMENT:
                yield rest[: LONGEST_DOCUMENT + 1]
                blocks, rest = chain([_after_line(blocks, end)], blocks), ""
        if rest:
            yield rest.removesuffix("\r")

    def text(self, most: int = LONGEST_FILE) -> str:
        """Read the whole file, up to `most` characters: a small gzip file may be endless."""
        whole = ""
        for block in self.blocks():
            whole += block
            if len(whole) > most:
                raise HeadstartError(
                    f"the file is longer than {most >> 20:,} MB, too much to read at once",
                    where=self.source.name,
                    fix="write it as JSON Lines (.jsonl), one object per line; plain text of a "
                    "corpus is read in smaller documents with --documents line or blank-line",
                )
        return whole

    def blocks(self) -> Iterator[str]:
        """Decode the file block by block."""
        decoder = codecs.getincrementaldecoder(self.encoding)(errors=ERRORS)
        size = self.source.file.stat().st_size
        done, first = 0, True
        with open_unzipped(self.source) as file:
            while True:
                block = read_block(file, self.source)
                if first:
                    self._check_mark(block)
                text = decoder.decode(block, final=not block)
                if first and text:
                    text, first = text.removeprefix("\ufeff"), False
                done += len(block)
                if not self.source.gzipped and size:
                    self.share = min(1.0, done / size)
                if text:
                    yield text
                if not block:
                    return

    def _check_mark(self, start: bytes) -> None:
        """Reject a byte-order mark of another Unicode encoding than the expected one."""
        expected = codecs.lookup(self.encoding).name
        found = next(
            (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)), ""
        )
        # To other encodings these bytes are letters like any others.
        if expected in ("utf-8", "utf-16") and found not in ("", "utf-8", expected):
            raise HeadstartError(
                f"the file is not {expected.upper()} but {found}: it begins with its mark",
                where=self.source.name,
                fix=f"--encoding {found}",
                code="encoding",
            )


def _after_line(blocks: Iterator[str], end: str) -> str:
    """Skip the rest of a line that is too long; return what was read of the next one."""
    for block in blocks:
        _, found, after = block.partition(end)
        if found:
            return after
    return ""


def check_text(value: object, encoding: str = "utf-8") -> tuple[str, HeadstartError | None]:
    """Check the text of a row.

    Returns
    -------
    str, HeadstartError or None
        The text, "" where it is missing or blank; and the problem, without a place. An empty text
        has the code "empty".
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "", _empty()
    if not isinstance(value, str):
        return str(value), HeadstartError(
            f"the text is not text but a {type(value).__name__} ({str(value)[:40]})",
            fix="choose another column with --text-column NAME",
            code="text-column",
        )
    if not value or value.isspace():
        return "", _empty()
    if "\0" in value:
        return value, HeadstartError(
            "a NUL character (U+0000): this is not a text file, or it is in another encoding",
            fix="save it as UTF-8 text, or name its encoding: --encoding utf-16",
            code="encoding",
        )
    if len(value) > LONGEST_DOCUMENT:
        return value, too_long()
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            return value, _surrogate(value, error.start, encoding)
    return value, None


def is_undecodable(text: str) -> bool:
    """Whether a text has bytes that were not text in the file's encoding."""
    return not text.isascii() and any(UNDECODABLE <= ord(c) <= UNDECODABLE + 255 for c in text)


def too_long() -> HeadstartError:
    """Make the error for one document above the limit."""
    return HeadstartError(
        f"one text here is longer than {LONGEST_DOCUMENT >> 20} MB",
        fix="split it into documents, one per line or row; in a CSV file, look for a quotation "
        "mark that opens just before and is never closed",
    )


def storable(text: str) -> str:
    """Replace what no UTF-8 file can hold by �."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")


def _empty() -> HeadstartError:
    return HeadstartError("the text is empty", fix="fill it in, or delete the row", code="empty")


def _surrogate(text: str, place: int, encoding: str) -> HeadstartError:
    byte = ord(text[place]) - UNDECODABLE
    if not 0 <= byte <= 255:
        return HeadstartError(
            f"half of a surrogate pair (U+{ord(text[place]):04X}) in the text: no encoding can "
            "store it",
            fix="write the whole character; it was probably cut in two",
        )
    return HeadstartError(
        f"byte 0x{byte:02X} is not text in {encoding.upper()}",
        fix="name the file's encoding: --encoding cp1252 if it was made on Windows, otherwise "
        "latin-1, utf-16, cp1251 …",
        code="encoding",
    )


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


def open_unzipped(source: Source) -> BinaryIO:
    """Open a file for reading its bytes."""
    file = source.file.open("rb")
    return cast(BinaryIO, gzip.open(file, "rb")) if source.gzipped else file


def read_block(file: BinaryIO, source: Source) -> bytes:
    """Read the next megabyte, or nothing at the end."""
    try:
        return file.read(BLOCK)
    except DAMAGED_GZIP as error:
        raise HeadstartError(
            f"the gzip file is damaged or incomplete ({error})",
            where=source.name,
            fix="copy or download it again; `gzip -t FILE` checks it",
        ) from error
