"""A text file as checked UTF-8 bytes: unzipped, decoded, no byte-order mark, no NUL bytes.

Everything that reads a text format reads through here, so that a bad byte has one message, and
files larger than memory pass in small blocks.
"""

import codecs
import gzip
import io
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import xxhash

from headstart.errors import HeadstartError
from headstart.text.reading.sources import Source

BLOCK = 1 << 20
# A long novel has 3 MB. What is longer than this is not one document but a mistake.
LONGEST_DOCUMENT = 16 << 20
DAMAGED_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def open_unzipped(source: Source) -> BinaryIO:
    """The file's own bytes."""
    try:
        file = source.file.open("rb")
    except OSError as error:
        raise HeadstartError(
            f"the file cannot be opened ({error.strerror})", where=source.name
        ) from error
    return cast(BinaryIO, gzip.open(file, "rb")) if source.gzipped else file


def read_checked(source: Source, encoding: str, *, lines: bool = True) -> Iterator[bytes]:
    """Yield blocks of valid UTF-8 without NUL bytes; with `lines`, no line is endless."""
    decoder = decoder_of(encoding)
    expected = codecs.lookup(encoding).name
    offset, line, line_length, first = 0, 1, 0, True
    with open_unzipped(source) as file:
        while True:
            block = read_block(file, source)
            if first and (found := unfitting_mark(block, expected)):
                raise HeadstartError(
                    f"the file is not {expected.upper()} but {found}: it begins with its mark",
                    where=source.name,
                    fix=f"--encoding {found}",
                    code="encoding",
                )
            waiting = len(decoder.getstate()[0])
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise _undecodable(source, encoding, error, offset - waiting, line) from None
            if first:
                text = text.removeprefix("\ufeff")
                first = not text
            checked = text.encode("utf-8")
            if (nul := checked.find(b"\0")) >= 0:
                line += checked.count(b"\n", 0, nul)
                raise HeadstartError(
                    "a NUL byte (0x00): this is not a text file, or it is in another encoding",
                    where=f"{source.name}, line {line}",
                    fix="save it as UTF-8 text, or name its encoding: --encoding "
                    + ("utf-32" if expected.startswith("utf-16") else "utf-16"),
                    code="encoding",
                )
            last_break = checked.rfind(b"\n")
            line_length = len(checked) - last_break - 1 + (line_length if last_break < 0 else 0)
            line += checked.count(b"\n")
            if lines and line_length > LONGEST_DOCUMENT:
                raise too_long(f"{source.name}, line {line}")
            if checked:
                yield checked
            if not block:
                return
            offset += len(block)


def unfitting_mark(start: bytes, expected: str) -> str | None:
    """The encoding that a byte-order mark announces, where it is not the expected one."""
    for mark, name in _BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            # To other encodings the first bytes are letters like any others.
            marked = expected in ("utf-8", "utf-16") and name != expected
            return name if marked and name != "utf-8" else None
    return None


def too_long(where: str) -> HeadstartError:
    """One document above the limit; most often a quotation mark that is never closed."""
    return HeadstartError(
        f"one text here is longer than {LONGEST_DOCUMENT >> 20} MB",
        where=where,
        fix="cut it into documents, one per line or row; in a CSV file, look for a quotation mark "
        "that opens just before and is never closed",
    )


class CheckedFile(io.RawIOBase):
    """`read_checked` as a file, for readers that want one (Arrow)."""

    def __init__(self, source: Source, encoding: str) -> None:
        self._blocks = read_checked(source, encoding, lines=False)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            block = next(self._blocks, b"")
            if not block:
                break
            parts.append(block)
            length += len(block)
        whole = b"".join(parts)
        cut = len(whole) if size < 0 else size
        self._rest = whole[cut:]
        return whole[:cut]


def decoder_of(encoding: str) -> codecs.IncrementalDecoder:
    """What turns bytes of this encoding into text."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)  # refuses rot13 and base64: they are not of text
        decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
        decoder.decode(b"")
        return decoder
    except (LookupError, ValueError):
        raise HeadstartError(
            f"there is no encoding named '{encoding}'",
            fix="common ones are utf-8, cp1252 (Windows, Western Europe), latin-1, utf-16, "
            "cp1251 (Cyrillic), shift_jis, gb18030, big5",
            code="encoding",
        ) from None


def read_block(file: BinaryIO, source: Source) -> bytes:
    """The next megabyte, or nothing at the end."""
    try:
        return file.read(BLOCK)
    except DAMAGED_GZIP as error:
        raise damaged_gzip(source, error) from error
    except OSError as error:
        raise HeadstartError(
            f"the file cannot be read ({error.strerror})", where=source.name
        ) from error


def damaged_gzip(source: Source, error: Exception) -> HeadstartError:
    """The error for a gzip file that cannot be read to its end."""
    return HeadstartError(
        f"the gzip file is damaged or incomplete ({error})",
        where=source.name,
        fix="copy or download it again; `gzip -t FILE` checks it",
    )


def _undecodable(
    source: Source, encoding: str, error: UnicodeDecodeError, start: int, line: int
) -> HeadstartError:
    seen = error.object
    byte, offset = seen[error.start], start + error.start
    line += seen.count(b"\n", 0, error.start)
    around = seen[max(0, error.start - 12) : error.start + 12]
    fix = "name the file's encoding: --encoding NAME"
    if codecs.lookup(encoding).name == "utf-8":
        as_windows = around.decode("cp1252", errors="replace").replace("\n", " ").strip()
        fix = (
            f"with --encoding cp1252 (Windows) it would read “…{as_windows}…”; if that is "
            "right, use it, otherwise another encoding (latin-1, utf-16, cp1251, …)"
        )
    return HeadstartError(
        f"byte 0x{byte:02X} at offset {offset:,} is not {encoding.upper()}",
        where=f"{source.name}, line {line}",
        fix=fix,
        code="encoding",
    )


# A file that was written this recently could change again without its time stamp telling:
# some file systems count in steps of two seconds. Its hash is not shared between objects.
_SETTLED = 2_000_000_000  # nanoseconds


class FileState(NamedTuple):
    """What changes when a file does, as far as the file system tells without reading it."""

    path: str
    size: int
    modified: int
    inode: int


_HASHES: dict[FileState, str] = {}


def file_state(path: Path) -> FileState:
    """The file as it is now."""
    found = path.stat()
    return FileState(str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ino)


def hash_file(path: Path) -> tuple[FileState, str]:
    """A file's state and the hash of its content, read unless it is known for this state."""
    state = file_state(path)
    if (known := _HASHES.get(state)) is not None:
        return state, known
    found = _hash_content(path)
    if file_state(path) != state:
        raise changed(path)
    if time.time_ns() - state.modified > _SETTLED:
        _HASHES[state] = found
    return state, found


class ContentHashes:
    """The hashes of a corpus's files, and whether the files are still those."""

    def __init__(self) -> None:
        self._found: dict[Path, tuple[FileState, str]] = {}

    def of(self, path: Path) -> str:
        """The hash of a file, computed at most once."""
        if path not in self._found:
            self._found[path] = hash_file(path)
        return self._found[path][1]

    def check_unchanged(self) -> None:
        """Raise if the content of a file is no longer what was hashed.

        Files that look the same from outside are not read again.
        """
        for path, (state, hashed) in self._found.items():
            try:
                if file_state(path) == state:
                    continue
                now = hash_file(path)
            except OSError:
                raise changed(path) from None
            if now[1] != hashed:
                raise changed(path)
            self._found[path] = now


def changed(where: object) -> HeadstartError:
    """The error for a corpus that was written to while it was read."""
    return HeadstartError(
        "the corpus changed while it was being read",
        where=where,
        fix="wait until nothing writes to it any more, then run the command again",
    )


def _hash_content(path: Path) -> str:
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            hashed.update(block)
    return hashed.hexdigest()
