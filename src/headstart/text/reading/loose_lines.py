"""The lines of a file as far as they can be read: bad bytes cost their own line, no other."""

import io
from collections.abc import Iterator
from typing import BinaryIO

from headstart.text.reading.sources import Source
from headstart.text.reading.stream import (
    BLOCK,
    DAMAGED_GZIP,
    LONGEST_DOCUMENT,
    damaged_gzip,
    decoder_of,
    open_unzipped,
)


class LooseLines:
    """Lines without their ends. `share` says how much of the file was read, where known."""

    def __init__(self, source: Source, encoding: str) -> None:
        decoder_of(encoding)  # an unknown one is an error now
        self.source = source
        self.encoding = encoding
        self._read = 0
        self._size = 0 if source.path is None else source.path.stat().st_size

    @property
    def share(self) -> float | None:
        known = self._size and self._read and not self.source.gzipped
        return min(1.0, self._read / self._size) if known else None

    def __iter__(self) -> Iterator[str]:
        """Bytes that are not text become what `checks.checked_text` finds."""
        with open_unzipped(self.source) as binary, self._decoded(binary) as file:
            first = True
            while line := self._line(file, LONGEST_DOCUMENT + 1):
                rest = line
                while rest and not rest.endswith("\n"):  # too long to be a text: pass over it
                    rest = self._line(file, LONGEST_DOCUMENT)
                if not self.source.gzipped:
                    self._read = binary.tell()
                line = line.removeprefix("\ufeff") if first else line
                first = False
                yield line.removesuffix("\n").removesuffix("\r")

    def beginning(self) -> str:
        """As much as shows the habits of the file."""
        with open_unzipped(self.source) as binary, self._decoded(binary) as file:
            try:
                return file.read(BLOCK).removeprefix("\ufeff")
            except DAMAGED_GZIP as error:
                raise damaged_gzip(self.source, error) from error

    def _line(self, file: io.TextIOWrapper, most: int) -> str:
        try:
            return file.readline(most)
        except DAMAGED_GZIP as error:
            raise damaged_gzip(self.source, error) from error

    def _decoded(self, binary: BinaryIO) -> io.TextIOWrapper:
        wide = self.encoding.lower().startswith(("utf-16", "utf-32"))
        errors = "replace" if wide else "surrogateescape"
        return io.TextIOWrapper(binary, self.encoding, errors=errors, newline="\n")
