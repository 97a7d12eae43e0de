"""Readers for further kinds of labelled text: ours, other packages', and your own.

A reader knows files by their suffix and folders by what they hold. `register_reader` adds one for
this process; the entry point group `headstart.readers` adds one with an installed package.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headstart.errors import HeadstartError
from headstart.registry import Registry

if TYPE_CHECKING:
    from headstart.text.reading.sources import Source


class Reader(ABC):
    """Reads one kind of text that is neither a table nor plain text.

    Example
    -------
    >>> class Shouted(Reader):
    ...     description = "shouted text"
    ...     suffixes = (".loud",)
    ...     def read_texts(self, source, encoding):
    ...         lines = source.file.read_text(encoding).splitlines()
    ...         return (line.lower() for line in lines)
    >>> register_reader("shouted", Shouted())
    >>> unregister_reader("shouted")
    """

    description: str  # shown to the user, so that they can check how a file was understood
    suffixes: tuple[str, ...] = ()  # files it reads, such as (".spm",); `.gz` behind it is allowed
    unit = "line"  # what one text is in messages: a line or a row

    def find_parts(self, folder: Path) -> dict[str, Path]:
        """The files of `train` and perhaps `validation` and `test`; empty for other folders."""
        return {}

    @abstractmethod
    def read_texts(self, source: "Source", encoding: str) -> Iterator[str]:
        """Yield the texts of a file, one by one."""

    def read_labelled(self, source: "Source", encoding: str) -> Iterator[tuple[str, str]]:
        """Yield (text, label) pairs; by default the files have no labels."""
        raise HeadstartError(
            f"{self.description} has no labels",
            where=source.name,
            fix="give unlabelled text with --corpus",
        )


READERS: Registry[Reader] = Registry(
    "reader",
    group="headstart.readers",
    base=Reader,
    built_in={"lab": "headstart.lab.files:READER"},
)


def register_reader(name: str, reader: Reader) -> None:
    """Let `read_dataset`, `read_corpus` and every command read what `reader` can read."""
    READERS.register(name, reader)


def unregister_reader(name: str) -> None:
    """Remove a reader that `register_reader` added."""
    READERS.unregister(name)
