"""The lab's files: text already cut into SentencePiece pieces, labels in a file beside it.

`train.review.spm` holds one review per line, its pieces separated by spaces; `train.label` holds
one label per line. The text comes back by joining the pieces; "▁" stands for a space.
"""

from collections.abc import Iterator
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.text.reading.records import read_lines
from headstart.text.reading.registry import Reader
from headstart.text.reading.sources import Source

SPACE = "\u2581"
# What the lab calls the parts.
PARTS = {"train": "train", "validation": "valid", "test": "test"}


class LabReader(Reader):
    """Reads the lab's folder and single files of pieces."""

    description = "SentencePiece pieces"
    suffixes = (".spm",)

    def find_parts(self, folder: Path) -> dict[str, Path]:
        if not (folder / "train.label").is_file():
            return {}
        files = {part: folder / f"{name}.review.spm" for part, name in PARTS.items()}
        found = {part: file for part, file in files.items() if file.is_file()}
        return found if "train" in found else {}

    def read_texts(self, source: Source, encoding: str) -> Iterator[str]:
        return map(join_pieces, read_lines(source, encoding))

    def read_labelled(self, source: Source, encoding: str) -> Iterator[tuple[str, str]]:
        """Yield (text, label); both files must have equally many lines."""
        labels = _label_file(source)
        texts = list(self.read_texts(source, encoding))
        values = [line.strip() for line in read_lines(labels, encoding)]
        if len(texts) != len(values):
            raise HeadstartError(
                f"{len(texts):,} texts but {len(values):,} labels",
                where=f"{source.name} and {labels.name}",
                fix="both files must have one line for each text",
            )
        return zip(texts, values, strict=True)


READER = LabReader()


def join_pieces(line: str) -> str:
    """The text that a line of pieces was cut from."""
    return "".join(line.split(" ")).replace(SPACE, " ").strip()


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
