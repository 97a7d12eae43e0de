"""The lab's files: text already cut into SentencePiece pieces, labels in a file beside it.

`train.review.spm` holds one review a line, its pieces separated by spaces; `train.label` holds
one label a line. The text comes back by joining the pieces; "▁" stands for a space.
"""

from collections.abc import Iterator
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.text.reading.records import read_lines
from headstart.text.reading.sources import Source

SPACE = "\u2581"


def join_pieces(line: str) -> str:
    """The text that a line of pieces was cut from."""
    return "".join(line.split(" ")).replace(SPACE, " ").strip()


def part(folder: Path, name: str) -> Source | None:
    """The pieces of one part of the lab's folder: train, valid or test."""
    path = folder / f"{name}.review.spm"
    return Source(str(path), "pieces", path) if path.is_file() else None


def read_pieces(source: Source, encoding: str) -> Iterator[str]:
    """Yield the texts of one file of pieces."""
    return map(join_pieces, read_lines(source, encoding))


def read_labelled_pieces(source: Source, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield (text, label); both files must have equally many lines."""
    labels = _label_file(source)
    texts = list(read_pieces(source, encoding))
    values = [line.strip() for line in read_lines(labels, encoding)]
    if len(texts) != len(values):
        raise HeadstartError(
            f"{len(texts):,} texts but {len(values):,} labels",
            where=f"{source.name} and {labels.name}",
            fix="both files must have one line for each text",
        )
    return zip(texts, values, strict=True)


def _label_file(source: Source) -> Source:
    stem = source.file.name.split(".")[0]
    path = source.file.with_name(f"{stem}.label")
    if not path.is_file():
        raise HeadstartError(
            f"the labels are missing: there is no {path.name} beside the pieces",
            where=source.name,
            fix="unlabelled text is given with --corpus",
        )
    return Source(str(path), "text", path)
